"""What the judge ranks say of themselves, asked over HTTP as an agent would."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ValidationError

from bench.judge.client import JudgeClient, JudgeRefused
from bench.judge.schemas import Health, HealthStatus
from cluster.job.allocation import JudgeSlot
from cluster.job.launchers import Running

ASK_TIMEOUT_S = 3.0


class RankState(StrEnum):
    """Whether a rank grades; `lost` and `unfit` are for good, the others may change."""

    READY = "ready"
    STARTING = "starting"
    UNFIT = "unfit"
    LOST = "lost"


GONE = frozenset({RankState.LOST, RankState.UNFIT})


@dataclass(frozen=True)
class RankHealth:
    """One rank's answer. Counts are of requests; both are 0 when the rank did not say."""

    rank: int
    state: RankState
    reason: str = ""
    queue_depth: int = 0
    inflight_submits: int = 0


class Ranks:
    """The judge steps of one job, in rank order, and one long-lived client for each."""

    def __init__(self, run_id: str, slots: Sequence[JudgeSlot], steps: Sequence[Running]) -> None:
        self._run_id = run_id
        self._ranks = [
            (slot.rank, step, JudgeClient(slot.url, timeout_s=ASK_TIMEOUT_S))
            for slot, step in zip(slots, steps, strict=True)
        ]

    def health(self) -> list[RankHealth]:
        """Ask every rank now."""
        return [self._ask(*rank) for rank in self._ranks]

    def close(self) -> None:
        for _, _, client in self._ranks:
            client.close()

    def _ask(self, rank: int, step: Running, client: JudgeClient) -> RankHealth:
        if (code := step.poll()) is not None:
            return RankHealth(rank, RankState.LOST, f"its process ended with {code}")
        try:
            return read_health(rank, self._run_id, client.health())
        except JudgeRefused as refused:
            state = RankState.LOST if refused.code == "rank_lost" else RankState.STARTING
            return RankHealth(rank, state, refused.message)
        except ValidationError as error:
            return RankHealth(
                rank, RankState.UNFIT, f"{client.url}/health is no judge's ({error.error_count()} faults)"
            )


def read_health(rank: int, run_id: str, health: Health) -> RankHealth:
    """What a `/health` answer means; a judge of another job on this rank's port does not count."""
    if (health.run_id, health.rank) != (run_id, rank):
        who = f"rank {health.rank} of run '{health.run_id}'"
        return RankHealth(rank, RankState.UNFIT, f"its port answers as {who}; set JUDGE_PORT to a free block")
    states = {
        HealthStatus.OK: RankState.READY,
        HealthStatus.STARTING: RankState.STARTING,
        HealthStatus.UNFIT: RankState.UNFIT,
    }
    return RankHealth(rank, states[health.status], health.self_grade, health.queue_depth, health.inflight_submits)
