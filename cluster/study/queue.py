"""Slurm's queue: which setups wait or run there, and how a snapshot is put into it."""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench import process
from bench.errors import EnvironmentFault
from bench.places import anchored, checkout
from cluster.study.job_shape import Option, sbatch_options
from cluster.study.snapshots import Snapshot

SBATCH_SCRIPT = checkout() / "cluster" / "services.sbatch"
ANSWER_WITHIN_S = 120
# Slurm's commands take options from these, and a job inherits what describes another one: where the caller runs.
_OF_THE_CALLER = re.compile(r"S(BATCH|LURM|QUEUE)_(?!CONF$|JWT$)")
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
    """A job that waits or runs; its name is that of its setup."""

    job_id: str
    name: str
    state: QueueState


def jobs_of(user: str) -> list[QueuedJob]:
    """The jobs of a user (name or number) that wait or run.

    Raises:
        EnvironmentFault: there is no squeue, or it does not answer.
    """
    answer = _asked(["squeue", "--noheader", f"--user={user}", "--format=%i %T %j"])
    if not answer.ok:
        raise EnvironmentFault(f"squeue failed: {answer.said}; try again when Slurm answers")
    return parse_queue(answer.output)


@dataclass(frozen=True)
class _Answer:
    """What one of Slurm's commands printed, errors and all, and whether it was content."""

    ok: bool
    output: str

    @property
    def said(self) -> str:
        return self.output.strip() or "it printed nothing"


def _asked(argv: Sequence[str]) -> _Answer:
    """Run a command of Slurm to its end; a queue may be longer than what `process.run` keeps of an output."""
    with tempfile.TemporaryFile() as sink:
        child = process.spawn(argv, env=slurm_environment(os.environ), output=sink)
        try:
            in_time = process.ends_within(child, ANSWER_WITHIN_S)
        finally:
            process.kill_tree(child)
        sink.seek(0)
        output = sink.read().decode(errors="replace")
    return _Answer(in_time and child.returncode == 0, output if in_time else f"no answer within {ANSWER_WITHIN_S} s")


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
    return {job.name: job for job in sorted(jobs, key=lambda job: job.state is QueueState.RUNNING)}


def logs_folder(scratch: Path) -> Path:
    """Where Slurm's own output goes."""
    return anchored(scratch) / "logs"


def sbatch_argv(shape: Sequence[Option], snapshot: Snapshot, script: Path, logs: Path, reserve_s: int) -> list[str]:
    """The command line that submits a snapshot; its job is warned `reserve_s` seconds before its wall clock."""
    return [
        "sbatch",
        "--parsable",
        "--no-requeue",
        f"--job-name={snapshot.setup}",
        f"--output={logs}/services-%j.out",
        f"--error={logs}/services-%j.err",
        f"--signal=B:USR1@{reserve_s}",
        *sbatch_options(list(shape)),
        str(script),
        str(snapshot.env),
    ]


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
    answer = _asked(argv)
    job_id = _JOB_ID.search(answer.output) if answer.ok else None
    if job_id is None:
        raise EnvironmentFault(f"sbatch refused: {answer.said}; `kcourt job options SETUP` shows what it is asked for")
    return job_id[1]


def slurm_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What Slurm's commands see: nothing that another job or the caller's own variables would have decide."""
    return {name: value for name, value in environ.items() if not _OF_THE_CALLER.match(name)}
