"""Tool `score`: a preview grade of a file in the folder."""

from agent.tools.shown import graded
from agent.tools.spec import FileInput, Spec

SPEC = Spec(
    "Grade a file as a preview: whether it is right, and how fast against the baseline. It counts as nothing.",
    FileInput,
    lambda box, given: graded(box.judge.ask("score", box.file_of(given))),
)
