"""What a service of a job, a judge rank or an engine, said of itself when it was last asked."""

from dataclasses import dataclass
from enum import StrEnum


class ServiceState(StrEnum):
    """Whether a service does its work; `unfit` and `lost` are for good, the others may change."""

    STARTING = "starting"
    READY = "ready"
    UNFIT = "unfit"
    LOST = "lost"


class _Health:
    state: ServiceState

    @property
    def is_ready(self) -> bool:
        return self.state is ServiceState.READY

    @property
    def is_gone(self) -> bool:
        """Whether it will not work again."""
        return self.state in (ServiceState.LOST, ServiceState.UNFIT)

    @property
    def is_mute(self) -> bool:
        """Whether only its logs can say why it does not work; one that is unfit has said it."""
        return self.state in (ServiceState.STARTING, ServiceState.LOST)


@dataclass(frozen=True)
class RankHealth(_Health):
    """One rank's answer, and why unless it is ready. Counts are of requests; 0 when the rank did not say."""

    rank: int
    state: ServiceState
    reason: str = ""
    queue_depth: int = 0
    inflight_submits: int = 0

    @property
    def name(self) -> str:
        return f"judge rank {self.rank}"


@dataclass(frozen=True)
class EngineHealth(_Health):
    """One engine's answer, and why unless it is ready."""

    replica: int
    state: ServiceState
    reason: str = ""

    @property
    def name(self) -> str:
        return f"inference replica {self.replica}"
