"""Tool `score`: a preview grade of a file in the folder."""

from agent.tools.judge_tools import JudgeTools
from bench.judge.schemas import Answer


def score(tools: JudgeTools, source_file: str, workspace_bytes: int = 0) -> Answer:
    """Grade a file for information; it never counts. Raises what `JudgeTools.ask` raises."""
    return tools.ask("score", source_file, workspace_bytes)
