"""Tool `profile`: where a file in the folder spends its time."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, WithJsonSchema

from agent.tools.shown import profiled
from agent.tools.spec import FileInput, Spec
from bench.judge.schemas import ProfileAnswer, ProfileTool

if TYPE_CHECKING:
    from agent.tools.judge_tools import JudgeTools

_TOOLS = WithJsonSchema({"type": "string", "enum": [tool.value for tool in ProfileTool]})


class ProfileInput(FileInput):
    tool: Annotated[ProfileTool, _TOOLS, Field(description="callgrind counts instructions, perf samples time.")]


def profile(tools: "JudgeTools", source_file: str, tool: ProfileTool, workspace_bytes: int = 0) -> ProfileAnswer:
    """Have a file profiled; it counts as nothing. Raises what `JudgeTools.ask` raises."""
    return tools.profile(source_file, tool, workspace_bytes)


SPEC = Spec(
    "Say which functions and lines of a file cost most. It counts as nothing.",
    ProfileInput,
    lambda box, given: profiled(profile(box.judge, box.file_of(given), given.tool)),
)
