"""See where one file spends its time."""

import json
from pathlib import Path
from typing import Annotated

import typer

from bench.adhoc import language_of, profile_file
from bench.court import open_court
from bench.errors import EnvironmentFault, ExitCode, JudgeFault
from bench.judge.schemas import Device, GpuOrCpu, Language, Outcome, ProfileTool
from bench.profilers import GPU_PROFILERS
from bench.records import Lacking, ProfileReport

app = typer.Typer()


@app.command()
def profile(
    kernel: Annotated[str, typer.Argument(help="Name of a kernel; `kcourt task list` shows them.")],
    file: Annotated[Path, typer.Argument(help="The submission's source file; not Python.")],
    tool: Annotated[
        ProfileTool,
        typer.Option(
            help="callgrind counts instructions, perf samples time, isa shows registers; the others count on a GPU."
        ),
    ],
    language: Annotated[Language | None, typer.Option(help="Language; default: by the file's suffix.")] = None,
    device: Annotated[GpuOrCpu | None, typer.Option(help="What it runs on; default: what the tool is for.")] = None,
    allow_sandbox: Annotated[str, typer.Option(help="Weakest sandbox level to run with.")] = "user",
    as_one_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """See where one file spends its time, by function and by line. It is no grade, and nothing is kept.

    callgrind runs one call at preset S and counts the same at every run; perf repeats calls at preset M for a second;
    isa compiles HIP for an AMD GPU, and calls nothing. rocprofv3 and rocprof-compute (AMD) and ncu (NVIDIA) run a call
    at preset XL on a GPU.

    Exit code 0 when there is an outcome (whatever it is), 2 on a usage error, 3 when the judge failed, or the tool
    or something else is missing on this machine.

    Example: kcourt profile softmax_rows my.c --tool callgrind --allow-sandbox limits

    Example: kcourt profile rmsnorm my.cu --tool ncu
    """
    chosen = language or language_of(file)
    runs_on = device or (GPU_PROFILERS[tool].vendor.device if tool in GPU_PROFILERS else GpuOrCpu.CPU)
    try:
        found = profile_file(open_court(allow_sandbox, device=Device(runs_on)), kernel, file, chosen, tool)
    except EnvironmentFault as error:
        raise JudgeFault(str(error)) from error
    if isinstance(found, Lacking):
        raise JudgeFault(found.why)
    if as_one_json:
        typer.echo(json.dumps(found.answer(kernel, 0).model_dump(mode="json")))
    else:
        _show(kernel, found)
    if found.outcome is Outcome.JUDGE_FAULT:
        raise typer.Exit(ExitCode.JUDGE_FAULT)


def _show(kernel: str, found: ProfileReport) -> None:
    if found.outcome is Outcome.SOLVED:
        typer.echo(found.report, nl=False)
        return
    typer.echo(f"{kernel}: {found.outcome}")
    for name, value in {"property": found.property, **found.detail}.items():
        typer.echo(f"  {name}: {value}")
    if found.log:
        typer.echo(found.log)
