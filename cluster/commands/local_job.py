"""Runs one job on this machine and shows it: what `kcourt run` and `kcourt demo` have in common."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.results.queries import TableRow, opened, table
from cluster.commands.view import view_for
from cluster.job.launchers.local import LocalLauncher
from cluster.job.layout import RunLayout, checkout
from cluster.job.life import run_job
from cluster.job.summary import Standing, Summary
from cluster.study.wave import read_wave


@dataclass(frozen=True)
class Done:
    """A job that was run here."""

    layout: RunLayout
    summary: Summary


def run_here(envs: Sequence[Path], overrides: Mapping[str, str], run_root: Path | None, as_json: bool) -> Done:
    """Run the setups of `envs` as one job on this machine, show it, and print its table or its summary.

    Raises:
        ConfigError: an env file is wrong, or the files do not go together.
        EnvironmentFault: this machine lacks something.
    """
    wave = read_wave(envs, overrides)
    settings = wave.settings
    root = (run_root or checkout() / settings.run_root).resolve()
    console = console_for(as_json)
    launcher = LocalLauncher(settings.nodes, settings.job_wall_seconds)
    layout = RunLayout(root / local_job_id(datetime.now(UTC)))
    with view_for(console) as view:
        summary = run_job(wave, layout.root, launcher, view)
    if as_json:
        typer.echo(json.dumps({"run": str(layout.root), **summary.document()}))
    else:
        _print(console, layout, summary)
    return Done(layout, summary)


def console_for(as_json: bool) -> Console:
    """Where people read: standard error beside JSON. A file or a pipe has no width of its own; tables need 100."""
    console = Console(stderr=as_json)
    return console if console.is_terminal else Console(stderr=as_json, width=100)


def local_job_id(now: datetime) -> str:
    """Id of a job that no scheduler named: `local-<UTC>`, to the millisecond."""
    return f"local-{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z"


def _print(console: Console, layout: RunLayout, summary: Summary) -> None:
    if layout.results.exists():
        with opened([layout.results]) as database:
            console.print(results_table(table(database)))
    for line in account_lines(summary):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(f"run directory: {layout.root}"), soft_wrap=True)


def results_table(rows: Sequence[TableRow]) -> Table:
    """The grades that count, one row a (kernel, setup)."""
    shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("kernel", "setup", "outcome"):
        shown.add_column(name, no_wrap=True)
    for name in ("speedup", "90 % interval", "faster", "grades", "seconds"):
        shown.add_column(name, no_wrap=True, justify="right")
    for row in rows:
        shown.add_row(*map(Text, cells(row)))
    return shown


def cells(row: TableRow) -> tuple[str, ...]:
    """A row as text; what is unknown is a dash."""
    verdict, seconds = row.verdict, "-" if row.seconds is None else f"{row.seconds:.1f}"
    if verdict is None:
        outcome = f"none ({row.end})" if row.end else "none"
        return (row.assignment.kernel, row.assignment.setup, outcome, "-", "-", "-", str(row.grades), seconds)
    return (
        row.assignment.kernel,
        row.assignment.setup,
        verdict.outcome,
        "-" if verdict.score is None else f"{verdict.score:.2f}x",
        "-" if verdict.interval is None else "{:.2f}..{:.2f}".format(*verdict.interval),
        "-" if verdict.faster is None else "yes" if verdict.faster else "no",
        str(row.grades),
        seconds,
    )


def account_lines(summary: Summary) -> list[str]:
    """The totals, then one line for each item that is not delivered."""
    counts = ", ".join(f"{summary.count(standing)} {standing}" for standing in Standing)
    lines = [f"{len(summary.items)} planned: {counts}; {summary.ending.seconds:.0f} s; {_ending(summary)}"]
    for item in summary.items:
        if item.standing is not Standing.DELIVERED:
            blame = f" {item.owed}" if item.owed else ""
            lines.append(f"{item.standing}{blame}: {item.setup} {item.kernel} slot {item.slot}: {item.why}")
    return lines


def _ending(summary: Summary) -> str:
    code = summary.ending.exit_code
    return f"exit {int(code)} ({code.name.lower()}: {summary.ending.cause})"
