"""Tool `submit`: the grade that counts; in single mode it ends the episode."""

from typing import TYPE_CHECKING

from agent.tools.shown import graded
from agent.tools.spec import FileInput, Spec
from bench.judge.schemas import Answer, SubmissionMode

if TYPE_CHECKING:
    from agent.tools.judge_tools import JudgeTools


def submit(tools: "JudgeTools", source_file: str, workspace_bytes: int = 0) -> Answer:
    """Hand a file in. Raises what `JudgeTools.ask` raises."""
    return tools.ask("submit", source_file, workspace_bytes)


_ONCE = "You may do so once; it ends your work."
SPEC = Spec(
    "Hand a file in: the grade that counts.",
    FileInput,
    lambda box, given: graded(submit(box.judge, box.file_of(given))),
    {
        SubmissionMode.SINGLE: _ONCE,
        SubmissionMode.BLIND: _ONCE,
        SubmissionMode.MULTI: "You may do so again; the last one counts.",
    },
)
