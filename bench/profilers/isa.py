"""isa: what a HIP submission's kernels take of an AMD GPU – registers, spills, LDS, occupancy – with none at hand."""

from collections.abc import Iterator, Sequence

from bench.build.gpu import CodeObject
from bench.gates import text
from bench.gates.artifacts import compiled_for_a_gpu
from bench.judge.schemas import KernelUse, Outcome, ProfileTool
from bench.records import ProfileOrder, ProfileReport
from bench.sandbox import Sandbox

# Waves that should share a SIMD, so that one computes while others wait for memory.
FEW_WAVES = 4
# Vector registers of a lane on CDNA 2 and 3, shared by the waves of a SIMD.
_REGISTERS = 512
SHOWN_KERNELS, SHOWN_COLUMNS, ASSEMBLY_CHARS = 20, 80, 6000
_COLUMNS = ("vgpr", "agpr", "sgpr", "spills", "lds", "scratch", "occupancy", "matrix")


def examine(order: ProfileOrder, sandbox: Sandbox) -> ProfileReport:
    """Compile an order's source; nothing of it is called.

    Raises:
        Rejected: it has text that no submission may have (`policy`), or does not compile (`build_failed`).
        EnvironmentFault: there is no compiler for AMD's GPUs here.
    """
    assert order.source is not None
    text.check(order.source, order.language)
    made, assembly = compiled_for_a_gpu(sandbox, f"{order.kernel}{order.language.suffix}", order.source)
    report = "\n".join(_report(order.kernel, made, assembly)) + "\n"
    return ProfileReport(tool=ProfileTool.ISA, outcome=Outcome.SOLVED, report=report, kernels=made.kernels)


def _report(kernel: str, made: CodeObject, assembly: str) -> Iterator[str]:
    """What to act on first, then a table, then the beginning of the assembly."""
    yield f"isa: {kernel} for {made.target}, compiled by {made.compiler}"
    yield from advice(made.kernels) or ["no spills, and enough waves for every SIMD"]
    yield ""
    yield "  ".join([*(f"{column:>9}" for column in _COLUMNS), "kernel"])
    for use in made.kernels[:SHOWN_KERNELS]:
        cells = (getattr(use, column) for column in _COLUMNS)
        yield "  ".join([*(f"{'-' if cell is None else cell:>9}" for cell in cells), use.name[:SHOWN_COLUMNS]])
    yield ""
    yield f"assembly, the first {ASSEMBLY_CHARS} of {len(assembly)} characters:"
    yield assembly[:ASSEMBLY_CHARS]


def advice(kernels: Sequence[KernelUse]) -> list[str]:
    """One line for each thing that a kernel should be changed for."""
    found = []
    for use in kernels:
        name = use.name[:SHOWN_COLUMNS]
        if use.spills:
            found.append(f"{name} spills {use.spills} registers to memory: keep fewer values alive, or smaller tiles")
        elif use.scratch:
            found.append(f"{name} has {use.scratch} bytes of scratch a lane: index its local arrays by constants alone")
        if use.occupancy is not None and use.occupancy < FEW_WAVES:
            limit = "LDS" if use.vgpr + use.agpr <= _REGISTERS // FEW_WAVES else "registers"
            found.append(f"{name} lets only {use.occupancy} waves share a SIMD, by its use of {limit}")
    return found
