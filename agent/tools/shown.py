"""What a model is shown of a judge's answer: what it can act on, short enough for any client."""

import json
from typing import Any

from bench.judge.schemas import Answer, Outcome, ProfileAnswer, SearchAnswer

# Clients refuse or spill a result of some ten thousand tokens; of a build log or a report the two ends tell most.
TEXT_CAP_CHARS = 12_000
_DIGITS = 4


def graded(answer: Answer) -> dict[str, Any]:
    """A grade without what is null, and without what the agent chose or cannot change."""
    found = _plain(answer.model_dump_json(exclude={"kernel", "rank"}))
    for name in ("score", "interval"):
        if name in found:
            found[name] = _rounded(found[name])
    return found


def profiled(answer: ProfileAnswer) -> dict[str, Any]:
    """A profile: its report holds the largest counts as text. Unless solved: what was wrong."""
    named: dict[str, Any] = {"outcome": answer.outcome, "tool": answer.tool}
    if answer.outcome is not Outcome.SOLVED:
        return named | {"detail": _plain(answer.model_dump_json()).get("detail", {})}
    shown = named | {"report": capped(answer.report)}
    if answer.counters is not None:
        shown["counters"] = _plain(answer.counters.model_dump_json(exclude={"functions", "lines"}))
    return shown


def looked_up(answer: SearchAnswer) -> dict[str, Any]:
    """A search: the summary with its sources or, where there is none, the sources with their excerpts."""
    found = _plain(answer.model_dump_json(exclude={"query", "model"}))
    if answer.answer is not None:
        found["sources"] = [f"[{number}] {one.title}: {one.url}" for number, one in enumerate(answer.sources, start=1)]
    return found


def capped(text: str) -> str:
    """Head and tail of a text, TEXT_CAP_CHARS at most, and how much is missing between them."""
    if len(text) <= TEXT_CAP_CHARS:
        return text
    half = TEXT_CAP_CHARS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _plain(document: str) -> dict[str, Any]:
    """An object without its nulls and empty values, its texts capped; infinities have become null on the way."""
    found: dict[str, Any] = _pruned(json.loads(document))
    return found


def _pruned(value: Any) -> Any:
    match value:
        case dict():
            pruned = {key: _pruned(item) for key, item in value.items()}
            return {key: item for key, item in pruned.items() if item not in (None, "", {}, [])}
        case list():
            return [_pruned(item) for item in value]
        case str():
            return capped(value)
    return value


def _rounded(value: float | list[float]) -> float | list[float]:
    return [round(item, _DIGITS) for item in value] if isinstance(value, list) else round(value, _DIGITS)
