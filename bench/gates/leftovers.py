"""Rejects a submission that leaves processes behind: work done there is work that nobody timed."""

from bench.judge.schemas import Outcome
from bench.verdict import Rejected


def check(processes: int) -> None:
    """Raises Rejected (`tampered`) when a runner has so many children: once it is loaded, or after its last call."""
    if processes:
        message = f"the kernel left {processes} processes behind; finish all work before returning"
        raise Rejected(Outcome.TAMPERED, "processes", {"message": message})
