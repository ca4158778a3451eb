"""Tool `submit`: the grade that counts; in modes single and blind it ends the episode."""

from agent.tools.shown import graded
from agent.tools.spec import FileInput, Spec
from bench.judge.schemas import SubmissionMode

_ONCE = "You may do so once; it ends your work."
SPEC = Spec(
    "Hand a file in: the grade that counts.",
    FileInput,
    lambda box, given: graded(box.judge.ask("submit", box.file_of(given))),
    {
        SubmissionMode.SINGLE: _ONCE,
        SubmissionMode.BLIND: _ONCE,
        SubmissionMode.MULTI: "You may do so again; the last one counts.",
    },
)
