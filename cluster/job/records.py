"""The records in `<run>/steps/`: how each step of a job began and ended, which the step's own node writes."""

import json
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from agent.journal import utc_now

_BEGIN, _END = ".begin.json", ".end.json"


class StepState(StrEnum):
    """Where a step is in its life. `lost`: it has ended, and nothing on its node wrote how."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    OUT_OF_MEMORY = "out_of_memory"
    STOPPED = "stopped"
    LOST = "lost"


@dataclass(frozen=True)
class BeginRecord:
    """How a step began. `devices` is the mask of GPUs that it sees."""

    name: str
    role: str
    host: str
    pid: int
    slurm_step: str | None
    devices: dict[str, str]
    began_at: str


@dataclass(frozen=True)
class StepSeen:
    """A step by its records. `stopped` says that the job asked it to end.

    There is no exit code when nobody saw it end, and a negative one when a signal ended it.
    """

    name: str
    role: str
    host: str
    state: StepState = StepState.RUNNING
    exit_code: int | None = None
    stopped: bool = False

    @property
    def ended_well(self) -> bool:
        """Whether it succeeded, or ended because the job asked it to."""
        return self.stopped or self.state in (StepState.SUCCEEDED, StepState.STOPPED)

    @property
    def failed(self) -> bool:
        return self.state is not StepState.RUNNING and not self.ended_well

    @property
    def words(self) -> str:
        """Its end in a few words: `failed (exit code 3)`, `lost (no record of its end)`."""
        if self.state is StepState.LOST:
            return "lost (no record of its end)"
        if self.exit_code is None:
            return self.state.value
        by = f"by signal {-self.exit_code}" if self.exit_code < 0 else f"exit code {self.exit_code}"
        return f"{self.state} ({by})"


@dataclass(frozen=True)
class EndRecord(StepSeen):
    """How a step ended."""

    seconds: float | None = None
    peak_memory_bytes: int | None = None
    ended_at: str = field(default_factory=utc_now)


def begin_record(records: Path, name: str) -> Path:
    """Where a step's wrapper writes how the step began."""
    return records / f"{name}{_BEGIN}"


def end_record(records: Path, name: str) -> Path:
    """Where a step's end is written: by its wrapper or, where that died as well, by the job's process."""
    return records / f"{name}{_END}"


def read_begin(records: Path, name: str) -> BeginRecord | None:
    """How a step began; None before it has."""
    found = _read(begin_record(records, name))
    return BeginRecord(**found) if found else None


def read_end(records: Path, name: str) -> EndRecord | None:
    """How a step ended; None while that is not written."""
    found = _read(end_record(records, name))
    return EndRecord(**found | {"state": StepState(found["state"])}) if found else None


def steps_seen(records: Path) -> dict[str, StepSeen]:
    """Step name → what its records say of it; a step whose records are damaged is left out."""
    begun, ended = _read_all(records, _BEGIN), _read_all(records, _END)
    steps = {}
    for name in begun.keys() | ended.keys():
        record = begun.get(name, {}) | ended.get(name, {})
        with suppress(TypeError, ValueError):
            seen = StepSeen(**{key.name: record[key.name] for key in fields(StepSeen) if key.name in record})
            steps[name] = replace(seen, state=StepState(seen.state))
    return steps


def end_records(records: Path) -> list[dict[str, Any]]:
    """The end records of a job that is over, by step name; a step that has begun and has none is lost."""
    lost = {
        name: {key: begun.get(key) for key in ("name", "role", "host")} | {"state": StepState.LOST}
        for name, begun in _read_all(records, _BEGIN).items()
    }
    return [record for _, record in sorted((lost | _read_all(records, _END)).items())]


def _read_all(records: Path, suffix: str) -> dict[str, dict[str, Any]]:
    """Step name → its record of this kind, without damaged ones."""
    found = {}
    for path in records.glob(f"*{suffix}"):
        with suppress(OSError, ValueError):
            record = json.loads(path.read_bytes())
            if isinstance(record, dict):
                found[path.name.removesuffix(suffix)] = record
    return found


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
