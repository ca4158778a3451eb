"""Rejects a submission that changes its process for later calls: rounding mode, flush-to-zero, signal handling."""

from bench.judge.schemas import Outcome
from bench.runner.runner import Runner
from bench.verdict import Rejected


def check(runner: Runner) -> None:
    """Raises Rejected (`tampered`) when a call left floating-point state or signal dispositions changed."""
    if changed := runner.changed_state():
        raise Rejected(Outcome.TAMPERED, "state", {"message": f"the kernel changed {changed}"})
