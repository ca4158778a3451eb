"""Check this machine and its site: what grading and launching need, what was found, what to do about the rest."""

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

from bench.errors import ExitCode

app = typer.Typer(help=__doc__)


@app.command()
def doctor(
    setup: Annotated[
        str | None, typer.Option(help="A rendered setup, or the path of an env file: check what it needs, too.")
    ] = None,
    nodes: Annotated[
        bool, typer.Option("--nodes", help="Ask every idle node of the partition with one short srun.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Check this machine and its site: what grading and launching need, what was found, what to do about the rest.

    Ends with 0 when nothing blocks, else with 64.

    Example: kcourt doctor --setup gold --nodes
    """
    from bench.reports.terminal import console_for, plain_table
    from cluster.doctor import examine
    from cluster.doctor.check import State, blocks

    checks = examine(os.environ, setup, nodes)
    blocked = blocks(checks)
    if as_json:
        typer.echo(json.dumps({"ok": not blocked, "checks": [asdict(check) for check in checks]}))
    else:
        console = console_for()
        console.print(plain_table(("check", "state", "found"), [(c.name, c.state, c.found) for c in checks]))
        for check in checks:
            if check.state is not State.OK:
                console.print(f"{check.name} ({check.state}): {check.advice}", markup=False, highlight=False)
    raise typer.Exit(ExitCode.CONFIGURATION if blocked else ExitCode.OK)
