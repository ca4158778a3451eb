"""Sample how a node is used, and sum up how the nodes of a job were.

Example: kcourt monitor report 4711
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cluster.job.node_use import NodeUse

app = typer.Typer(help=__doc__, no_args_is_help=True)


@app.command()
def sample(
    csv: Annotated[Path, typer.Option(metavar="FILE", help="CSV file that rows are appended to.")],
    every: Annotated[float, typer.Option(min=0.05, help="Seconds from row to row.")] = 5.0,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="state.json of the Slurm job; cancels it when its first node is lost."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
) -> None:
    """Sample CPU, memory, network and GPUs of this node until it is ended (Ctrl-C, SIGTERM).

    A job runs this on each of its nodes. The columns say their units; network bytes are those since the row before.
    With --state it also looks after the job: one whose own process was lost with its node would keep its other nodes.

    Example: kcourt monitor sample --csv node.csv --every 5
    """
    from cluster.job import monitor
    from cluster.job.survivor import Survivor

    os.nice(19)
    job_id = os.environ.get("SLURM_JOB_ID")
    after_row = Survivor(state, job_id).look if state and job_id else lambda: None
    rows = monitor.sample(csv, every, monitor.Sampler(monitor.gpu_reader()), after_row)
    if as_json:
        typer.echo(json.dumps({"csv": str(csv), "samples": rows}))
    else:
        typer.echo(f"{rows} samples in {csv}")


@app.command()
def report(
    job: Annotated[str, typer.Argument(metavar="JOB", help="A job's id below RUN_ROOT, or its run directory.")],
    run_root: Annotated[Path | None, typer.Option(help="Folder of run directories; wins over RUN_ROOT.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Sum up how each node of a job was used: mean, median and maximum of every column.

    Example: kcourt monitor report 4711
    """
    from cluster.job.node_use import nodes_of
    from cluster.job.watch import find_run

    layout = find_run(job, run_root)
    nodes = nodes_of(layout)
    if as_json:
        typer.echo(json.dumps({"run": str(layout.root), "nodes": [asdict(node) for node in nodes]}))
    elif nodes:
        _print(nodes)
    else:
        typer.echo(f"no node of this run was sampled: {layout.monitor} holds no CSV file")


def _print(nodes: "list[NodeUse]") -> None:
    from rich.text import Text

    from bench.reports.terminal import console_for, plain_table

    console = console_for()
    for node in nodes:
        roles = ", ".join(node.roles) or "no role known"
        damaged = f", {node.damaged} damaged rows left out" if node.damaged else ""
        console.print(
            Text(f"{node.node} ({roles}): {node.samples} samples over {node.sampled_s:.0f} s{damaged}"), soft_wrap=True
        )
        rows = [
            (name, *(_amount(name, value) for value in (spread.mean, spread.median, spread.max)))
            for name, spread in node.columns.items()
        ]
        console.print(plain_table(("column", "mean", "median", "max"), rows))


def _amount(column: str, value: float) -> str:
    """A number as people read it; bytes with a unit of their own."""
    from rich.filesize import decimal

    return decimal(int(value)) if column.endswith("_bytes") else f"{value:.1f}"
