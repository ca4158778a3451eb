"""List the logs of a job, print the end of some, and follow them."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UsageError
from cluster.job.logs import Log, LogRole

if TYPE_CHECKING:
    from cluster.job.layout import RunLayout

app = typer.Typer(help=__doc__)


@app.command()
def logs(
    job: Annotated[str, typer.Argument(metavar="JOB", help="A job's id below RUN_ROOT, or its run directory.")],
    role: Annotated[LogRole | None, typer.Option(help="Whose logs; without it they are listed.")] = None,
    rank: Annotated[int | None, typer.Option(min=0, help="One judge rank, or one inference replica.")] = None,
    node: Annotated[str | None, typer.Option(help="One agent node by its number, one monitor by its node.")] = None,
    episode: Annotated[str | None, typer.Option(metavar="LABEL", help="What an episode's client printed.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is added, until the job has ended.")
    ] = False,
    tail: Annotated[int, typer.Option(min=0, help="How many of the last lines.")] = 50,
    run_root: Annotated[Path | None, typer.Option(help="Folder of run directories; wins over RUN_ROOT.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the logs of a job, print the end of some, and follow them.

    Roles are job (Slurm's own output of the job), inference, agent, judge and monitor.

    Example: kcourt logs 4711 --role judge --rank 3 -f
    """
    from cluster.job.watch import find_run

    if follow and (as_json or (role is None and episode is None)):
        raise UsageError("--follow prints lines of chosen logs: give --role or --episode, and leave --json out")
    layout = find_run(job, run_root)
    found = _chosen(layout, role, rank, node, episode)
    if role is None and episode is None:
        _list(layout, found, as_json)
    elif as_json:
        _print_json(layout, found, tail)
    else:
        _print(layout, found, tail, follow)


def _chosen(
    layout: "RunLayout", role: LogRole | None, rank: int | None, node: str | None, episode: str | None
) -> list[Log]:
    """The logs that the options name; without any, all of them."""
    from cluster.job.logs import attempt_logs, chosen, logs_of

    if episode is not None:
        if role not in (None, LogRole.AGENT) or rank is not None or node is not None:
            raise UsageError("--episode names an agent's logs already; leave --rank, --node and another --role out")
        return attempt_logs(layout, episode)
    _check(role, rank, node)
    found = logs_of(layout)
    return found if role is None else chosen(found, role, node if rank is None else str(rank))


def _check(role: LogRole | None, rank: int | None, node: str | None) -> None:
    """Raises UsageError for an option that the role does not have."""
    if rank is not None and role not in (LogRole.JUDGE, LogRole.INFERENCE):
        raise UsageError("--rank is for --role judge and --role inference; name nodes with --node")
    if node is not None and role not in (LogRole.AGENT, LogRole.MONITOR):
        raise UsageError("--node is for --role agent and --role monitor; name ranks with --rank")


def _document(log: Log) -> dict[str, object]:
    return asdict(log) | {"path": str(log.path), "bytes": log.bytes}


def _list(layout: "RunLayout", found: list[Log], as_json: bool) -> None:
    from rich.filesize import decimal

    from bench.reports.terminal import console_for, plain_table

    if as_json:
        typer.echo(json.dumps({"run": str(layout.root), "logs": [_document(log) for log in found]}))
        return
    rows = [(log.role, log.name, decimal(log.bytes), log.path) for log in found]
    console_for().print(plain_table(("role", "name", "size", "path"), rows))
    typer.echo("what the clients of an episode printed: --episode LABEL")


def _print_json(layout: "RunLayout", found: list[Log], lines: int) -> None:
    from cluster.job.lines import tail

    shown = [
        _document(log) | {"lines": [line.decode(errors="replace") for line in tail(log.path, lines).lines]}
        for log in found
    ]
    typer.echo(json.dumps({"run": str(layout.root), "logs": shown}))


def _print(layout: "RunLayout", found: list[Log], lines: int, follow: bool) -> None:
    from cluster.job.lines import tail
    from cluster.job.logs import followed
    from cluster.job.watch import Watcher

    several = len(found) > 1
    tails = [tail(log.path, lines) for log in found]
    for log, end in zip(found, tails, strict=True):
        # A line that is not whole yet is shown once it is, by what follows.
        _echo(log, end.whole if follow else end.lines, several)
    if follow:
        watcher = Watcher(layout)
        for log, added in followed(found, [end.offset for end in tails], lambda: watcher.is_over, time.sleep):
            _echo(log, added, several)


def _echo(log: Log, lines: list[bytes], several: bool) -> None:
    from cluster.commands.view import printable

    if several and lines:
        typer.echo(f"==> {log.path} <==")
    for line in lines:
        # Of a bar that is drawn over, what is left of it.
        shown = line.rstrip(b"\r").rpartition(b"\r")[2]
        typer.echo(printable(shown.decode(errors="replace")))
