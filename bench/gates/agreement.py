"""Rejects a grade in which the runner's own clock keeps showing more than the judge's, on the candidate alone."""

from collections.abc import Sequence

from bench.errors import JudgeFault
from bench.judge.schemas import Outcome
from bench.native.helper import Timing
from bench.verdict import Rejected


def check(candidate: Sequence[Timing], denominator: Sequence[Timing]) -> None:
    """Judge both sides' calls of one timed input, those of disturbed moments already repeated.

    Raises:
        Rejected: (`tampered`) most of the candidate's calls strayed, and the denominator's did not.
        JudgeFault: most of both sides' did: this machine cannot tell the time now.
    """
    if not _mostly_strayed(candidate):
        return
    if _mostly_strayed(denominator):
        raise JudgeFault(
            "the clocks of judge and runner disagree about both sides' calls; grade again on a quieter machine"
        )
    message = "the judge's clock and the runner's own disagree on its calls; do all work between call and return"
    raise Rejected(Outcome.TAMPERED, "clock", {"message": message})


def _mostly_strayed(calls: Sequence[Timing]) -> bool:
    return 2 * sum(timing.strayed for timing in calls) > len(calls)
