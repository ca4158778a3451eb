"""What the judge ranks say of themselves, asked over HTTP as an agent would."""

import time
from collections.abc import Callable, Sequence

from pydantic import ValidationError

from bench.judge.client import JudgeClient, JudgeRefused
from bench.judge.schemas import Health, HealthStatus
from cluster.job.allocation import JudgeSlot
from cluster.job.health import RankHealth, ServiceState
from cluster.job.launchers import Running

ASK_TIMEOUT_S = 3.0
# A router answers while its judge restarts; one that is silent for so long has lost its node or its network.
SILENT_FOR_GOOD_S = 60.0


class Ranks:
    """The judge steps of one job, in rank order, and one long-lived client for each; `clock` counts seconds."""

    def __init__(
        self,
        run_id: str,
        slots: Sequence[JudgeSlot],
        steps: Sequence[Running],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run_id, self._clock = run_id, clock
        self._ranks = [
            (slot.rank, step, JudgeClient(slot.url, timeout_s=ASK_TIMEOUT_S))
            for slot, step in zip(slots, steps, strict=True)
        ]
        self._answered: dict[int, float] = {}

    def health(self) -> list[RankHealth]:
        """Ask every rank now."""
        return [self._ask(*rank) for rank in self._ranks]

    def close(self) -> None:
        for _, _, client in self._ranks:
            client.close()

    def _ask(self, rank: int, step: Running, client: JudgeClient) -> RankHealth:
        if (end := step.poll()) is not None:
            return RankHealth(rank, ServiceState.LOST, f"its step has ended: {end.words}")
        try:
            found = read_health(rank, self._run_id, client.health())
        except JudgeRefused as refused:
            if refused.code == "unreachable":
                return self._silent(rank, refused.message)
            state = ServiceState.LOST if refused.code == "rank_lost" else ServiceState.STARTING
            found = RankHealth(rank, state, refused.message)
        except ValidationError:
            reason = f"what answers at {client.url}/health is no judge; set JUDGE_PORT to a free block"
            found = RankHealth(rank, ServiceState.UNFIT, reason)
        self._answered[rank] = self._clock()
        return found

    def _silent(self, rank: int, why: str) -> RankHealth:
        """A rank that nobody reaches: it starts, or has not answered for too long since it did."""
        silent_s = self._clock() - self._answered.get(rank, self._clock())
        if silent_s < SILENT_FOR_GOOD_S:
            return RankHealth(rank, ServiceState.STARTING, why)
        return RankHealth(rank, ServiceState.LOST, f"it has not answered for {silent_s:.0f} s: {why}")


def read_health(rank: int, run_id: str, health: Health) -> RankHealth:
    """What a `/health` answer means; a judge of another job on this rank's port does not count."""
    if (health.run_id, health.rank) != (run_id, rank):
        who = f"rank {health.rank} of run '{health.run_id}'"
        return RankHealth(rank, ServiceState.UNFIT, f"its port answers as {who}; set JUDGE_PORT to a free block")
    states = {
        HealthStatus.OK: ServiceState.READY,
        HealthStatus.STARTING: ServiceState.STARTING,
        HealthStatus.UNFIT: ServiceState.UNFIT,
    }
    return RankHealth(rank, states[health.status], health.self_grade, health.queue_depth, health.inflight_submits)
