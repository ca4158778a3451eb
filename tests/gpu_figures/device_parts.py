"""What the device and the bracket around a call do: facts, rates, empty calls, two clocks, another's stopwatch."""

import ctypes
import importlib.metadata
import os
import platform
import runpy
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.devices import cpu
from bench.devices.gpu import FLUSH_BYTES
from bench.inputs import Case
from bench.measure.urgency import urgent
from bench.measure.warmth import warm
from bench.native.helper import Timing, What
from bench.process import Limits, run
from bench.profilers.ncu import PROFILER as NCU
from bench.reference import Twin
from bench.runner.runner import EMPTY_LIMIT_NS, WARM_LEAST_NS, Runner
from bench.sandbox import scratch_folder
from bench.task import Role, Task, find_task

from . import spinning
from .figures import Line, percent_off, quantile, single, spread
from .slot import Slot, built, calm, running, timed_calls

PACKAGES = ("torch", "triton", "numpy")
MATRIX_SIDE, MATRIX_CALLS = 8192, 30
CONSTANT_US, AS_ANOTHER_PERCENT = 1.0, 3.0
DO_BENCH_MS = 300
COUNTER = "sm__cycles_elapsed.sum"
_C_TYPES: Mapping[str | None, Any] = {"float32": ctypes.c_float, "float64": ctypes.c_double, None: ctypes.c_int64}


def lacks(*packages: str) -> str:
    """Why something that needs these packages is not done; an empty text where they are there."""
    missing = [name for name in packages if not package(name)]
    return f"skipped: {' and '.join(missing)} not installed" if missing else ""


def package(name: str) -> str | None:
    """A package's version, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


# Facts, and rates


def facts(slot: Slot) -> Iterator[Line]:
    """Which device, seen by which driver, with which compiler; which machine, sandbox and versions."""
    court = slot.court
    machine = {name: value for name, value in cpu.description().items() if name in ("cpu_model", "cores", "kernel")}
    yield {
        "facts": {
            **court.gpu_facts(),
            "compiler": court.kit.compiler if court.kit else None,
            **machine,
            "python": platform.python_version(),
            **{name: package(name) for name in PACKAGES},
            "sandbox": str(court.sandbox.level),
            "timing_cores": court.cores.timing,
            "clock_core": court.cores.clock,
        }
    }


def copy(slot: Slot) -> Iterator[Line]:
    """The judge's own large copy, which says what is too fast to be true."""
    rates = []
    for _ in slot.deadline.turns(slot.extent.copies, "copies"):
        slot.gpu._copy_rate = None  # measured once a process otherwise
        rates.append(slot.gpu.copy_rate())
    yield spread(
        "copy, read and written", rates, "GB/s", note=f"each the fastest of ten copies of {FLUSH_BYTES >> 21} MiB"
    )


def matrix(slot: Slot) -> Iterator[Line]:
    """What the matrix units give PyTorch in bfloat16."""
    if why := lacks("torch"):
        yield {"missing": why}
        return
    import torch

    left, right = (
        torch.randn(MATRIX_SIDE, MATRIX_SIDE, device="cuda", dtype=torch.float32).to(torch.bfloat16) for _ in range(2)
    )
    rates = []
    for turn in range(MATRIX_CALLS):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        torch.matmul(left, right)
        after.record()
        torch.cuda.synchronize()
        if turn >= MATRIX_CALLS // 3:  # the first ones wake the device, and find a kernel
            rates.append(2 * MATRIX_SIDE**3 / before.elapsed_time(after) / 1e9)
    yield spread("bfloat16 product, 8192 x 8192 x 8192", rates, "TFLOP/s", note="torch.matmul, by events")


# The bracket around a call


def empty(slot: Slot) -> Iterator[Line]:
    """Empty calls of a native runner, and what it costs that the judge has used the device meanwhile."""
    with scratch_folder() as folder:
        task, path = spinning.write(folder, spinning.CANDIDATE_UNITS)
        with running(slot.court, task, [{"n": 64, "passes": 1}], path) as (_, runner):
            count = slot.extent.empty_calls
            timings = [timing for timing, _ in runner._empty_calls(count)]
            calls = [timing.elapsed_ns for timing in timings]
            for percent in (10, 50, 90, 99):
                yield single(f"empty call, p{percent}", quantile(calls, percent / 100), "ns", n=count)
            yield single("empty call: what is taken off each time", runner.empty_ns, "ns", note="the least of 15")
            turns = range(max(count // 5, 2))
            woken = [woken_ns(slot, runner) for _ in turns]
            yield spread("waking it, and the device's switch to it, which the judge used last", woken, "ns")
            yield spread("the device's switch back", [timing.back_ns for timing in timings], "ns")
            trips = [slot.gpu.round_trip_ns() for _ in turns]
            yield spread("the judge's own empty kernel beside a stopped runner", trips, "ns")


def woken_ns(slot: Slot, runner: Runner) -> int:
    """ns until a runner can be called, right after the judge has flushed the device's caches; nobody's time."""
    slot.gpu.flush()
    with urgent(), warm(slot.court.cores.timing, WARM_LEAST_NS, runner.pid) as phase:
        timing = runner._checked(runner._call((), What.EMPTY, EMPTY_LIMIT_NS, phase), "wake")
    runner.pause()
    return timing.woken_ns


def clocks(slot: Slot) -> Iterator[Line]:
    """The judge's clock, less an empty call, against the device's events, over calls of very different lengths."""
    apart_us, lengths_us = [], []
    with scratch_folder() as folder:
        task, path = spinning.write(folder, spinning.CANDIDATE_UNITS)
        size = task.size(slot.extent.large)["n"]
        with running(slot.court, task, [{"n": size, "passes": 1}], path) as (session, runner):

            def calls(passes: int, count: int) -> list[Timing]:
                prepared = session.prepare(Case("clocks", str(passes), {"n": size, "passes": passes}))
                return timed_calls(session, runner, prepared, count)

            few, many = slot.extent.first_passes
            first, second = (median(call.elapsed_ns for call in calls(passes, 5)) for passes in (few, many))
            pass_ns = max((second - first) / (many - few), 1.0)
            for turn in slot.deadline.turns(len(slot.extent.lengths_ns), "lengths of a call"):
                wanted = few + (slot.extent.lengths_ns[turn] - first) / pass_ns
                timings = calls(max(round(wanted), 1), slot.extent.calls)
                yield from clock_figures(slot.extent.lengths_ns[turn], timings)
                apart_us.append(median(call.offset_ns for call in calm(timings)) / 1e3)
                lengths_us.append(median(call.elapsed_ns for call in calm(timings)) / 1e3)
    if len(apart_us) > 1:
        what = "judge's clock less the device's: largest less smallest of the medians"
        yield single(what, max(apart_us) - min(apart_us), "us", CONSTANT_US, n=len(apart_us))
        gained = (apart_us[-1] - apart_us[0]) / (lengths_us[-1] - lengths_us[0])
        yield single("judge's clock gains on the device's", 1e6 * gained, "ppm", note="two clocks of their own rate")


def clock_figures(length_ns: int, timings: list[Timing]) -> Iterator[Line]:
    """Both clocks over calls that are to take so long."""
    kept = calm(timings)
    disturbed = sum(bool(timing.disturbed or timing.strayed) for timing in timings)
    about, note = f"calls of about {length_ns / 1e3:g} us", f"{disturbed} of {len(timings)} were disturbed"
    yield spread(f"{about}: judge's clock", [call.elapsed_ns / 1e3 for call in kept], "us", note=note)
    yield spread(f"{about}: device's events", [(call.elapsed_ns - call.offset_ns) / 1e3 for call in kept], "us")
    yield spread(f"{about}: judge's clock less the device's", [call.offset_ns / 1e3 for call in kept], "us")
    late = [call.late_ns / 1e3 for call in timings]
    yield spread(f"{about}: the device's switch back, less that after an empty call", late, "us")


# Another's stopwatch


def do_bench(slot: Slot) -> Iterator[Line]:
    """Our time of a baseline against that of `triton.testing.do_bench`: the same library, and PyTorch's operation."""
    if why := lacks("torch", "triton"):
        yield {"missing": why}
        return
    import torch

    for name in ("axpy", "rmsnorm"):
        task, preset = find_task(name).gpu_track, slot.extent.large
        sizes, path = task.size(preset), task.baselines[0]
        with running(slot.court, task, [sizes], path) as (session, runner):
            twin = Twin(slot.court.sandbox, task, slot.court.memory, slot.court.kit)
            prepared = session.prepare(Case("do_bench", name, sizes), twin.oracle)
            ours = [call.elapsed_ns / 1e3 for call in calm(timed_calls(session, runner, prepared, slot.extent.calls))]
            del twin, prepared
        yield spread(f"{name} at {preset}: our clock", ours, "us", note=f"{path.name} in a runner, caches flushed")
        values = on_torch(task, sizes)
        places = {name: value.data_ptr() if name in task.arrays else value for name, value in values.items()}
        library = built(slot.court, task, path).path
        theirs = microseconds(library_call(task, library, places, torch.cuda.current_stream().cuda_stream))
        note = f"the same {path.name}, launched on PyTorch's tensors and stream; its cache is cleared before each call"
        yield spread(f"{name} at {preset}: do_bench", theirs, "us", note=note)
        off = percent_off(median(ours), median(theirs))
        yield single(f"{name} at {preset}: our clock off do_bench by", off, "%", AS_ANOTHER_PERCENT)
        if task.torch_reference:
            function = runpy.run_path(str(task.torch_reference))[name]
            times = microseconds(partial(function, *values.values()))
            note = "torch_reference.py: the same result, by PyTorch's own kernels"
            yield spread(f"{name} at {preset}: do_bench of PyTorch", times, "us", note=note)


def on_torch(task: Task, sizes: Mapping[str, int]) -> dict[str, Any]:
    """A value an argument: random tensors, sizes, and a half for scalars."""
    import torch

    values: dict[str, Any] = {}
    for name, argument in task.arguments.items():
        if argument.is_array:
            dtype = getattr(torch, str(argument.dtype))
            values[name] = torch.randn(task.shape(name, dict(sizes)), device="cuda", dtype=dtype)
        else:
            values[name] = sizes[name] if argument.role is Role.SIZE else 0.5
    return values


def library_call(task: Task, library: Path, values: Mapping[str, Any], stream: int) -> Callable[[], None]:
    """Calls an entry point in HIP on a value an argument (of an array, its address on the device) and a stream."""
    function = ctypes.CDLL(str(library))[task.name]
    function.restype = None
    arguments = task.arguments.values()
    types = [ctypes.c_void_p if argument.is_array else _C_TYPES[argument.dtype] for argument in arguments]
    function.argtypes = [*types, ctypes.c_void_p]
    given = [values[name] for name in task.arguments]
    return lambda: function(*given, stream)


def microseconds(call: Callable[[], Any]) -> list[float]:
    from triton.testing import do_bench as measure

    return [ms * 1e3 for ms in measure(call, rep=DO_BENCH_MS, return_mode="all")]


# Profilers


def profilers(slot: Slot) -> Iterator[Line]:
    """Whether NVIDIA's profiler is here, and may read counters."""
    program = shutil.which(NCU.program) or next((path for path in NCU.places if os.access(path, os.X_OK)), None)
    if program is None:
        yield {"missing": f"skipped: {NCU.program} is not here; {NCU.get_it}"}
        return
    said = run([program, "--version"], limits=Limits(wall_s=30)).output.strip().splitlines()
    yield {"facts": {"ncu": program, "ncu_version": said[-1] if said else None}}
    one_kernel = (
        f"from tests.gpu_figures.slot import open_slot; open_slot('{slot.gpu.kit.device}', 60).gpu.round_trip_ns()"
    )
    options = ["--metrics", COUNTER, "--launch-count", "1", "--target-processes", "all", "--clock-control", "none"]
    argv, limits = [program, *options, sys.executable, "-c", one_kernel], Limits(wall_s=max(slot.deadline.left_s, 20))
    begun = time.monotonic()
    done = run(argv, limits=limits, cwd=Path(__file__).parents[2])
    reads = COUNTER in done.output and "ERR_" not in done.output
    why = next((why for word, why in NCU.known.items() if word in done.output), done.output.strip()[-300:])
    yield {"facts": {"ncu_reads_counters": "yes" if reads else f"no: {why}"}}
    yield single("ncu over a process of the judge", time.monotonic() - begun, "s")
