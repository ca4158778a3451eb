"""Which setups of a study one job serves: each has its own, or all that can share a job are one wave."""

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.study.job_shape import Option, granted_s, job_shape
from cluster.study.render import HOUR_S, RenderedSetup


@dataclass(frozen=True)
class PlannedJob:
    """One job: the setups that it serves, which agree on everything that a job has once."""

    setups: tuple[RenderedSetup, ...]

    @property
    def name(self) -> str:
        """Its name in the queue, by which each of its setups is found there."""
        return ",".join(setup.name for setup in self.setups)

    @property
    def first(self) -> RenderedSetup:
        """One of them; use it for what they share."""
        return self.setups[0]

    @property
    def shape(self) -> tuple[Option, ...]:
        """What Slurm is asked for; raises ConfigError where that cannot be said."""
        settings, choices = self.first.settings, self.first.choices
        problems = sum(len(setup.problems) for setup in self.setups)
        return tuple(job_shape(settings, choices.system, choices.flags, choices.environ, problems))

    @property
    def node_hours(self) -> float:
        """Nodes times the hours that they are granted: the most that the job can cost."""
        return self.first.split.total * granted_s(self.shape) / HOUR_S


def jobs_of(rendered: Sequence[RenderedSetup]) -> list[PlannedJob]:
    """The jobs that a study is submitted as: one a setup, unless the study says that its setups share theirs."""
    if all(setup.study.wave for setup in rendered):
        return waves(rendered)
    return [PlannedJob((setup,)) for setup in rendered]


def waves(rendered: Sequence[RenderedSetup]) -> list[PlannedJob]:
    """As few jobs as possible: of setups that give the same answer to each key of a job and share start material."""
    groups: dict[str, list[RenderedSetup]] = {}
    for setup in rendered:
        shared = {**setup.settings.job_values, "AGENT_START": setup.settings.agent_start}
        groups.setdefault(repr(shared), []).append(setup)
    return [PlannedJob(tuple(group)) for group in groups.values()]
