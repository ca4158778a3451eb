"""What a profiler of GPUs found, as a person reads it: what to act on, kernels by time, counters, its own words."""

from collections.abc import Iterator, Mapping

from bench.judge.schemas import Counters, Outcome, Preset, ProfileTool
from bench.profilers.gpu import Findings, GpuKernel, short_name
from bench.profilers.profiler import Place
from bench.profilers.report import counters, report_text
from bench.records import ProfileReport

# From this part of a peak on, in percent, a kernel is bound by it.
BOUND = 60
# Percent of the waves that fit below which a kernel has few of them, and of cycles lost to bank conflicts that matter.
FEW_WAVES, MANY_CONFLICTS = 50, 10
# Only kernels with this part of the time are worth advice.
WORTH = 0.1
ADVISED, SHOWN_KERNELS, SHOWN_FIGURES, SHOWN_COLUMNS = 3, 5, 60, 100
HINTS, HINT_CHARS, NOTES, RAW_CHARS = 3, 300, 5, 2000


def told(
    kernel: str, tool: ProfileTool, found: Findings, calls: int, preset: Preset, sizes: Mapping[str, int]
) -> ProfileReport:
    """The report on one profile of `calls` calls of `kernel`; its counters are nanoseconds by kernel."""
    counted = _counters(found, calls, preset, sizes)
    report = "\n".join(_report(kernel, tool, found, counted)) + "\n"
    return ProfileReport(tool=tool, outcome=Outcome.SOLVED, report=report, counters=counted)


def _counters(found: Findings, calls: int, preset: Preset, sizes: Mapping[str, int]) -> Counters | None:
    if not found.kernels:
        return None
    times: dict[Place, int] = {}
    for kernel in found.kernels:
        place = Place(kernel.name, found.gpu or "GPU", "", 0)
        times[place] = times.get(place, 0) + round(kernel.time_ns)
    return counters(times, "nanoseconds", calls, preset, sizes, "", "")


def _report(kernel: str, tool: ProfileTool, found: Findings, counted: Counters | None) -> Iterator[str]:
    if counted is None:
        yield f"{tool}: saw no launch of a kernel by {kernel}, or its output was damaged; below is what it said"
        yield from found.notes[:NOTES]
    else:
        head, _, table = report_text(kernel, tool, counted).partition("\n")
        yield head
        yield from advice(found)
        yield from (f"note: {note}" for note in found.notes[:NOTES])
        yield table.rstrip("\n")
    for one in found.kernels[:SHOWN_KERNELS]:
        yield ""
        yield f"{one.launches} x {one.name[:SHOWN_COLUMNS]}"
        yield from (f"  {name[:SHOWN_COLUMNS]}: {value}" for name, value in [*one.figures.items()][:SHOWN_FIGURES])
        yield from (f"  {tool} advises: {hint[:HINT_CHARS]}" for hint in one.hints[:HINTS])
    if found.raw:
        yield ""
        yield f"what {tool} wrote, the first {min(RAW_CHARS, len(found.raw))} of {len(found.raw)} characters:"
        yield found.raw[:RAW_CHARS].rstrip("\n")


def advice(found: Findings) -> Iterator[str]:
    """One line for each thing to act on, of the kernels that take most of the time."""
    total = sum(kernel.time_ns for kernel in found.kernels)
    for at, kernel in enumerate(found.kernels[:ADVISED]):
        share = kernel.time_ns / total if total else 0.0
        if at and share < WORTH:
            return
        name = short_name(kernel.name)[:SHOWN_COLUMNS]
        if len(found.kernels) > 1:
            yield f"{name} takes {100 * share:.0f} % of the time on the GPU{': begin there' if not at else ''}"
        yield from (f"{name} {line}" for line in (*_bound(kernel), *_waves(kernel)))


def _bound(kernel: GpuKernel) -> Iterator[str]:
    """What sets the kernel's pace."""
    memory, compute, caches = kernel.memory, kernel.compute, kernel.caches
    if memory is not None and memory >= max(BOUND, compute or 0):
        yield f"uses {memory:.0f} % of the memory bandwidth, so that bounds it: move fewer bytes, or each byte once"
    elif compute is not None and compute >= BOUND:
        yield f"uses {compute:.0f} % of the arithmetic units, so they bound it: fewer instructions, or matrix units"
    elif caches is not None and caches >= BOUND:
        yield f"uses {caches:.0f} % of a cache or shared memory, so that bounds it: keep more in registers"
    elif memory is not None and compute is not None:
        yield (
            f"uses {memory:.0f} % of the memory bandwidth and {compute:.0f} % of the arithmetic units, so it waits: "
            "more waves, or more independent loads a lane"
        )
    elif memory is not None:
        yield f"uses {memory:.0f} % of the memory bandwidth"


def _waves(kernel: GpuKernel) -> Iterator[str]:
    """What keeps waves out, and what stops them."""
    if kernel.occupancy is not None and kernel.occupancy < FEW_WAVES:
        limit = f"; {kernel.limiter} keep more out" if kernel.limiter else ": a larger grid, or smaller blocks"
        yield f"has {kernel.occupancy:.0f} % of the waves that a GPU can hold{limit}"
    if kernel.scratch:
        yield f"has {kernel.scratch}: keep fewer values alive, or index local arrays by constants alone"
    if kernel.conflicts is not None and kernel.conflicts >= MANY_CONFLICTS:
        yield f"loses {kernel.conflicts:.0f} % of its shared-memory cycles to bank conflicts: pad the rows of its tiles"
