"""Slurm's queue: which setups wait or run there, and how a snapshot is put into it."""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench.errors import EnvironmentFault
from bench.places import anchored, checkout
from cluster.environment import allowed
from cluster.slurm import asked
from cluster.study.job_shape import Option, sbatch_options
from cluster.study.settings import JobSettings
from cluster.study.snapshots import Snapshot

SBATCH_SCRIPT = checkout() / "cluster" / "services.sbatch"
_JOB_ID = re.compile(r"^(\d+)(?:;\S+)?$", re.MULTILINE)  # as `sbatch --parsable` says it


class QueueState(StrEnum):
    """Where a job is that has not ended."""

    QUEUED = "queued"
    RUNNING = "running"


# Slurm's words for jobs that have started and not ended; those of _ENDED are gone, every other one waits.
_STARTED = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT"}
_ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
    *("PREEMPTED", "REVOKED", "TIMEOUT"),
}


@dataclass(frozen=True)
class QueuedJob:
    """A job that waits or runs; its name is that of its setup, or of all its setups with commas between."""

    job_id: str
    name: str
    state: QueueState


def own_jobs() -> list[QueuedJob]:
    """The jobs of the caller that wait or run.

    Raises:
        EnvironmentFault: there is no squeue, or it does not answer.
    """
    answer = asked(["squeue", "--noheader", f"--user={os.getuid()}", "--format=%i %T %j"])
    if not answer.ok:
        raise EnvironmentFault(f"squeue failed: {answer.said}; try again when Slurm answers")
    return parse_queue(answer.output)


def parse_queue(listing: str) -> list[QueuedJob]:
    """The lines `<id> <STATE> <name>` of squeue; one of another form, as a warning, is left out."""
    found = []
    for line in listing.splitlines():
        match line.split(maxsplit=2):
            case [job_id, state, name] if job_id[0].isdigit() and state not in _ENDED:
                found.append(QueuedJob(job_id, name, QueueState.RUNNING if state in _STARTED else QueueState.QUEUED))
    return found


def by_setup(jobs: Iterable[QueuedJob]) -> dict[str, QueuedJob]:
    """Setup → its job; of several the one that runs."""
    ordered = sorted(jobs, key=lambda job: job.state is QueueState.RUNNING)
    return {setup: job for job in ordered for setup in job.name.split(",")}


def logs_folder(scratch: Path) -> Path:
    """Where Slurm's own output goes."""
    return anchored(scratch) / "logs"


def job_logs(job_id: str) -> tuple[str, str]:
    """Names of the files that Slurm writes a job's own output and errors to, in the folder of logs."""
    return f"services-{job_id}.out", f"services-{job_id}.err"


def sbatch_argv(
    shape: Sequence[Option],
    snapshots: Sequence[Snapshot],
    logs: Path,
    settings: JobSettings,
    environ: Mapping[str, str],
) -> list[str]:
    """The command line that submits the snapshots of one job, which is warned when what is left is its reserve.

    Of its caller's environment the job has what an allow-list names and the keys it needs, by name.
    """
    variables = allowed(environ, settings.secret_variables)
    return [
        "sbatch",
        "--parsable",
        f"--job-name={','.join(made.setup for made in snapshots)}",
        *(f"--{name}={logs / path}" for name, path in zip(("output", "error"), job_logs("%j"), strict=True)),
        f"--signal=B:USR1@{settings.reserve_s}",
        f"--export={','.join(sorted(variables))}",
        *sbatch_options(shape),
        str(SBATCH_SCRIPT),
        str(kcourt_command()),
        *(str(made.env) for made in snapshots),
    ]


def kcourt_command() -> Path:
    """This installation's own `kcourt`, by its path: on a node PATH may hold another one."""
    return Path(sys.executable).with_name("kcourt")


def submit(argv: Sequence[str], logs: Path) -> str:
    """Hand a job to Slurm, which opens its logs before the script runs; returns the job's id.

    Raises:
        EnvironmentFault: there is no sbatch, or it refused; its own words are in the message.
    """
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(
            f"{logs}: cannot be made ({error.strerror}); set KCOURT_SCRATCH to another folder"
        ) from error
    answer = asked(argv)
    job_id = _JOB_ID.search(answer.output) if answer.ok else None
    if job_id is None:
        raise EnvironmentFault(f"sbatch refused: {answer.said}; `kcourt job options SETUP` shows what it is asked for")
    return job_id[1]
