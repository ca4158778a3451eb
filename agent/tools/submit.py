"""Tool `submit`: the grade that counts; in single mode it ends the episode."""

from agent.tools.judge_tools import JudgeTools
from bench.judge.schemas import Answer


def submit(tools: JudgeTools, source_file: str, workspace_bytes: int = 0) -> Answer:
    """Hand a file in. Raises what `JudgeTools.ask` raises."""
    return tools.ask("submit", source_file, workspace_bytes)
