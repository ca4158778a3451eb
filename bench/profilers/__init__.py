"""The profilers of `/profile` that watch calls, one file each, by name; `isa` calls nothing."""

from bench.judge.schemas import ProfileTool
from bench.profilers import callgrind, perf
from bench.profilers.profiler import Profiler

PROFILERS: dict[ProfileTool, Profiler] = {
    ProfileTool.CALLGRIND: callgrind.PROFILER,
    ProfileTool.PERF: perf.PROFILER,
}
