"""Tool `profile`: where a file in the folder spends its time, as text."""

from agent.tools.judge_tools import JudgeTools
from bench.judge.schemas import Outcome, ProfileTool


def profile(tools: JudgeTools, source_file: str, tool: ProfileTool, workspace_bytes: int = 0) -> str:
    """The profiler's report, or what kept the submission from being profiled. Raises what `JudgeTools.ask` raises."""
    answer = tools.profile(source_file, tool, workspace_bytes)
    if answer.outcome is Outcome.SOLVED:
        return answer.report
    facts = [f"{name}: {value}" for name, value in answer.detail.items() if value not in (None, "")]
    return "\n".join([f"{answer.outcome}; nothing was profiled", *facts])
