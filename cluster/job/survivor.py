"""Cancels a job of Slurm whose own process was lost with its node: nobody else would free the nodes that are left."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bench.errors import EnvironmentFault
from cluster.job.hosts import expand
from cluster.slurm import asked, facts, shown_job

# The job's process writes its state every second, but rests on its way down: silence alone says nothing.
SILENT_S = 15.0


class Survivor:
    """Looks, on a node of a job, whether the job's process is lost with its node; `clock` counts seconds.

    Slurm keeps such a job, which was submitted with --no-kill, on its other nodes until its time is over.
    """

    def __init__(self, state: Path, job_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._state, self._job_id, self._clock = state, job_id, clock
        self._seen, self._since = self._written(), clock()

    def look(self) -> None:
        """Cancel the job if its process is lost. Slurm is asked only while the job's state file does not change."""
        written, now = self._written(), self._clock()
        is_silent = written == self._seen
        if is_silent and now - self._since < SILENT_S:
            return
        self._seen, self._since = written, now
        if is_silent:
            self._cancel_if_lost()

    def _written(self) -> int | None:
        """When the job last wrote, by the clock of the file system."""
        with suppress(OSError):
            return self._state.stat().st_mtime_ns
        return None

    def _cancel_if_lost(self) -> None:
        with suppress(EnvironmentFault):
            answer = shown_job(self._job_id)
            if answer.ok and lost_batch_host(answer.output):
                asked(["scancel", self._job_id])


def lost_batch_host(job: str) -> bool:
    """Whether the node of a job's batch script is none of the job's any more, by `scontrol show job`."""
    found = facts(job)
    if not {"JobState", "BatchHost", "NodeList"} <= found.keys():
        return False
    return found["JobState"] == "RUNNING" and found["BatchHost"] not in expand(found["NodeList"])
