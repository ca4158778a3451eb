"""How a job uses its nodes: its plan, and what runs inside an allocation of Slurm.

Example: kcourt cluster plan experiments/.env.gold
"""

from pathlib import Path
from typing import Annotated

import typer

from cluster.commands.cluster_plan import plan

app = typer.Typer(help=__doc__, no_args_is_help=True)
app.command()(plan)


@app.command("run")
def run_job_here(
    envs: Annotated[list[Path], typer.Argument(metavar="ENV...", help="Env files of the job's setups: snapshots.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Run a job inside the Slurm allocation that this command is called in; the batch script calls it.

    Exits with the job's exit code. The run directory is <RUN_ROOT>/<job id>.

    Example: kcourt cluster run experiments/.rendered/gold-20260101T120000Z-0a1b2c3d.env
    """
    from cluster.commands.cluster_run import run_in_allocation

    run_in_allocation(envs, as_json)
