"""The profilers of `/profile`, one file each, by name: those that watch calls, on CPUs or GPUs; `isa` calls nothing.

A new one is one file, its line here, and its name in `ProfileTool`.
"""

from bench.judge.schemas import ProfileTool
from bench.profilers import callgrind, ncu, perf, rocprof_compute, rocprofv3
from bench.profilers.gpu import GpuProfiler, GpuVendor
from bench.profilers.profiler import Profiler

PROFILERS: dict[ProfileTool, Profiler] = {
    ProfileTool.CALLGRIND: callgrind.PROFILER,
    ProfileTool.PERF: perf.PROFILER,
}
GPU_PROFILERS: dict[ProfileTool, GpuProfiler] = {
    profiler.tool: profiler for profiler in (rocprofv3.PROFILER, rocprof_compute.PROFILER, ncu.PROFILER)
}


def gpu_profilers(vendor: GpuVendor) -> dict[ProfileTool, GpuProfiler]:
    """The profilers for one vendor's GPUs."""
    return {tool: profiler for tool, profiler in GPU_PROFILERS.items() if profiler.vendor is vendor}
