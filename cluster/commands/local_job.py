"""Runs one job on this machine and shows it: what `kcourt run` and `kcourt demo` have in common."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from bench.places import anchored
from bench.reports.terminal import console_for, results_table
from bench.results.queries import opened, table
from cluster.commands.view import view_for
from cluster.job.launchers.local import LocalLauncher
from cluster.job.layout import RunLayout
from cluster.job.life import run_job
from cluster.job.summary import Standing, Summary
from cluster.study.wave import read_wave


@dataclass(frozen=True)
class Done:
    """A job that has been run: where it lies, and what it came to."""

    layout: RunLayout
    summary: Summary

    def document(self) -> dict[str, Any]:
        """The summary as JSON-able values, with its run directory."""
        return {"run": str(self.layout.root), **self.summary.document()}


def run_here(envs: Sequence[Path], overrides: Mapping[str, str], run_root: Path | None, as_json: bool) -> Done:
    """Run the setups of `envs` as one job on this machine, show it, and print its table or its summary.

    Raises:
        ConfigError, EnvironmentFault: as `live` does.
    """
    console = console_for(stderr=as_json)  # standard output is the JSON object's alone
    done = live(envs, overrides, run_root, console)
    print_result(console, done, as_json)
    return done


def print_result(console: Console, done: Done, as_json: bool) -> None:
    """A job's summary as one JSON object, or its table and what is not delivered."""
    if as_json:
        typer.echo(json.dumps(done.document()))
    else:
        print_done(console, done)


def live(envs: Sequence[Path], overrides: Mapping[str, str], run_root: Path | None, console: Console) -> Done:
    """Run the setups of `envs` as one job on this machine and show it while it lives.

    Raises:
        ConfigError: an env file is wrong, or the files do not go together.
        EnvironmentFault: this machine lacks something, such as the GPUs of DEVICE.
    """
    wave = read_wave(envs, overrides)
    settings = wave.settings
    root = (run_root or anchored(settings.run_root)).resolve()
    launcher = LocalLauncher(settings.nodes, settings.job_wall_seconds, settings.device)
    layout = RunLayout(root / local_job_id(datetime.now(UTC)))
    with view_for(console) as view:
        summary = run_job(wave, layout.root, launcher, view)
    return Done(layout, summary)


def local_job_id(now: datetime) -> str:
    """Id of a job that no scheduler named: `local-<UTC>`, to the millisecond."""
    return f"local-{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z"


def print_done(console: Console, done: Done) -> None:
    """The table of grades, what is not delivered, and where it all lies."""
    if done.layout.results.exists():
        with opened([done.layout.results]) as database:
            console.print(results_table(table(database)))
    for line in account_lines(done.summary):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(f"run directory: {done.layout.root}"), soft_wrap=True)


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
