"""How far a running job is: read from the drivers' events and the shards, never from logs."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from bench.judge.schemas import Kind, Outcome
from bench.results.database import engine
from cluster.job.health import RankHealth
from cluster.job.layout import RunLayout
from cluster.job.lines import NewLines

RECENT, LEAST_SPAN = timedelta(minutes=10), timedelta(minutes=1)


@dataclass(frozen=True)
class Progress:
    """A job at one moment. `grades` counts by kind; `ranks` is what each said of itself; quiet in seconds."""

    planned: int
    started: int = 0
    ended: int = 0
    grades: dict[str, int] = field(default_factory=dict)
    solved: int = 0
    ranks: tuple[RankHealth, ...] = ()
    quiet_s: float = 0.0

    @property
    def running(self) -> int:
        return self.started - self.ended

    @property
    def left(self) -> int:
        return self.planned - self.started


class ProgressReader:
    """Follows one job; `clock` counts seconds."""

    def __init__(
        self,
        layout: RunLayout,
        planned: int,
        nodes: int,
        ranks: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._planned = planned
        self._files = [NewLines(layout.events(node)) for node in range(nodes)]
        self._shards = [layout.shard(rank) for rank in range(ranks)]
        self._clock = clock
        self._events: Counter[str] = Counter()
        self._grades: dict[Path, Counter[tuple[str, str]]] = {}
        self._known = 0
        self._last_event = clock()

    def read(self, ranks: Sequence[RankHealth] = ()) -> Progress:
        """Progress now; an episode event or a grade ends the quiet."""
        for file in self._files:
            self._events.update(map(_event, file.read()))
        self._grades |= {shard: found for shard in self._shards if (found := count_grades(shard))}
        graded: Counter[tuple[str, str]] = sum(self._grades.values(), Counter())
        if (known := self._events.total() + graded.total()) != self._known:
            self._known, self._last_event = known, self._clock()
        kinds: Counter[str] = Counter()
        for (kind, _), number in graded.items():
            kinds[kind] += number
        return Progress(
            planned=self._planned,
            started=self._events["episode_started"],
            ended=self._events["episode_ended"],
            grades=dict(sorted(kinds.items())),
            solved=graded[_SOLVED],
            ranks=tuple(ranks),
            quiet_s=self._clock() - self._last_event,
        )


def _event(line: bytes) -> str:
    """The name of an event; a damaged line, which must end no job, has none."""
    try:
        return str(json.loads(line)["event"])
    except (ValueError, TypeError, KeyError):
        return ""


_SOLVED = (Kind.SUBMIT.value, Outcome.SOLVED.value)


def count_grades(shard: Path) -> Counter[tuple[str, str]]:
    """(kind, outcome) → grades in a live shard; empty while it does not exist or cannot be read just now."""
    rows = _rows(shard, "SELECT kind, outcome, count(*) FROM grades GROUP BY kind, outcome")
    return Counter({(kind, outcome): number for kind, outcome, number in rows})


@dataclass(frozen=True)
class Pace:
    """Grades an hour in the last minutes and overall; None where less than a minute would have to tell."""

    recent: float | None = None
    overall: float | None = None


def pace(shards: Iterable[Path], now: datetime, live: bool) -> Pace:
    """How fast the ranks grade together at a moment (UTC); of a job that is over, there is no recent pace."""
    since = (now - RECENT).isoformat(timespec="milliseconds")
    query = "SELECT count(*), sum(finished_at >= ?), min(requested_at), max(finished_at) FROM grades"
    found = [row for shard in shards for row in _rows(shard, query, (since,)) if row[0]]
    if not found:
        return Pace()
    total, recent = (sum(row[column] for row in found) for column in (0, 1))
    first = datetime.fromisoformat(min(row[2] for row in found))
    last = now if live else datetime.fromisoformat(max(row[3] for row in found))
    window = min(RECENT, now - first)
    return Pace(_hourly(recent, window) if live else None, _hourly(total, last - first))


def _hourly(number: int, span: timedelta) -> float | None:
    return number / (span / timedelta(hours=1)) if span >= LEAST_SPAN else None


def _rows(shard: Path, query: str, parameters: tuple[str, ...] = ()) -> list[Any]:
    """The rows of a live shard; none while it does not exist or cannot be read just now."""
    if not shard.exists():
        return []
    reader = engine(shard, "ro")
    try:
        with reader.connect() as connection:
            return list(connection.exec_driver_sql(query, parameters))
    except DBAPIError:
        return []
    finally:
        reader.dispose()
