"""What an operator sees of a run, live or afterwards: read from its directory alone, and nothing is written there."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.errors import ShardError, UsageError
from bench.judge.schemas import EpisodeRecord
from bench.places import run_root
from cluster.job.launched import Launched, launched, read_episode, settings_of
from cluster.job.layout import RunLayout
from cluster.job.progress import Pace, Progress, ProgressReader, pace
from cluster.job.records import steps_seen
from cluster.job.stages import OVER, Life, Limits, Planned, StepRow, faults, life_of, rows_of
from cluster.job.state import JobState, read_state
from cluster.job.summary import Ending, Standing, read_summary
from cluster.study.problems import read_problems
from cluster.study.settings import JobSettings

SHOWN_RUNS = 5


@dataclass(frozen=True)
class Tokens:
    """Tokens that ended episodes have used, of those that report them; `most` by one, which may use `cap`."""

    used: int
    episodes: int
    most: int
    cap: int


@dataclass(frozen=True)
class Outcome:
    """How a job ended and what it delivered; `owed_by_class` counts what is owed."""

    ending: Ending
    standings: dict[Standing, int]
    owed_by_class: dict[str, int]


@dataclass(frozen=True)
class Watched:
    """A job at one moment, `at`; no state: its process never wrote one. `errors` are lines."""

    job_id: str
    run: Path
    at: datetime
    life: Life
    state: JobState | None
    steps: tuple[StepRow, ...] = ()
    progress: Progress = field(default_factory=lambda: Progress(0))
    pace: Pace = field(default_factory=Pace)
    tokens: Tokens = Tokens(0, 0, 0, 0)
    errors: tuple[str, ...] = ()
    outcome: Outcome | None = None

    @property
    def is_over(self) -> bool:
        return self.life in OVER

    @property
    def left_s(self) -> float | None:
        """Seconds of the allocation that are left; None: it has no end, or the job has."""
        return None if self.state is None or self.is_over else self.state.left_s

    @property
    def quiet_s(self) -> float | None:
        """Seconds without an episode or grade event, while the job lives."""
        return None if self.state is None or self.is_over else self.state.quiet_s

    @property
    def advice(self) -> str | None:
        """What to do about it; None: nothing."""
        if self.life is Life.GONE:
            return (
                f"the job's process is gone and left no summary; `kcourt job collect {self.run}` merges what there is"
            )
        return None

    def document(self) -> dict[str, Any]:
        """The view as JSON-able values."""
        progress, outcome, state = self.progress, self.outcome, self.state
        return {
            "job_id": self.job_id,
            "run": str(self.run),
            "at": self.at.isoformat(timespec="milliseconds"),
            "life": self.life,
            "phase": state.phase if state else None,
            "phase_since": state.phase_since if state else None,
            "heard_at": state.at if state else None,
            "left_s": self.left_s,
            "quiet_s": self.quiet_s,
            "steps": [asdict(row) for row in self.steps],
            "episodes": {
                "planned": progress.planned,
                "done": progress.ended,
                "running": progress.running,
                "left": progress.left,
            },
            "grades": progress.grades,
            "solved": progress.solved,
            "grades_per_hour": asdict(self.pace),
            "tokens": asdict(self.tokens),
            "errors": list(self.errors),
            "said": [asdict(said) for said in state.said] if state else [],
            "outcome": _outcome_document(outcome) if outcome else None,
            "advice": self.advice,
        }


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    ending = outcome.ending
    return {
        "exit_code": int(ending.exit_code),
        "exit": ending.exit_code.name.lower(),
        "cause": ending.cause,
        "reason": ending.reason,
        "seconds": ending.seconds,
        **{standing.value: number for standing, number in outcome.standings.items()},
        "owed_by_class": outcome.owed_by_class,
    }


class Watcher:
    """Looks at one run again and again; `clock` says what time it is (UTC)."""

    def __init__(self, layout: RunLayout, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._layout = layout
        self._clock = clock
        self._tokens = _TokenReader(layout)

    def look(self) -> Watched:
        """The run now.

        Raises:
            ConfigError: its plan, problems, state or summary is damaged or cannot be read.
        """
        now, state = self._clock(), read_state(self._layout)
        life = self._life(state, now)
        if not self._layout.plan.exists():
            return Watched(self._layout.job_id, self._layout.root, now, life, state)
        over = life in OVER
        progress = self._reader.read(state.ranks if state else ())
        steps = steps_seen(self._layout.steps)
        tokens = self._tokens.read(progress.ended, self._settings.agent_max_tokens)
        shards = [self._layout.shard(rank) for rank in range(self._launched.ranks)]
        return Watched(
            job_id=self._launched.job_id,
            run=self._layout.root,
            at=now,
            life=life,
            state=state,
            steps=tuple(rows_of(self._layout, self._planned, life, state, steps)),
            # Of a job that is over, no episode runs: those without an end are left.
            progress=replace(progress, started=progress.ended) if over else progress,
            pace=pace(shards, now, live=not over),
            tokens=tokens,
            errors=(*faults(self._layout, state, steps), *self._tokens.damaged),
            outcome=outcome_of(self._layout) if life is Life.ENDED else None,
        )

    @property
    def is_over(self) -> bool:
        """Whether the job has ended, or its process has."""
        return self._life(read_state(self._layout), self._clock()) in OVER

    def _life(self, state: JobState | None, now: datetime) -> Life:
        # Of a run whose directory is being made, or whose job died while it was, no limits are known.
        limits = self._limits if self._layout.plan.exists() else Limits()
        lives = state.process_lives if state else None
        return life_of(state, lives, self._layout.summary.exists(), now, limits)

    @cached_property
    def _launched(self) -> Launched:
        return launched(self._layout)

    @cached_property
    def _settings(self) -> JobSettings:
        """Those of the job, which all its setups share."""
        return settings_of(self._layout)

    @cached_property
    def _limits(self) -> Limits:
        return Limits(self._settings.agent_stall_abort_seconds, self._settings.reserve_s)

    @cached_property
    def _reader(self) -> ProgressReader:
        planned = len(read_problems(self._layout.problems))
        return ProgressReader(self._layout, planned, self._settings.agent_nodes, self._launched.ranks)

    @cached_property
    def _planned(self) -> Planned:
        return Planned(self._settings.inference_nodes, self._settings.agent_nodes, self._launched.ranks)


class _TokenReader:
    """Adds up what ended episodes have used; a record is read once."""

    def __init__(self, layout: RunLayout) -> None:
        self._layout = layout
        self._used: dict[Path, int | None] = {}
        self._seen: int | None = None
        self.damaged: tuple[str, ...] = ()

    def read(self, ended: int, cap: int) -> Tokens:
        """Tokens now that so many episodes have ended."""
        if ended != self._seen:
            self._seen, self.damaged = ended, ()
            for path in self._layout.episode_records():
                if path not in self._used:
                    self._add(path)
        used = [tokens for tokens in self._used.values() if tokens is not None]
        return Tokens(sum(used), len(used), max(used, default=0), cap)

    def _add(self, path: Path) -> None:
        try:
            self._used[path] = tokens_of(read_episode(path))
        except ShardError as error:
            self.damaged += (str(error),)


def tokens_of(record: EpisodeRecord) -> int | None:
    """Tokens of all kinds that an episode has used; None where its client reports none."""
    kinds = [record.tokens_fresh, record.tokens_cached, record.tokens_output]
    known = [tokens for tokens in kinds if tokens is not None]
    return sum(known) if known else None


def outcome_of(layout: RunLayout) -> Outcome | None:
    """How a job ended and what it delivered, by its summary; None before there is one.

    Raises:
        ConfigError: the summary is damaged.
    """
    summary = read_summary(layout)
    if summary is None:
        return None
    counts = Counter(item.standing for item in summary.items)
    owed = Counter(item.owed.value for item in summary.items if item.owed)
    return Outcome(summary.ending, {standing: counts[standing] for standing in Standing}, dict(owed))


def find_run(job: str, root: Path | None = None) -> RunLayout:
    """The run of a job: an id below the folder of run directories, or a run directory itself.

    Raises:
        UsageError: there is none; the newest runs of the folder are named.
    """
    folder = run_root(root).resolve()
    for path in (folder / job, Path(job)):
        layout = RunLayout(path.resolve())
        if _is_run(layout):
            return layout
    runs = [layout for path in _listed(folder) if _is_run(layout := RunLayout(path))]
    newest = sorted(runs, key=lambda layout: layout.root.stat().st_mtime_ns, reverse=True)[:SHOWN_RUNS]
    there = f"the newest there: {', '.join(layout.job_id for layout in newest)}" if newest else "no run is there"
    raise UsageError(
        f"no run '{job}' in {folder}; {there}; name one of them, a run directory, or --run-root (a job that waits in "
        "Slurm's queue has no run directory yet)"
    )


def _is_run(layout: RunLayout) -> bool:
    with suppress(OSError):
        return layout.launch.is_dir() or layout.state.is_file()
    return False


def _listed(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []
