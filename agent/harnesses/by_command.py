"""Tools for clients that have a shell alone: `kcourt tool`, what a prompt says of it, and whether it answers."""

import json

from agent.harnesses import Launch
from agent.tools.settings import ToolSettings
from agent.tools.toolbox import Toolbox

# No tool has this name; the refusal names those that there are.
READY = ("kcourt", "tool", "-")


def prompt_with_commands(launch: Launch) -> str:
    """The attempt's prompt, and how each of its tools is called by the command line."""
    box = Toolbox(ToolSettings.read(launch.tools_file))
    calls = [f"    kcourt tool {tool.name} '{_example(tool.schema)}'" for tool in box.listed()]
    how = (
        "# How to call the tools\n\n"
        "They are commands of your shell. Each takes one JSON object and prints one. A call may take minutes: wait for "
        "it. Call them like this:\n"
    )
    return "\n".join([launch.prompt_file.read_text(encoding="utf-8"), how, *calls, ""])


def _example(schema: dict[str, object]) -> str:
    """Arguments for one call: what has a default, and the first value of what has a choice."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    shown = {name: one.get("default", (one.get("enum") or ["..."])[0]) for name, one in properties.items()}
    return json.dumps(shown)
