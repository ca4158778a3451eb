"""Tool `score`: a preview grade of a file in the folder."""

from typing import TYPE_CHECKING

from agent.tools.shown import graded
from agent.tools.spec import FileInput, Spec
from bench.judge.schemas import Answer

if TYPE_CHECKING:
    from agent.tools.judge_tools import JudgeTools


def score(tools: "JudgeTools", source_file: str, workspace_bytes: int = 0) -> Answer:
    """Grade a file for information; it never counts. Raises what `JudgeTools.ask` raises."""
    return tools.ask("score", source_file, workspace_bytes)


SPEC = Spec(
    "Grade a file as a preview: whether it is right, and how fast against the baseline. It counts as nothing.",
    FileInput,
    lambda box, given: graded(score(box.judge, box.file_of(given))),
)
