"""Tool `profile`: where a file in the folder spends its time."""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from agent.tools.shown import profiled
from agent.tools.spec import FileInput, Spec
from bench.judge.schemas import ProfileTool

_WHAT = (
    "callgrind counts instructions, perf samples time; isa shows registers and spills of HIP. "
    "On a GPU: rocprofv3, rocprof-compute (AMD), ncu (NVIDIA)."
)
_TOOLS = WithJsonSchema({"type": "string", "enum": [tool.value for tool in ProfileTool]})


class ProfileInput(FileInput):
    tool: Annotated[ProfileTool, _TOOLS, Field(description=_WHAT)]


SPEC = Spec(
    "Say which functions and lines of a file cost most. It counts as nothing.",
    ProfileInput,
    lambda box, given: profiled(box.judge.profile(box.file_of(given), given.tool)),
)
