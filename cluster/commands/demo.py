"""Run a whole small study on this machine: two judges, three scripted agents, no model."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help=__doc__)


@app.command()
def demo(
    allow_sandbox: Annotated[str, typer.Option(help="Weakest sandbox level to grade with.")] = "limits",
    kernels: Annotated[str | None, typer.Option(help="Other kernels than the study's tag: a selector.")] = None,
    preset: Annotated[str | None, typer.Option(help="Another preset than the study's.")] = None,
    run_root: Annotated[Path | None, typer.Option(help="Folder that gets the run directory.")] = None,
    render_to: Annotated[
        Path | None, typer.Option(help="Folder that gets the rendered setups; default: experiments/.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Run a whole small study on this machine: two judges, three scripted agents, no model.

    gold replays good solutions, noop submits the unchanged start material, stumbler gets three kernels wrong
    before it gets them right.

    Example: kcourt demo
    """
    from cluster.commands.local_job import run_here
    from cluster.study.places import experiments_root
    from cluster.study.render import Choices, build, write
    from cluster.study.snapshots import snapshot
    from cluster.study.studies import read_study
    from cluster.study.systems import choose_system

    study = read_study("demo")
    if kernels:
        study = study.model_copy(update={"tag": kernels})
    overrides = {"SANDBOX_ALLOW": allow_sandbox, **({"PRESET": preset} if preset else {})}
    choices = Choices(choose_system(os.environ, "local"), overrides=overrides)
    now = datetime.now(UTC)
    rendered = write(build(study, render_to or experiments_root(), choices))
    done = run_here([snapshot(setup, now).env for setup in rendered], {}, run_root, as_json)
    if not as_json and done.layout.report.exists():
        _next(done.layout.results, done.layout.report)
    raise typer.Exit(done.summary.ending.exit_code)


def _next(results: Path, report: Path) -> None:
    typer.echo("\nTry next:")
    typer.echo(f"  kcourt db summary {results}")
    typer.echo("  kcourt grade softmax_rows tasks/ml/softmax_rows/baseline.c --preset S --allow-sandbox limits")
    typer.echo(f"  xdg-open {report}")
