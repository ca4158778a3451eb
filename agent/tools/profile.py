"""Tool `profile`: where a file in the folder spends its time."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from agent.tools.shown import profiled
from agent.tools.spec import FileInput, Spec
from bench.judge.schemas import Language, ProfileTool

_DOES = {
    ProfileTool.CALLGRIND: "callgrind counts instructions",
    ProfileTool.PERF: "perf samples time",
    ProfileTool.ISA: "isa shows what kernels take of a GPU: registers, LDS, spills",
    ProfileTool.ROCPROFV3: "rocprofv3 counts on a GPU of AMD",
    ProfileTool.ROCPROF_COMPUTE: "rocprof-compute says there what limits a kernel",
    ProfileTool.NCU: "ncu counts on a GPU of NVIDIA",
}
_TOOLS = WithJsonSchema({"type": "string"})


class ProfileInput(FileInput):
    tool: Annotated[ProfileTool, _TOOLS, Field(description="The profiler.")]


def _profilers(language: Language) -> Mapping[str, Mapping[str, Any]]:
    """The profilers that take a language, and what each of them does."""
    taking = [tool for tool in ProfileTool if language in tool.languages]
    return {"tool": {"enum": [*map(str, taking)], "description": f"{', '.join(_DOES[tool] for tool in taking)}."}}


SPEC = Spec(
    "Say which functions and lines of a file cost most. It counts as nothing.",
    ProfileInput,
    lambda box, given: profiled(box.judge.profile(box.file_of(given), given.tool)),
    in_language=_profilers,
)
