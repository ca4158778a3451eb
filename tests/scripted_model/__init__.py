"""A model that follows a script: Messages, Responses and chat completions on loopback, streamed as real ones stream.

`python -m tests.scripted_model --script FILE` serves until it is ended. FILE is JSON: a kernel (or `*`) → its steps;
the word `demo` instead writes, scores and submits the corpus's own fast controls.
"""

from .server import DEMO, ScriptedModel, demo_course, read_script
from .wires import Asked, Step

__all__ = ["DEMO", "Asked", "ScriptedModel", "Step", "demo_course", "read_script"]
