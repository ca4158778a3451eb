"""rocprof-compute: how close the slowest kernel comes to the peaks of an AMD GPU, and what it waits for.

Options and tables as the documentation of ROCm Compute Profiler 3.0 to 3.3 (ROCm 6.3 to 7.1) gives them; it was called
Omniperf before. Not run on a device yet.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.judge.schemas import ProfileTool
from bench.profilers.gpu import NO_ACCESS_TO_AMD, Findings, GpuKernel, GpuProfiler, GpuVendor, Output, Pass, number

TABLES = "analysis.txt"
# Of the analysis: System Speed-of-Light, Workgroup Manager, Wavefront.
BLOCKS = ("2", "6", "7")
# Columns that were renamed between versions.
_NAME, _VALUE, _PART = ("Kernel_Name", "KernelName"), ("Avg", "Value", "Mean"), ("Pct of Peak", "PoP")
_OCCUPANCY = ("Wavefront Occupancy", "Wave Occupancy")
_UNITS = ("VALU Util", "MFMA Util", "FLOPs", "IOPs")
_CONFLICTS = ("LDS Bank Conflicts/Access", "Bank Conflicts/Access", "LDS Bank Conflict")
# What a workgroup waits for before it is started, in percent of the cycles, and what that means.
_KEPT_OUT = {
    "Insufficient SIMD VGPRs": "vector registers",
    "Insufficient SIMD SGPRs": "scalar registers",
    "Insufficient CU LDS": "bytes of LDS",
    "Insufficient CU Barriers": "barriers",
    "Insufficient SIMD Waveslots": "waves already there",
    "Reached CU Workgroup Limit": "blocks already there",
    "Reached CU Wavefront Limit": "waves already there",
}


def passes(program: str, argv: Sequence[str], folder: Path) -> Iterator[Pass]:
    """The program is run once for each group of counters, then the slowest kernel is analysed."""
    where = folder / "workload"
    profile = (program, "profile", "--name", "kernel", "--path", str(where), "--no-roof")
    yield Pass("profile", (*profile, "--", *argv))
    # Beside a kernel's name stand its counters, in a folder that is named for the GPU by some versions.
    counted = next(where.rglob("sysinfo.csv"), where / "sysinfo.csv").parent
    analyze = (program, "analyze", "--path", str(counted), "--kernel", "0", "--block", *BLOCKS)
    # The tables are longer than what is kept of a command's words; the option for a file differs between versions.
    yield Pass("analyze", ("sh", "-c", 'exec "$@" >"$0"', str(folder / TABLES), *analyze))


def read(output: Output) -> Findings:
    """Times of all kernels, and the metrics of the slowest."""
    text = "\n".join(output.files(TABLES))
    kernels: dict[str, GpuKernel] = {}
    metrics: dict[str, _Metric] = {}
    for table in tables(text):
        for row in table:
            name = _first(row, _NAME)
            if name and "Count" in row:
                kernels.setdefault(name, _timed(name, row))
            elif "Metric" in row:
                metrics.setdefault(row["Metric"], _metric(row))
    ordered = sorted(kernels.values(), key=lambda kernel: -kernel.time_ns)
    if ordered:
        ordered[0] = _measured(ordered[0], metrics)
    notes = ("the counters are those of the slowest kernel",) if len(ordered) > 1 else ()
    return Findings(tuple(ordered), notes=notes, raw=text or "\n".join(output.said.values()))


def tables(text: str) -> Iterator[list[dict[str, str]]]:
    """The tables that are drawn in a text: their rows by column, the lines of a cell joined."""
    header: list[str] = []
    lines: list[list[str]] = []
    body: list[dict[str, str]] | None = None
    for line in text.splitlines():
        if "╒" in line:
            header, lines, body = [], [], []
        elif body is None:
            continue
        elif "╞" in line:
            header, lines = _joined(lines), []
        elif "├" in line or "╘" in line:
            body.append(dict(zip(header, _joined(lines), strict=False)))
            lines = []
            if "╘" in line:
                yield body
                body = None
        elif "│" in line:
            lines.append([cell.strip() for cell in line.split("│")[1:-1]])
    if body:
        yield body


def _joined(lines: Sequence[Sequence[str]]) -> list[str]:
    width = max(map(len, lines), default=0)
    return [" ".join(line[at] for line in lines if at < len(line) and line[at]) for at in range(width)]


@dataclass(frozen=True)
class _Metric:
    """One metric: its value as written, with its unit, as a number, and in percent of its peak."""

    text: str
    value: float | None
    part: float | None


def _metric(row: Mapping[str, str]) -> _Metric:
    value, part = _first(row, _VALUE), number(_first(row, _PART))
    shown = f"{value} {row.get('Unit', '')}".strip() + (f" ({part:.1f} % of peak)" if part is not None else "")
    return _Metric(shown, number(value), part)


def _first(row: Mapping[str, str], columns: Sequence[str]) -> str:
    return next((row[column] for column in columns if row.get(column)), "")


def _timed(name: str, row: Mapping[str, str]) -> GpuKernel:
    launches, time_ns = number(row["Count"]) or 0.0, number(row.get("Sum(ns)", "")) or 0.0
    return GpuKernel(name.removesuffix(" [clone .kd]"), round(launches), time_ns)


def _measured(kernel: GpuKernel, metrics: Mapping[str, _Metric]) -> GpuKernel:
    def part(name: str) -> float | None:
        return metrics[name].part if name in metrics else None

    def value(name: str) -> float | None:
        return metrics[name].value if name in metrics else None

    fabric = [one for one in map(part, ("L2-Fabric Read BW", "L2-Fabric Write BW")) if one is not None]
    units = [one.part for name, one in metrics.items() if one.part is not None and any(u in name for u in _UNITS)]
    waits = {what: value(name) or 0.0 for name, what in _KEPT_OUT.items()}
    worst = max(waits, key=lambda what: waits[what])
    # Cycles of conflicts for each cycle of an access.
    conflicts = next(filter(None, map(value, _CONFLICTS)), None)
    scratch = value("Scratch Allocation")
    return replace(
        kernel,
        memory=sum(fabric) if fabric else None,
        compute=max(units, default=None),
        occupancy=next((one for one in map(part, _OCCUPANCY) if one is not None), None),
        conflicts=100 * conflicts / (1 + conflicts) if conflicts is not None and conflicts > 0 else None,
        limiter=worst if waits[worst] >= 1 else "",
        scratch=f"{scratch:.0f} bytes of scratch a lane" if scratch else "",
        figures={name: metric.text for name, metric in metrics.items() if metric.text},
    )


PROFILER = GpuProfiler(
    tool=ProfileTool.ROCPROF_COMPUTE,
    vendor=GpuVendor.AMD,
    program="rocprof-compute",
    places=("/opt/rocm/bin/rocprof-compute",),
    get_it=(
        "install ROCm 6.3 or later with rocprofiler-compute, then "
        "pip install -r /opt/rocm/libexec/rocprofiler-compute/requirements.txt"
    ),
    passes=passes,
    read=read,
    shown=("/opt/rocm",),
    known=NO_ACCESS_TO_AMD,
)
