"""Look at how a job would use its nodes: roles, ports and ranks.

Example: kcourt cluster plan experiments/.env.gold
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help=__doc__, no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps a group that has one command a group."""


@app.command()
def plan(
    env: Annotated[Path, typer.Argument(metavar="ENV", help="Env file of a setup.")],
    hosts: Annotated[
        str | None, typer.Option(help="Hosts of the allocation, comma separated; default: this machine.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Print how many nodes a setup needs, and which judge gets which port and rank.

    Example: kcourt cluster plan experiments/.env.gold --hosts n1,n2,n3,n4
    """
    from bench.reports.terminal import console_for, plain_table
    from cluster.job.allocation import Host, plan_job, split_of
    from cluster.job.launchers.local import this_host
    from cluster.study.settings import read_settings

    settings = read_settings(env)
    split, here = split_of(settings), this_host()
    nodes = [Host(name, here.cpus, here.sockets) for name in hosts.split(",")] if hosts else [here] * split.total
    planned = plan_job(nodes, settings)
    judges = [asdict(slot) | {"judge_port": slot.judge_port, "url": slot.url} for slot in planned.judges]
    if as_json:
        agents = [host.name for host in planned.agents]
        inference = [host.name for host in planned.inference]
        found = {"nodes": split.total, "inference": inference, "agents": agents, "judges": judges}
        typer.echo(json.dumps(found))
        return
    console = console_for()
    console.print(f"{split}; ask for --nodes={split.total}", highlight=False)
    rows = [
        (slot.rank, slot.host.name, slot.node, slot.slot, slot.router_port, slot.judge_port, slot.url)
        for slot in planned.judges
    ]
    columns = ("rank", "host", "node", "slot", "router port", "judge port", "url")
    console.print(plain_table(columns, rows))
