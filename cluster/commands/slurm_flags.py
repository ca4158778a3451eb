"""The options that decide where and how a job runs: declared once for every command that takes them."""

from typing import Annotated

import typer

from cluster.study.job_shape import VARIABLES

System = Annotated[str | None, typer.Option(help="The system; wins over KCOURT_SYSTEM.")]
Partition = Annotated[str | None, typer.Option(help="Slurm partition; wins over SBATCH_PARTITION.")]
Account = Annotated[str | None, typer.Option(help="Account that pays; wins over SBATCH_ACCOUNT.")]
Qos = Annotated[str | None, typer.Option(help="Quality of service; wins over SBATCH_QOS.")]
Reservation = Annotated[str | None, typer.Option(help="Reservation; wins over SBATCH_RESERVATION.")]
Constraint = Annotated[str | None, typer.Option(help="Node features; wins over SBATCH_CONSTRAINT.")]
GpusPerNode = Annotated[str | None, typer.Option(help="GPUs of a node; wins over SBATCH_GPUS_PER_NODE.")]
Time = Annotated[str | None, typer.Option(help="Wall time as 12:00:00; wins over SBATCH_TIMELIMIT.")]


def given_flags(context: typer.Context) -> dict[str, str]:
    """sbatch option → text of those that the command line gives, as `job_shape` takes them."""
    names = {name: name.replace("_", "-") for name in context.params}
    given = {names[name]: value for name, value in context.params.items() if names[name] in VARIABLES}
    return {name: value for name, value in given.items() if value is not None}
