"""The profilers of `/profile`, one file each, by name."""

from bench.judge.schemas import ProfileTool
from bench.profilers import callgrind, perf
from bench.profilers.profiler import Profiler

PROFILERS: dict[ProfileTool, Profiler] = {
    ProfileTool.CALLGRIND: callgrind.PROFILER,
    ProfileTool.PERF: perf.PROFILER,
}
