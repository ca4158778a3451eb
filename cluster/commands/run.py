"""Run the setups of one or more env files as one job."""

from pathlib import Path
from typing import Annotated

import typer

from bench.errors import UsageError

app = typer.Typer(help=__doc__)


@app.command()
def run(
    envs: Annotated[list[Path], typer.Argument(metavar="ENV...", help="Env files of setups, rendered or your own.")],
    local: Annotated[bool, typer.Option("--local", help="On this machine, without Slurm.")] = False,
    run_root: Annotated[
        Path | None, typer.Option(help="Folder that gets the run directory; wins over RUN_ROOT.")
    ] = None,
    allow_sandbox: Annotated[
        str | None, typer.Option(help="Weakest sandbox level to grade with; wins over SANDBOX_ALLOW.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Run the setups of one or more env files as one job.

    Starts judges and agents, follows them to the end, merges, and prints what was delivered and what is owed.
    Several env files are one wave: they share the job's keys and may differ in the setup's.

    Example: kcourt run --local experiments/.env.gold experiments/.env.noop --allow-sandbox limits
    """
    if not local:
        raise UsageError(
            "say where to run: --local runs the job on this machine; `kcourt study submit` gives jobs to Slurm"
        )
    from cluster.commands.local_job import run_here

    overrides = {"SANDBOX_ALLOW": allow_sandbox} if allow_sandbox else {}
    done = run_here(envs, overrides, run_root, as_json)
    raise typer.Exit(done.summary.ending.exit_code)
