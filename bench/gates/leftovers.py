"""Rejects a submission that leaves processes behind: work done there is work that nobody timed."""

from bench.judge.schemas import Outcome
from bench.runner.runner import Runner
from bench.verdict import Rejected


def check(runner: Runner) -> None:
    """Raises Rejected (`tampered`) when the runner has children after its last call."""
    if count := runner.children():
        message = f"the kernel left {count} processes behind; finish all work before returning"
        raise Rejected(Outcome.TAMPERED, "processes", {"message": message})
