"""Run the agents of one node of a job.

Example: kcourt agent run --config agents/agent-0.json
"""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help=__doc__, no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps a group that has one command a group."""


@app.command()
def run(
    config: Annotated[Path, typer.Option(help="JSON file with the settings of this node (AgentConfig).")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Work on this node's problems until all have ended; SIGTERM cancels.

    Exits with 0 when every episode ended by itself, with 130 when some were cancelled, with 70 when so many in a row
    failed for a reason outside of their agents that no more were started.

    Example: kcourt agent run --config agents/agent-0.json
    """
    from agent.config import AgentConfig
    from agent.driver import run_node

    report = run_node(AgentConfig.read(config))
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report)))
    else:
        ends = ", ".join(f"{count} {end}" for end, count in sorted(report.ends.items())) or "none"
        started = sum(report.ends.values())
        typer.echo(f"{started} of {report.planned} episodes ran: {ends}")
    raise typer.Exit(report.exit_code)
