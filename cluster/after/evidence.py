"""Gathers what run directories, live shards and merged databases say of planned slots; names what cannot be read."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench.errors import KernelcourtError, ShardError
from bench.judge.schemas import END_CODES, EpisodeLabel, EpisodeRecord, Kind, Outcome, SetupRecord
from bench.results.models import Ruling
from bench.results.owed import Seen, SeenEpisode, SeenGrade, seen
from bench.results.queries import Assignment, opened
from cluster.after.declared import declared_databases
from cluster.after.owed import History, Rulings, Standing
from cluster.job.launched import Launched, launched, read_episode
from cluster.job.layout import RunLayout
from cluster.job.stages import GOES_ON, life_of
from cluster.job.state import read_state

# A study belongs to what a setup is for, not to what it is: its name says the experiment.
_NOT_IDENTITY = {"study"}


@dataclass
class Evidence:
    """What was found. Setup → its definition goes in; histories of slots, and setup → why it runs, come out.

    `damage` has one sentence for each thing that could not be read, `notes` for what does not count; `read` counts the
    databases and records that were.
    """

    setups: Mapping[str, SetupRecord]
    histories: defaultdict[Assignment, History] = field(default_factory=lambda: defaultdict(History))
    running: dict[str, str] = field(default_factory=dict)
    latest_job: dict[str, str] = field(default_factory=dict)
    layouts: dict[str, RunLayout] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    notes: dict[str, set[Path]] = field(default_factory=dict)
    read: int = 0
    _episodes: dict[tuple[str, str], SeenEpisode] = field(default_factory=dict)
    _grades: dict[str, SeenGrade] = field(default_factory=dict)
    _rulings: dict[str, tuple[str, Ruling]] = field(default_factory=dict)

    @property
    def rulings(self) -> Rulings:
        """What stands of what operators ruled, in whichever database."""
        by_word: defaultdict[Ruling, set[str]] = defaultdict(set)
        for grade_id, (_, ruling) in self._rulings.items():
            by_word[ruling].add(grade_id)
        return Rulings(frozenset(by_word[Ruling.DISQUALIFIED]), frozenset(by_word[Ruling.ACCEPTED]))

    def take(self, found: Seen, where: Path) -> None:
        """Add what a database holds of the setups that are still defined as they were then."""
        self.read += 1
        same = self.same(found.setups, where)
        for episode in found.episodes:
            if episode.assignment.setup in same:
                self._add(episode)
        # A grade may be in several databases.
        self._grades |= {grade.grade_id: grade for grade in found.grades if grade.assignment.setup in same}
        for grade_id, ruled in found.rulings.items():
            self._rulings[grade_id] = max(ruled, self._rulings.get(grade_id, ruled))

    def take_record(self, job_id: str, record: EpisodeRecord) -> None:
        """Add an episode by the record that it left in its folder."""
        self.read += 1
        place = Assignment(record.setup, record.kernel, record.slot)
        code = END_CODES.get(record.end)
        self._add(
            SeenEpisode(job_id, record.label, place, record.end, code, record.attempts, record.started_at),
        )

    def join(self) -> None:
        """Give each slot its episodes and grades; once everything is read."""
        for episode in self._episodes.values():
            self.histories[episode.assignment].episodes.append(episode)
        for grade in self._grades.values():
            if grade.kind is not Kind.FINAL:
                self.histories[grade.assignment].grades.append(grade)
            elif answer := self._grades.get(grade.of_grade_id or ""):
                self.histories[answer.assignment].finals.setdefault(answer.grade_id, []).append(grade)

    def _add(self, episode: SeenEpisode) -> None:
        """Add an episode: its record wins over what the grades in one shard or another say of it."""
        key = (episode.job_id, episode.label)
        known = self._episodes.setdefault(key, episode)
        if known.end is None and episode.end is None:
            first = min(known, episode, key=lambda one: one.at)
            self._episodes[key] = first._replace(attempts=max(known.attempts, episode.attempts))
        elif known.end is None:
            self._episodes[key] = episode

    def same(self, then: Mapping[str, SetupRecord], where: Path) -> set[str]:
        """Names of the setups that are defined as they are now; the others are noted."""
        return {name for name in then.keys() & self.setups.keys() if self._is_same(name, then[name], where)}

    def _is_same(self, name: str, then: SetupRecord, where: Path) -> bool:
        now = self.setups[name].model_dump(exclude=_NOT_IDENTITY)
        different = {key: value for key, value in then.model_dump(exclude=_NOT_IDENTITY).items() if now[key] != value}
        if different:
            was = ", ".join(f"{key} was {value}, is {now[key]}" for key, value in different.items())
            self.notes.setdefault(f"setup '{name}' was another one ({was}): its answers do not count", set()).add(where)
        return not different


def gather(
    setups: Mapping[str, SetupRecord], roots: Sequence[Path], databases: Sequence[Path], running: Mapping[str, str]
) -> Evidence:
    """Read every run below these folders, what was declared there, and databases beside them.

    `running` says which setups wait or run in the queue, and how.

    Raises:
        ShardError: one of the databases that were named themselves cannot be read.
    """
    evidence = Evidence(setups, running=dict(running))
    for database in databases:
        _take_database(evidence, database, database)
    for layout in _runs(roots):
        _take_run(evidence, layout)
    for root in roots:
        for path in declared_databases(root):
            with _naming(evidence):
                _take_database(evidence, path, path)
    evidence.join()
    return evidence


def _runs(roots: Sequence[Path]) -> list[RunLayout]:
    """Run directories, the oldest plan first; one whose plan is lost is still one."""
    found = [RunLayout(path) for root in roots if root.is_dir() for path in root.iterdir() if path.is_dir()]
    runs = [layout for layout in found if layout.launch.is_dir() or layout.judge.is_dir() or layout.results.exists()]
    return sorted(runs, key=lambda layout: (_planned_at_ns(layout), layout.job_id))


def _planned_at_ns(layout: RunLayout) -> int:
    with contextlib.suppress(OSError):
        return layout.plan.stat().st_mtime_ns
    return 0


def _take_run(evidence: Evidence, layout: RunLayout) -> None:
    plan: Launched | None = None
    with _naming(evidence):
        plan = launched(layout)
    ours = evidence.same(plan.setups, layout.root) if plan else set(evidence.setups)
    if not ours:
        return
    run = _Run(layout, plan, plan.job_id if plan else layout.job_id, frozenset(ours), _lives(evidence, layout))
    evidence.layouts[run.job_id] = layout
    if plan:
        evidence.latest_job |= dict.fromkeys(ours, run.job_id)
    if plan and run.lives:
        evidence.running = dict.fromkeys(ours, f"job {run.job_id} runs") | evidence.running
    if not run.lives and layout.results.exists() and not layout.merge_failed.exists():
        with _naming(evidence):
            _take_database(evidence, layout.results, layout.root)
            return
    _take_unmerged(evidence, run)


@dataclass(frozen=True)
class _Run:
    """A run directory whose results.db is not whole or not final; without a plan that is damaged."""

    layout: RunLayout
    plan: Launched | None
    job_id: str
    setups: frozenset[str]
    lives: bool


def _take_unmerged(evidence: Evidence, run: _Run) -> None:
    """Read the shards and the episode records of a run."""
    layout = run.layout
    found = sorted(layout.judge.glob("rank-*/grades.db"))
    for shard in map(layout.shard, range(run.plan.ranks)) if run.plan else found:
        if run.lives and (not shard.exists() or not shard.stat().st_size):
            continue  # its judge is about to make it
        with _naming(evidence):
            _take_database(evidence, shard, layout.root)
    if not layout.agents.is_dir():
        evidence.damage.append(f"{layout.agents}: not there, so nothing says how this run's episodes ended")
    for path in layout.episode_records():
        with _naming(evidence):
            record = read_episode(path)
            if record.setup in run.setups:
                evidence.take_record(run.job_id, record)


def _lives(evidence: Evidence, layout: RunLayout) -> bool:
    with _naming(evidence):
        state = read_state(layout)
        lives = state.process_lives if state else None
        return life_of(state, lives, layout.summary.exists(), datetime.now(UTC)) in GOES_ON
    return False


def _take_database(evidence: Evidence, path: Path, where: Path) -> None:
    if not path.is_file():
        raise ShardError(f"{path}: no such file; its grades, if there were any, are not counted")
    with opened([path]) as database:
        evidence.take(seen(database, evidence.setups.keys()), where)


@contextlib.contextmanager
def _naming(evidence: Evidence) -> Iterator[None]:
    """What cannot be read is named, and hides nothing else."""
    try:
        yield
    except OSError as error:
        evidence.damage.append(f"{error.filename}: cannot be read ({error.strerror})")
    except KernelcourtError as error:
        evidence.damage.append(str(error))


def log_of(evidence: Evidence, found: Standing, job: str | None) -> Path | None:
    """Where to read on about a slot that is owed: its judge's or its client's log, else the nearest that is there."""
    layout = evidence.layouts.get(job or "")
    if layout is None:
        return None
    return next((path for path in _logs(layout, found) if path.exists()), layout.root)


def _logs(layout: RunLayout, found: Standing) -> Iterator[Path]:
    """Where a log may be, the most telling first."""
    grade, episode = found.grade, found.episode
    if grade and grade.outcome is Outcome.JUDGE_FAULT:
        yield layout.upstream_log(grade.rank)
    if episode:
        with contextlib.suppress(ValueError):
            label = EpisodeLabel.parse(episode.label)
            folder = layout.episode(label.node, label.problem, label.worker)
            attempt = folder / f"attempt-{episode.attempts}"
            yield from sorted(attempt.glob("*.log"))
            yield from (attempt, folder, layout.agent_log(label.node))
