"""Waits, after the agents have ended, until no judge has a submit in flight."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cluster.job.health import RankHealth, ServiceState

PAUSE_S = 0.2


@dataclass(frozen=True)
class Drained:
    """What a drain left: submits still in flight, by rank, how long it took, and the ranks as it last saw them.

    A lost rank has no submits in flight.
    """

    left: dict[int, int]
    seconds: float
    ranks: tuple[RankHealth, ...]

    @property
    def complete(self) -> bool:
        return not self.left


def drain(
    health: Callable[[], Sequence[RankHealth]],
    pause: Callable[[float], None],
    limit_s: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> Drained:
    """Ask the ranks until their in-flight submits are graded, for at most `limit_s` seconds or until cancelled."""
    start = time.monotonic()
    while True:
        ranks = tuple(health())
        left = busy(ranks)
        waited = time.monotonic() - start
        if not left or waited >= limit_s or cancelled():
            return Drained(left, waited, ranks)
        pause(PAUSE_S)


def busy(healths: Sequence[RankHealth]) -> dict[int, int]:
    """Rank → submits in flight; a rank that restarts counts as one, because it may hold some."""
    found = {}
    for health in healths:
        waiting = health.inflight_submits or int(health.state is ServiceState.STARTING)
        if waiting and not health.is_gone:
            found[health.rank] = waiting
    return found
