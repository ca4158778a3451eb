"""rocprofv3: the time of every kernel on an AMD GPU, and a few of its counters.

Options and columns as the documentation of ROCprofiler-SDK gives them for ROCm 6.2 to 7.1 ("Using rocprofv3", "MI300
and MI200 performance counters"). Not run on a device yet.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.judge.schemas import ProfileTool
from bench.profilers.gpu import (
    NO_ACCESS_TO_AMD,
    Findings,
    GpuKernel,
    GpuProfiler,
    GpuVendor,
    Output,
    Pass,
    mean,
    number,
    shown,
)

# Counters that fit into one pass each; a GPU without one of them loses that pass alone.
COUNTERS = {
    "memory": ("FETCH_SIZE", "WRITE_SIZE"),
    "arithmetic": ("VALUBusy", "MfmaUtil"),
    "lds": ("SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE", "SQ_WAVES"),
    "occupancy": ("OccupancyPercent",),
}
# Peak of the memory bandwidth by AMD's data sheets, in GB/s, by a part of the product's name, else the architecture's.
PEAKS_GB_S = {"MI325": 6000, "MI35": 8000, "MI30": 5300, "MI2": 1638, "gfx950": 8000, "gfx942": 5300, "gfx90a": 1638}
# Of CDNA 2 and later: vector registers of a lane and most waves of a SIMD; bytes of LDS and SIMDs of a compute unit.
_REGISTERS, _WAVES, _SIMDS = 512, 8, 4
_LDS = {"gfx950": 160 << 10}
_LANES = 64
_KIB = 1024


def passes(program: str, argv: Sequence[str], folder: Path) -> Iterator[Pass]:
    """A trace with its statistics, then one run of the program for each group of counters."""
    written = ("--output-format", "csv", "--output-directory")
    trace = (program, "--kernel-trace", "--stats", *written, str(folder / "trace"), "--output-file", "trace")
    yield Pass("trace", (*trace, "--", *argv))
    for name, group in COUNTERS.items():
        counting = (program, "--pmc", *group, *written, str(folder / name), "--output-file", name)
        yield Pass(name, (*counting, "--", *argv), needed=False)


@dataclass
class _Seen:
    """What the rows of counters and of the trace say of one kernel."""

    counts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    takes: dict[str, float] = field(default_factory=dict)


# Columns of either file, under one name: bytes of a lane and of a block, registers of a lane and of a wave, lanes.
_TAKES = {
    "Scratch_Size": "scratch",
    "Private_Segment_Size": "scratch",
    "LDS_Block_Size": "lds",
    "Group_Segment_Size": "lds",
    "VGPR_Count": "vgpr",
    "Accum_VGPR_Count": "agpr",
    "SGPR_Count": "sgpr",
    "Workgroup_Size": "block",
}


def read(output: Output) -> Findings:
    """Times from the statistics (or the trace), counters as the mean of a kernel's launches."""
    trace = list(output.rows("_kernel_trace.csv"))
    seen = _seen([*output.rows("_counter_collection.csv"), *trace])
    gpu, kind = _gpu(output.rows("_agent_info.csv"))
    times = _times(output.rows("_kernel_stats.csv")) or _traced(trace)
    kernels = [_kernel(name, *times[name], seen[name], gpu, kind) for name in times]
    return Findings(tuple(kernels), gpu or kind, raw=next(output.files("_kernel_stats.csv"), ""))


def _times(stats: Iterable[Mapping[str, str]]) -> dict[str, tuple[int, float]]:
    """Launches and nanoseconds of each kernel."""
    found = {}
    for row in stats:
        calls, total = number(row.get("Calls", "")), number(row.get("TotalDurationNs", ""))
        if row.get("Name") and calls and total is not None:
            found[row["Name"]] = (round(calls), total)
    return found


def _traced(trace: Iterable[Mapping[str, str]]) -> dict[str, tuple[int, float]]:
    """The same from every launch, where there are no statistics."""
    found: dict[str, tuple[int, float]] = {}
    for row in trace:
        start, end = number(row.get("Start_Timestamp", "")), number(row.get("End_Timestamp", ""))
        if row.get("Kernel_Name") and start is not None and end is not None:
            launches, total = found.get(row["Kernel_Name"], (0, 0.0))
            found[row["Kernel_Name"]] = (launches + 1, total + max(end - start, 0))
    return found


def _seen(rows: Iterable[Mapping[str, str]]) -> defaultdict[str, _Seen]:
    found: defaultdict[str, _Seen] = defaultdict(_Seen)
    for row in rows:
        kernel = found[row.get("Kernel_Name", "")]
        if (value := number(row.get("Counter_Value", ""))) is not None:
            kernel.counts[row.get("Counter_Name", "")].append(value)
        for column, name in _TAKES.items():
            if (taken := number(row.get(column, ""))) is not None:
                kernel.takes.setdefault(name, taken)
    return found


def _gpu(agents: Iterable[Mapping[str, str]]) -> tuple[str, str]:
    """Product and architecture of the first GPU."""
    for row in agents:
        if row.get("Agent_Type") == "GPU":
            return row.get("Product_Name", ""), row.get("Name", "")
    return "", ""


def _kernel(name: str, launches: int, time_ns: float, seen: _Seen, gpu: str, kind: str) -> GpuKernel:
    counts = {counter: mean(values) for counter, values in seen.counts.items()}
    moved = (counts.get("FETCH_SIZE", 0.0) + counts.get("WRITE_SIZE", 0.0)) * _KIB
    rate = moved * launches / time_ns if moved and time_ns else None
    peak = next((peak for part, peak in PEAKS_GB_S.items() if part in gpu or part == kind), None)
    cycles, lost = counts.get("SQ_LDS_IDX_ACTIVE"), counts.get("SQ_LDS_BANK_CONFLICT")
    figures = {"mean time": f"{time_ns / launches:,.0f} ns"}
    if rate is not None:
        figures["memory bandwidth"] = f"{rate:,.0f} GB/s" + (f" of {peak:,}" if peak else "")
    figures |= {counter: shown(value) for counter, value in (counts | seen.takes).items()}
    scratch = seen.takes.get("scratch")
    return GpuKernel(
        name,
        launches,
        time_ns,
        memory=100 * rate / peak if rate is not None and peak else None,
        compute=max((counts[unit] for unit in COUNTERS["arithmetic"] if unit in counts), default=None),
        occupancy=counts.get("OccupancyPercent"),
        conflicts=100 * lost / cycles if lost is not None and cycles else None,
        limiter=limiter(seen.takes, _LDS.get(kind, 64 << 10)),
        scratch=f"{scratch:.0f} bytes of scratch a lane" if scratch else "",
        figures=figures,
    )


def limiter(takes: Mapping[str, float], lds_bytes: int) -> str:
    """What keeps a SIMD from its most waves: `registers`, `blocks' LDS`, or nothing."""
    registers = takes.get("vgpr", 0.0) + takes.get("agpr", 0.0)
    by_registers = _REGISTERS // registers if registers >= 1 else _WAVES
    waves = max(takes.get("block", _LANES) / _LANES, 1)
    lds = takes.get("lds", 0.0)
    by_lds = lds_bytes // lds * waves / _SIMDS if lds >= 1 else _WAVES
    if min(by_registers, by_lds) >= _WAVES:
        return ""
    return "registers" if by_registers <= by_lds else "bytes of LDS"


PROFILER = GpuProfiler(
    tool=ProfileTool.ROCPROFV3,
    vendor=GpuVendor.AMD,
    program="rocprofv3",
    places=("/opt/rocm/bin/rocprofv3",),
    get_it="install ROCm 6.2 or later with rocprofiler-sdk, and put /opt/rocm/bin on PATH",
    passes=passes,
    read=read,
    shown=("/opt/rocm",),
    known=NO_ACCESS_TO_AMD,
)
