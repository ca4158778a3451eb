"""The services of one job, judges and engines: started, asked and awaited together."""

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.job.allocation import Plan
from cluster.job.inference import Engine, EngineHealth, EngineState
from cluster.job.inference.watched import Engines
from cluster.job.launchers import Running
from cluster.job.layout import RunLayout
from cluster.job.ranks import GONE, RankHealth, Ranks, RankState
from cluster.job.roles import engine_step, judge_step
from cluster.job.supervise import Awaited, Steps
from cluster.study.settings import JobSettings


@dataclass(frozen=True)
class ServiceHealth:
    """What every service said of itself at one moment, by rank and by replica."""

    ranks: tuple[RankHealth, ...]
    engines: tuple[EngineHealth, ...]


class Services:
    """Judges and engines of one job, whose steps it starts."""

    def __init__(
        self, layout: RunLayout, settings: JobSettings, plan: Plan, engines: Sequence[Engine], steps: Steps
    ) -> None:
        self._engine_steps = [steps.start(engine_step(layout, settings, engine)) for engine in engines]
        self._judge_steps = [steps.start(judge_step(layout, slot)) for slot in plan.judges]
        self._ranks = Ranks(layout.job_id, plan.judges, self._judge_steps)
        self._engines = Engines(engines, self._engine_steps)

    def health(self) -> ServiceHealth:
        """Ask all of them now."""
        return ServiceHealth(tuple(self._ranks.health()), tuple(self._engines.health()))

    def ranks(self) -> list[RankHealth]:
        """Ask the judges alone."""
        return self._ranks.health()

    def engine_version(self) -> str | None:
        return self._engines.version()

    def awaited(self, health: ServiceHealth) -> list[Awaited]:
        """All of them as those who wait for them see them."""
        judges = zip(health.ranks, self._judge_steps, strict=True)
        engines = zip(health.engines, self._engine_steps, strict=True)
        return [_awaited_rank(*one) for one in judges] + [_awaited_engine(*one) for one in engines]

    def close(self) -> None:
        self._ranks.close()
        self._engines.close()


def _awaited_rank(health: RankHealth, running: Running) -> Awaited:
    return Awaited(
        f"rank {health.rank}",
        health.state,
        health.reason,
        running.step,
        is_ready=health.state is RankState.READY,
        is_gone=health.state in GONE,
        is_mute=health.state in (RankState.STARTING, RankState.LOST),
    )


def _awaited_engine(health: EngineHealth, running: Running) -> Awaited:
    return Awaited(
        f"replica {health.replica}",
        health.state,
        health.reason,
        running.step,
        is_ready=health.state is EngineState.READY,
        is_gone=health.state is EngineState.LOST,
        is_mute=health.state is not EngineState.READY,
    )
