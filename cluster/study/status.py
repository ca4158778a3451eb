"""Accounts for a rendered study: every (setup, kernel, slot) is delivered, running, queued, under review or owed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from bench.judge.schemas import Problem, SetupRecord
from cluster.job.launched import launched
from cluster.job.layout import RunLayout
from cluster.job.stages import GOES_ON, life_of
from cluster.job.state import read_state
from cluster.job.summary import Item, OwedClass, Standing, read_summary
from cluster.study.problems import read_problems
from cluster.study.queue import QueuedJob, QueueState


class Part(StrEnum):
    """What a planned slot counts as; the parts add up to what is planned."""

    DELIVERED = "delivered"
    RUNNING = "running"
    QUEUED = "queued"
    REVIEW = "review"
    OWED = "owed"


@dataclass(frozen=True)
class Slot:
    """One planned (setup, kernel, slot); `job` is the one that says so, `owed` and `why` unless delivered."""

    setup: str
    kernel: str
    slot: int
    part: Part
    owed: OwedClass | None = None
    why: str | None = None
    job: str | None = None


@dataclass(frozen=True)
class Accounts:
    """Every planned slot of a study."""

    study: str
    slots: tuple[Slot, ...]

    @property
    def total(self) -> "Tally":
        return tally(self.slots)

    @property
    def setups(self) -> "dict[str, Tally]":
        """Setup → its own sums."""
        slots: dict[str, list[Slot]] = {}
        for slot in self.slots:
            slots.setdefault(slot.setup, []).append(slot)
        return {setup: tally(own) for setup, own in slots.items()}

    def document(self) -> dict[str, Any]:
        """The accounts as JSON-able values."""
        return {
            "study": self.study,
            **self.total.document(),
            "setups": {setup: own.document() for setup, own in self.setups.items()},
            "slots": [asdict(slot) for slot in self.slots],
        }


@dataclass(frozen=True)
class Tally:
    """How many slots each part has, in the order of the parts, and how many are owed in each class."""

    parts: Mapping[str, int]
    owed_by_class: Mapping[OwedClass, int]

    @property
    def planned(self) -> int:
        return sum(self.parts.values())

    @property
    def line(self) -> str:
        """`27 planned = 25 delivered + 0 running + 0 queued + 1 review + 1 owed`."""
        return f"{self.planned} planned = " + " + ".join(f"{number} {part}" for part, number in self.parts.items())

    def document(self) -> dict[str, Any]:
        """planned, each part of it, and the owed ones by class."""
        return {"planned": self.planned, **self.parts, "owed_by_class": dict(self.owed_by_class)}

    @classmethod
    def of(cls, parts: type[StrEnum], found: Iterable[tuple[StrEnum, OwedClass | None]]) -> "Tally":
        """The sums of slots: what each counts as, and the class of one that is owed."""
        pairs = list(found)
        counted, owed = Counter(part for part, _ in pairs), Counter(blame for _, blame in pairs if blame)
        return cls(
            {part.value: counted[part] for part in parts}, {blame: owed[blame] for blame in OwedClass if owed[blame]}
        )


def tally(slots: Sequence[Slot]) -> Tally:
    """The sums of some slots."""
    return Tally.of(Part, ((slot.part, slot.owed) for slot in slots))


@dataclass(frozen=True)
class Planned:
    """One setup of a study: its identity and its problems."""

    record: SetupRecord
    problems: Sequence[Problem]


@dataclass(frozen=True)
class Run:
    """What one run directory says of its problems; no items: it lives, or it died before it was summed up."""

    layout: RunLayout
    records: Mapping[str, SetupRecord]
    items: tuple[Item, ...] | None
    lives: bool


def account(study: str, planned: Sequence[Planned], runs: Sequence[Run], queue: Mapping[str, QueuedJob]) -> Accounts:
    """What every planned slot counts as, by the runs of the same setups (the oldest first) and by the queue."""
    said = _said(runs)
    slots: list[Slot] = []
    for setup in planned:
        own = said.get(_identity(setup.record), {})
        job = queue.get(setup.record.setup)
        slots += [_slot(problem, own.get((problem.kernel, problem.slot), []), job) for problem in setup.problems]
    return Accounts(study, tuple(slots))


_Key = tuple[str, int]


def _said(runs: Iterable[Run]) -> dict[str, dict[_Key, list[Slot]]]:
    """Setup identity → (kernel, slot) → what each run says of it."""
    found: dict[str, dict[_Key, list[Slot]]] = {}
    for run in runs:
        for slot in _slots(run):
            record = run.records.get(slot.setup)
            if record is not None:
                of_setup = found.setdefault(_identity(record), {})
                of_setup.setdefault((slot.kernel, slot.slot), []).append(slot)
    return found


def _identity(record: SetupRecord) -> str:
    return record.model_dump_json()


def _slots(run: Run) -> list[Slot]:
    job = run.layout.job_id
    if run.items is not None:
        return [_settled(item, run.layout) for item in run.items]
    problems = read_problems(run.layout.problems)
    if run.lives:
        return [Slot(p.setup, p.kernel, p.slot, Part.RUNNING, why=f"job {job} runs", job=job) for p in problems]
    why = f"job {job} ended before it was summed up; `kcourt job collect {run.layout.root}` does so"
    return [Slot(p.setup, p.kernel, p.slot, Part.OWED, OwedClass.INFRA, why, job) for p in problems]


def _settled(item: Item, layout: RunLayout) -> Slot:
    """A slot as the run's own summary has it."""
    owed, why = item.owed, item.why
    match item.standing:
        case Standing.DELIVERED:
            part = Part.DELIVERED
        case Standing.REVIEW:
            part = Part.REVIEW
        case Standing.OWED:
            part = Part.OWED
        case Standing.UNMERGED:
            part, owed = Part.OWED, OwedClass.INFRA
            why = f"the merge failed and the grades are safe; `kcourt job collect {layout.root}` merges them"
    return Slot(item.setup, item.kernel, item.slot, part, owed, why, layout.job_id)


def _slot(problem: Problem, said: Sequence[Slot], job: QueuedJob | None) -> Slot:
    """The slot as the strongest says: an answer of any run, then one under review, then what is on its way."""
    where = (problem.setup, problem.kernel, problem.slot)
    for part in (Part.DELIVERED, Part.REVIEW, Part.RUNNING):
        if found := next((slot for slot in reversed(said) if slot.part is part), None):
            return found
    if job is not None:
        part = Part.RUNNING if job.state is QueueState.RUNNING else Part.QUEUED
        return Slot(*where, part, why=f"job {job.job_id} {'runs' if part is Part.RUNNING else 'waits'}", job=job.job_id)
    return said[-1] if said else Slot(*where, Part.OWED, OwedClass.INFRA, "no job has been run for it")


def find_runs(roots: Iterable[Path]) -> list[Run]:
    """Every run directory below these folders, the oldest first.

    Raises:
        ConfigError: the plan, the state or the summary of a run is damaged.
    """
    layouts = [RunLayout(plan.parents[1]) for root in roots for plan in root.glob("*/agent-launch/plan.json")]
    layouts.sort(key=lambda layout: layout.plan.stat().st_mtime_ns)
    return [_run(layout) for layout in layouts]


def _run(layout: RunLayout) -> Run:
    state = read_state(layout)
    lives = state.process_lives if state else None
    summary = read_summary(layout)
    life = life_of(state, lives, summary is not None, datetime.now(UTC))
    return Run(layout, launched(layout).setups, summary.items if summary else None, lives=life in GOES_ON)
