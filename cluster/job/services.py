"""The services of one job, judges and engines: started, asked and awaited together."""

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.job.allocation import Plan
from cluster.job.endings import Awaited
from cluster.job.health import EngineHealth, RankHealth
from cluster.job.inference import Engine
from cluster.job.inference.engines import Engines
from cluster.job.layout import RunLayout
from cluster.job.ranks import Ranks
from cluster.job.roles import engine_step, judge_step
from cluster.job.supervise import Steps
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
        self._judge_steps = [steps.start(judge_step(layout, settings, slot)) for slot in plan.judges]
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

    def with_steps(self, health: ServiceHealth) -> list[Awaited]:
        """Each service's answer with the step that runs it."""
        steps = [running.step for running in (*self._judge_steps, *self._engine_steps)]
        return list(zip((*health.ranks, *health.engines), steps, strict=True))

    def close(self) -> None:
        self._ranks.close()
        self._engines.close()
