"""Compile one file for a GPU that need not be here."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bench.adhoc import read_source
from bench.build.gpu import CodeObject, Target
from bench.build.offload import compile_cuda, compile_hip, heaviest, plan_for
from bench.build.triton_build import compile_triton
from bench.errors import ExitCode, UsageError
from bench.judge.schemas import Language
from bench.sandbox import Level, reach, scratch_folder
from bench.task import find_task
from bench.verdict import Rejected

app = typer.Typer()


class SourceLanguage(StrEnum):
    """A language that is compiled for GPUs."""

    HIP = "hip"
    CUDA = "cuda"
    TRITON = "triton"


_SUFFIXES = {".hip": SourceLanguage.HIP, ".cu": SourceLanguage.CUDA, ".py": SourceLanguage.TRITON}


@app.command()
def build(
    kernel: Annotated[str, typer.Argument(help="Name of a kernel; `kcourt task list` shows them.")],
    file: Annotated[Path, typer.Argument(help="The submission's source file, in HIP, CUDA or Triton.")],
    target: Annotated[Target, typer.Option(help="The GPU's architecture.")],
    language: Annotated[SourceLanguage | None, typer.Option(help="Default: .hip, .cu or .py (Triton).")] = None,
    as_one_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compile one file for a GPU that need not be here, and see what its kernels take: registers, LDS, spills.

    ROCm's hipcc compiles HIP where that is installed; else the packages of `pip install 'kernelcourt[offline]'`, whose
    compiler is LLVM's own: its numbers say whether a kernel compiles and spills, not which of two is faster. CUDA is
    compiled by nvcc, for sm_90 alone. Of a Triton file the entry point is called on tensors without values, of preset
    XL, and what it launches is compiled.

    Exit code 0 when it compiles, 1 when it does not or there is no compiler, 2 on a usage error.

    Example: kcourt build rmsnorm my.hip --target gfx942
    """
    task, chosen, text = find_task(kernel), language or _language_of(file), read_source(file)
    if chosen is SourceLanguage.CUDA and target.is_amd:
        raise UsageError(f"{file}: CUDA is not compiled for {target}, a GPU of AMD; hipify it, or take --target sm_90")
    sandbox = reach(str(Level.LIMITS))
    with scratch_folder() as folder:
        source = folder / f"{kernel}{Language(chosen).suffix}"
        source.write_text(text, encoding="utf-8")
        try:
            match chosen:
                case SourceLanguage.HIP:
                    made = compile_hip(sandbox, folder, source, target, plan_for(source, target))
                case SourceLanguage.CUDA:
                    made = compile_cuda(sandbox, folder, source, target)
                case SourceLanguage.TRITON:
                    made = compile_triton(sandbox, folder, source, task, target)
        except Rejected as rejected:
            _show_failure(rejected, as_one_json)
            raise typer.Exit(ExitCode.FAILED) from None
    if as_one_json:
        typer.echo(json.dumps({"kernel": kernel, **heaviest(made.kernels), **made.model_dump(mode="json")}))
    else:
        _show(kernel, made)


def _language_of(path: Path) -> SourceLanguage:
    """Raises UsageError for a file that is not compiled for GPUs."""
    if path.suffix not in _SUFFIXES:
        known = "HIP (.hip), CUDA (.cu) and Triton (.py)"
        raise UsageError(f"{path}: only {known} are compiled for GPUs; or say --language")
    return _SUFFIXES[path.suffix]


def _show_failure(rejected: Rejected, as_one_json: bool) -> None:
    typer.echo(f"{rejected.log}\nerror: {rejected.detail['message']}", err=True)
    if as_one_json:
        message = rejected.detail["message"]
        typer.echo(json.dumps({"error": {"code": rejected.outcome, "message": message, "log": rejected.log}}))


def _show(kernel: str, made: CodeObject) -> None:
    from rich.table import Table

    from bench.reports.terminal import console_for

    console = console_for()
    console.print(f"[bold]{kernel}[/bold] for {made.target}: {made.bytes} bytes by {made.compiler}", highlight=False)
    columns = ("vgpr", "agpr", "sgpr", "spills", "lds", "scratch", "occupancy", "matrix")
    table = Table("kernel", *columns)
    for use in made.kernels:
        cells = (getattr(use, name) for name in columns)
        table.add_row(use.name, *("-" if cell is None else str(cell) for cell in cells))
    console.print(table)
