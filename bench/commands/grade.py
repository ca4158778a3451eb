"""Grade one file here and now."""

import json
from pathlib import Path
from typing import Annotated

import typer

from bench.adhoc import adhoc_database, as_json, grade_file, language_of
from bench.court import open_court
from bench.errors import EnvironmentFault, ExitCode, JudgeFault
from bench.evaluation import parse_plan
from bench.inputs import sizes_text
from bench.judge.schemas import Device, GpuOrCpu, Language, Outcome, Preset
from bench.records import GradeReport

app = typer.Typer()


@app.command()
def grade(
    kernel: Annotated[str, typer.Argument(help="Name of a kernel; `kcourt task list` shows them.")],
    file: Annotated[Path, typer.Argument(help="The submission's source file.")],
    language: Annotated[Language | None, typer.Option(help="Language; default: by the file's suffix.")] = None,
    preset: Annotated[Preset, typer.Option(help="Size of the timed inputs.")] = Preset.XL,
    protocol: Annotated[str, typer.Option(help="mw2x5 is the preview, mw4x5 the grade.")] = "mw4x5",
    device: Annotated[
        GpuOrCpu, typer.Option(help="What to grade on; on a CPU, HIP is checked by an emulator and not timed.")
    ] = GpuOrCpu.CPU,
    allow_sandbox: Annotated[str, typer.Option(help="Weakest sandbox level to grade with.")] = "user",
    as_one_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Grade one file here and now.

    Exit code 0 when a grade was made (whatever it found), 2 on a usage error, 3 when the judge failed:
    this machine cannot grade, a judge's fault, or a row that could not be kept.

    Example: kcourt grade softmax_rows my.c --preset M --allow-sandbox limits

    Example: kcourt grade rmsnorm my.hip --device cuda
    """
    chosen = language or language_of(file)
    try:
        court = open_court(allow_sandbox, tools=parse_plan(), device=Device(device))
        graded = grade_file(court, kernel, file, chosen, preset, protocol)
    except EnvironmentFault as error:
        raise JudgeFault(str(error)) from error
    if as_one_json:
        typer.echo(json.dumps(as_json(kernel, graded.report)))
    else:
        _show(kernel, graded.report)
    if graded.lost:
        typer.echo(f"error: this grade is not in {adhoc_database()}: {graded.lost}; keep what is printed", err=True)
    if graded.lost or graded.report.outcome is Outcome.JUDGE_FAULT:
        raise typer.Exit(ExitCode.JUDGE_FAULT)


def _show(kernel: str, report: GradeReport) -> None:
    from rich.table import Table

    from bench.reports.terminal import console_for

    console = console_for()
    console.print(f"[bold]{kernel}[/bold]: {report.outcome}", highlight=False)
    if report.device is Device.EMULATED:
        console.print("on the emulator, which tells right from wrong alone: nothing was timed", highlight=False)
    if report.interval is not None and report.score is not None:
        low, high = report.interval
        verdict = "faster than the baseline" if report.faster else "not shown to be faster than the baseline"
        console.print(f"S = {report.score:.3f} (90 % interval of the raw ratio {low:.3f} to {high:.3f}): {verdict}")
    for name, value in {"property": report.property, **report.detail}.items():
        if value is not None:
            console.print(f"  {name}: {value}", markup=False, highlight=False)
    if report.log:
        console.print(report.log, markup=False, highlight=False)
    if report.cells:
        table = Table("input", "ratio", "raw", "p", "candidate ms", "baseline ms")
        for cell in report.cells:
            table.add_row(
                sizes_text(cell.sizes),
                f"{cell.ratio:.3f}",
                f"{cell.raw:.3f}",
                f"{cell.p:.3f}",
                f"{sorted(cell.candidate_ns)[len(cell.candidate_ns) // 2] / 1e6:.3f}",
                f"{sorted(cell.denominator_ns)[len(cell.denominator_ns) // 2] / 1e6:.3f}",
            )
        console.print(table)
    if report.suspect:
        console.print(f"suspect: {report.suspect}", markup=False, highlight=False)
    for tool in report.provenance.get("tools", {}).get("results", ()):
        why = f" ({tool['why']})" if "why" in tool else ""
        console.print(
            f"tool {tool['tool']}: {tool['execution']}, {tool['finding']}{why}", markup=False, highlight=False
        )
    for warning in report.provenance.get("quiet", ()):
        console.print(f"warning: {warning}", markup=False, highlight=False)
    console.print(
        f"protocol {report.protocol}, preset {report.preset}, sandbox {report.sandbox}, "
        f"judge's overhead {report.overhead_ms:.0f} ms; grade {report.grade_id} in {adhoc_database()}",
        highlight=False,
        soft_wrap=True,
    )
