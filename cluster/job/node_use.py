"""Sums up how the nodes of a run were used, by what their monitors wrote."""

import csv
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cluster.job.launchers import Role
from cluster.job.layout import RunLayout
from cluster.job.monitor import TIME
from cluster.job.records import StepSeen, steps_seen


@dataclass(frozen=True)
class Spread:
    """What a column came to over all samples."""

    mean: float
    median: float
    max: float


@dataclass(frozen=True)
class NodeUse:
    """How a node was used while it was sampled, and for what; `damaged` rows were left out."""

    node: str
    roles: tuple[str, ...]
    samples: int
    damaged: int
    sampled_s: float
    columns: Mapping[str, Spread]


def nodes_of(layout: RunLayout) -> list[NodeUse]:
    """Every node of a run that was sampled, by name."""
    roles = roles_by_host(steps_seen(layout.steps).values())
    return [summed_up(path, _roles_of(path.stem, roles)) for path in sorted(layout.monitor.glob("*.csv"))]


def roles_by_host(steps: Iterable[StepSeen]) -> dict[str, list[str]]:
    """Host → the roles of its steps, without the monitor's own."""
    found: dict[str, list[str]] = {}
    for step in steps:
        if step.role != Role.MONITOR and step.role not in found.setdefault(step.host, []):
            found[step.host].append(step.role)
    return found


def _roles_of(node: str, roles: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The roles of a node; where a job has one machine alone, its name and its address are the same."""
    mine = roles.get(node) or (next(iter(roles.values())) if len(roles) == 1 else [])
    return tuple(sorted(mine))


def summed_up(path: Path, roles: tuple[str, ...]) -> NodeUse:
    """One node by its CSV file; a row that is not whole is left out and counted."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    header, *rows = [_cells(line) for line in lines] or [None]
    whole = [_values(header, row) for row in rows] if header else []
    values = [row for row in whole if row is not None]
    times = [row[TIME] for row in values]
    columns = {column: [row[column] for row in values if column in row] for column in header or () if column != TIME}
    return NodeUse(
        node=path.stem,
        roles=roles,
        samples=len(values),
        damaged=len(rows) - len(values),
        sampled_s=max(times) - min(times) if times else 0.0,
        columns={column: _spread(found) for column, found in columns.items() if found},
    )


def _cells(line: str) -> list[str] | None:
    """The cells of a row, None of one whose end was never written."""
    return next(csv.reader([line]), None) if line.endswith("\n") else None


def _values(header: Sequence[str], row: Sequence[str] | None) -> dict[str, float] | None:
    """Column → value of a row, the time in seconds, without its empty cells; None of a damaged one."""
    if row is None or len(row) != len(header):
        return None
    try:
        return {
            column: datetime.fromisoformat(cell).timestamp() if column == TIME else float(cell)
            for column, cell in zip(header, row, strict=True)
            if cell or column == TIME
        }
    except ValueError:
        return None


def _spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.fmean(values), statistics.median(values), max(values))
