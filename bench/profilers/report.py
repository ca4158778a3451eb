"""Counts as a person reads them (a table of functions, a table of source lines) and as a program does."""

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from bench.inputs import sizes_text
from bench.judge.schemas import Counters, FunctionCount, LineCount, Preset
from bench.profilers.profiler import Counts

K = TypeVar("K", int, tuple[str, str])
# Rows of the text, and of the counters.
SHOWN_FUNCTIONS, SHOWN_LINES = 12, 30
KEPT_FUNCTIONS, KEPT_LINES = 100, 400
# Characters of a name or a line, in the text and in the counters.
SHOWN_COLUMNS, KEPT_COLUMNS = 100, 300


def counters(
    counts: Counts, unit: str, calls: int, preset: Preset, sizes: Mapping[str, int], source_name: str, source: str
) -> Counters:
    """Counts by function, and by line of the file `source_name` whose text is `source`."""
    by_function: Counter[tuple[str, str]] = Counter()
    by_line: Counter[int] = Counter()
    for place, count in counts.items():
        by_function[place.function[:KEPT_COLUMNS], place.object] += count
        if source and place.file == source_name and place.line:
            by_line[place.line] += count
    texts = dict(enumerate(source.splitlines(), 1))
    return Counters(
        unit=unit,
        total=by_function.total(),
        calls=calls,
        preset=preset,
        sizes=dict(sizes),
        functions=tuple(
            FunctionCount(function=function, object=object_name, count=count)
            for (function, object_name), count in _largest(by_function, KEPT_FUNCTIONS)
        ),
        lines=tuple(
            LineCount(line=line, count=count, source=texts.get(line, "")[:KEPT_COLUMNS])
            for line, count in _largest(by_line, KEPT_LINES)
        ),
    )


def _largest(counter: "Counter[K]", most: int) -> list[tuple[K, int]]:
    """The largest entries; equal ones in the order of their keys, so that the same profile reads the same."""
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:most]


def report_text(kernel: str, tool: str, found: Counters) -> str:
    """The counters as text, the largest first; a source line is shown cut."""
    calls = "1 call" if found.calls == 1 else f"{found.calls} calls"
    size = f"preset {found.preset} ({sizes_text(found.sizes)})"
    lines = [f"{tool}: {found.total:,} {found.unit} in {calls} of {kernel} at {size}", ""]
    lines.append(_row(found, found.unit, "share", "function"))
    for entry in found.functions[:SHOWN_FUNCTIONS]:
        lines.append(_counted(found, entry.count, f"{entry.function[:SHOWN_COLUMNS]}  ({entry.object})"))
    if found.lines:
        lines += ["", _row(found, found.unit, "share", "line")]
    for at in found.lines[:SHOWN_LINES]:
        lines.append(_counted(found, at.count, f"{at.line:4}  {at.source[:SHOWN_COLUMNS].strip()}"))
    return "\n".join(lines) + "\n"


def _counted(found: Counters, count: int, what: str) -> str:
    return _row(found, f"{count:,}", f"{100 * count / max(found.total, 1):.1f} %", what)


def _row(found: Counters, count: str, share: str, what: str) -> str:
    width = max(len(found.unit), len(f"{found.total:,}"))
    return f"{count:>{width}}  {share:>7}  {what}"
