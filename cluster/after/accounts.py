"""Accounts of planned setups: every slot by what was found of it, sums that add up, and lists of what is owed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from bench.judge.schemas import GPU_LANGUAGES, Language, Problem
from bench.places import anchored
from bench.results.queries import Assignment
from bench.task import find_task
from cluster.after.evidence import Evidence, gather, log_of
from cluster.after.owed import Part, PlannedSlot, Rulings, Standing, by_setup, standing, tally
from cluster.job.documents import write_public
from cluster.study.settings import JobSettings
from cluster.study.status import Tally


@dataclass(frozen=True)
class PlannedSetup:
    """One setup as it is rendered now, and its problems."""

    settings: JobSettings
    problems: Sequence[Problem]

    @property
    def name(self) -> str:
        return self.settings.setup

    @property
    def run_root(self) -> Path:
        """Folder of its run directories."""
        return anchored(self.settings.run_root).resolve()


@dataclass(frozen=True)
class Accounts:
    """Every planned slot, in the order of the plan; setup → why it is `skipped`: it waits or runs already."""

    slots: tuple[PlannedSlot, ...]
    skipped: Mapping[str, str]
    damage: tuple[str, ...]
    notes: tuple[str, ...]
    nothing_read: bool

    @property
    def total(self) -> Tally:
        return tally(self.slots)

    @property
    def setups(self) -> dict[str, list[PlannedSlot]]:
        """Setup → its own slots."""
        return by_setup(self.slots)

    def document(self) -> dict[str, Any]:
        """The accounts as JSON-able values."""
        return {
            **self.total.document(),
            "setups": {setup: tally(own).document() for setup, own in self.setups.items()},
            "skipped": dict(self.skipped),
            "slots": [slot.document() for slot in self.slots],
            "damage": list(self.damage),
            "notes": list(self.notes),
        }

    def write_lists(self, folder: Path) -> list[Path]:
        """Write `<folder>/<setup>.txt` for each setup that owes, a line `<kernel> <slot>`; remove lists that are stale.

        Raises:
            EnvironmentFault: the folder cannot be written.
        """
        written = []
        for setup, slots in self.setups.items():
            path = folder / f"{setup}.txt"
            owed = [slot.assignment for slot in slots if slot.standing.part is Part.OWED]
            if owed:
                write_public(path, "".join(f"{one.kernel} {one.slot}\n" for one in owed))
                written.append(path)
            else:
                path.unlink(missing_ok=True)
        return written


def account(
    planned: Sequence[PlannedSetup],
    roots: Sequence[Path] | None,
    databases: Sequence[Path],
    queued: Mapping[str, str],
) -> Accounts:
    """What every planned slot counts as, by the runs below `roots` (default: each setup's own) and by `databases`.

    `queued` says of setups that wait or run in a queue how they do.

    Raises:
        ShardError: a database that is named cannot be read.
        TaskError: a kernel of the plan is damaged.
    """
    folders = dict.fromkeys(roots if roots is not None else [setup.run_root for setup in planned])
    records = {setup.name: setup.settings.record for setup in planned}
    evidence = gather(records, list(folders), databases, queued)
    hashes, rulings = cache(task_hashes), evidence.rulings
    slots = tuple(
        _slot(setup, problem, hashes(problem.kernel, problem.language), evidence, rulings)
        for setup in planned
        for problem in setup.problems
    )
    return Accounts(
        slots=slots,
        skipped={name: why for name, why in evidence.running.items() if name in records},
        damage=tuple(evidence.damage),
        notes=tuple(_noted(note, places) for note, places in evidence.notes.items()),
        nothing_read=bool(evidence.damage) and not evidence.read,
    )


def _slot(
    setup: PlannedSetup, problem: Problem, hashes: frozenset[str], evidence: Evidence, rulings: Rulings
) -> PlannedSlot:
    place = Assignment(problem.setup, problem.kernel, problem.slot)
    found = standing(evidence.histories[place], setup.settings.agent_submission_mode, hashes, rulings)
    if found.part is not Part.OWED:
        return PlannedSlot(place, found, found.job)
    if why := evidence.running.get(setup.name):
        return PlannedSlot(place, Standing(Part.RUNNING, why=why))
    job = found.job
    if job is None and (job := evidence.latest_job.get(setup.name)):
        found = replace(found, why="the setup's last job left no record of an episode")
    return PlannedSlot(place, found, job, log_of(evidence, found, job))


def task_hashes(kernel: str, language: Language) -> frozenset[str]:
    """What the `task_hash` of a grade is today: that of the kernel or, on a GPU, of its GPU track."""
    task = find_task(kernel)
    on_gpu = language in GPU_LANGUAGES and task.manifest.gpu is not None
    return frozenset({task.hash, task.gpu_track.hash} if on_gpu else {task.hash})


def _noted(note: str, places: set[Path]) -> str:
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"{min(places)}{more}: {note}"
