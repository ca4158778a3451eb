"""How far a running job is: read from the drivers' events and the shards, never from logs."""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from bench.judge.schemas import Kind, Outcome
from bench.results.database import engine
from cluster.job.layout import RunLayout
from cluster.job.ranks import RankHealth


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


class EventFile:
    """Reads the whole lines that were appended to a JSONL file since the last call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new(self) -> list[dict[str, object]]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


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
        self._files = [EventFile(layout.events(node)) for node in range(nodes)]
        self._shards = [layout.shard(rank) for rank in range(ranks)]
        self._clock = clock
        self._events: Counter[str] = Counter()
        self._grades: dict[Path, Counter[tuple[str, str]]] = {}
        self._known = 0
        self._last_event = clock()

    def read(self, ranks: Sequence[RankHealth] = ()) -> Progress:
        """Progress now; an episode event or a grade ends the quiet."""
        for file in self._files:
            self._events.update(str(event["event"]) for event in file.new())
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


_SOLVED = (Kind.SUBMIT.value, Outcome.SOLVED.value)


def count_grades(shard: Path) -> Counter[tuple[str, str]]:
    """(kind, outcome) → grades in a live shard; empty while it does not exist or cannot be read just now."""
    if not shard.exists():
        return Counter()
    reader = engine(shard, "ro")
    try:
        with reader.connect() as connection:
            rows = connection.exec_driver_sql("SELECT kind, outcome, count(*) FROM grades GROUP BY kind, outcome")
            return Counter({(kind, outcome): number for kind, outcome, number in rows})
    except DBAPIError:
        return Counter()
    finally:
        reader.dispose()
