"""ncu: how close each kernel comes to the peaks of an NVIDIA GPU, what limits it, and NVIDIA's own advice.

Options and columns as the documentation of Nsight Compute 2023.3 to 2025 gives them ("Nsight Compute CLI"). Options,
section names and exit codes were seen with 2024.1, without a device; no counters were.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.judge.schemas import ProfileTool
from bench.profilers.gpu import Findings, GpuKernel, GpuProfiler, GpuVendor, Output, Pass, mean, number, rows, shown

LOG = "ncu.log"
# Every launch is repeated some forty times, for all counters.
LAUNCHES = 32
# Beside the sections of the set: shared memory's conflicts and all its accesses, then reads and writes of local memory.
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
LOCAL = ("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum")
_SECTOR_BYTES = 32
_UNITS_NS = {"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
# Blocks that an SM can hold, by what limits them, and what that means.
_LIMITS = {
    "Block Limit Registers": "registers",
    "Block Limit Shared Mem": "bytes of shared memory",
    "Block Limit SM": "blocks already there",
    "Block Limit Barriers": "barriers",
    "Block Limit Warps": "",
}


def passes(program: str, argv: Sequence[str], folder: Path) -> Iterator[Pass]:
    """One run; ncu repeats each launch of the call by itself. The judge's clock is not ncu's to set."""
    chosen = ("--set", "detailed", "--metrics", ",".join((CONFLICTS, SHARED, *LOCAL)))
    how = ("--clock-control", "none", "--target-processes", "application-only", "--profile-from-start", "off")
    written = ("--csv", "--page", "details", "--print-units", "base", "--log-file", str(folder / LOG))
    yield Pass("ncu", (program, *written, *chosen, *how, "--launch-count", str(LAUNCHES), *argv))


@dataclass
class _Seen:
    """What the rows say of one kernel: values by metric and unit, one a launch, and advice by its weight."""

    launches: set[str] = field(default_factory=set)
    values: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    advice: dict[str, float] = field(default_factory=dict)

    def mean(self, metric: str, unit: str | None = None) -> float | None:
        found = (values for (name, of), values in self.values.items() if name == metric and unit in (None, of))
        values = next(found, None)
        return mean(values) if values else None


def read(output: Output) -> Findings:
    """Counters as the mean of a kernel's launches; the text before the table is ncu's own warnings."""
    text = "\n".join(output.files(LOG)) or "\n".join(output.said.values())
    before, header, table = text.partition('"ID",')
    seen: dict[str, _Seen] = defaultdict(_Seen)
    compute = ""
    for row in rows(header + table):
        if row.get("Kernel Name"):
            _take(row, seen[row["Kernel Name"]])
            compute = compute or row.get("CC", "")
    kernels = [_kernel(name, one) for name, one in seen.items()]
    warned = [line for line in before.splitlines() if line.startswith(("==WARNING==", "==ERROR=="))]
    if sum(kernel.launches for kernel in kernels) >= LAUNCHES:
        warned.append(f"the first {LAUNCHES} launches alone")
    gpu = f"NVIDIA GPU of compute capability {compute[:10]}" if compute else ""
    return Findings(tuple(kernels), gpu, tuple(warned), raw=text)


def _take(row: Mapping[str, str], seen: _Seen) -> None:
    """One row: a metric, or a rule's advice."""
    seen.launches.add(row.get("ID", ""))
    metric, value = row.get("Metric Name", ""), number(row.get("Metric Value", ""))
    if metric and value is not None:
        seen.values[metric, row.get("Metric Unit", "")].append(value)
    if row.get("Rule Type", "") in ("OPT", "WRN") and row.get("Rule Description"):
        hint = " ".join(row["Rule Description"].split())
        seen.advice[hint] = max(seen.advice.get(hint, 0.0), number(row.get("Estimated Speedup", "")) or 0.0)


def _kernel(name: str, seen: _Seen) -> GpuKernel:
    times = [
        value * _UNITS_NS.get(unit, 1)
        for (metric, unit), values in seen.values.items()
        for value in values
        if metric == "Duration"
    ]
    busy, dram = seen.mean("Memory Throughput", "%"), seen.mean("DRAM Throughput", "%")
    lost, accesses = seen.mean(CONFLICTS), seen.mean(SHARED)
    local = sum(seen.mean(metric) or 0.0 for metric in LOCAL) * _SECTOR_BYTES
    return GpuKernel(
        name,
        len(seen.launches),
        sum(times),
        memory=dram if dram is not None else busy,
        compute=seen.mean("Compute (SM) Throughput", "%"),
        caches=busy,
        occupancy=seen.mean("Achieved Occupancy", "%"),
        conflicts=100 * lost / accesses if lost is not None and accesses else None,
        limiter=_limiter(seen),
        scratch=f"{local:,.0f} bytes of traffic to local memory a launch" if local else "",
        figures=_figures(seen),
        hints=tuple(sorted(seen.advice, key=lambda hint: -seen.advice[hint])),
    )


def _figures(seen: _Seen) -> dict[str, str]:
    """All metrics; a name that two sections give in different units is told with either."""
    found = {}
    for (metric, unit), values in seen.values.items():
        label = metric if metric not in found else f"{metric} ({unit})"
        found[label] = f"{shown(mean(values))} {unit}".strip()
    return found


def _limiter(seen: _Seen) -> str:
    limits = {what: limit for metric, what in _LIMITS.items() if (limit := seen.mean(metric)) is not None}
    return min(limits, key=lambda what: limits[what], default="")


PROFILER = GpuProfiler(
    tool=ProfileTool.NCU,
    vendor=GpuVendor.NVIDIA,
    program="ncu",
    places=("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/ncu"),
    get_it="install Nsight Compute (it comes with CUDA), and put /usr/local/cuda/bin on PATH",
    passes=passes,
    read=read,
    shown=("/opt/nvidia",),
    known={
        "ERR_NVGPUCTRPERM": (
            "the driver shows counters to administrators alone, and a submission is none; load its module nvidia with "
            "NVreg_RestrictProfilingToAdminUsers=0, or, for one's own files, run as root with KCOURT_SANDBOX=limits"
        ),
        "failed to connect to the CUDA driver": "the driver and this Nsight Compute do not go together; update either",
        "driver resource was unavailable": "something else counts on this GPU; stop it, such as DCGM's profiling",
    },
    # Its sections are read where they are installed, and not copied to a home.
    variables={"NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT": "1"},
)
