"""Rejected: how a stage of a grade ends it early, with an outcome, the property that failed, and what may be shown."""

import math
from typing import Any

from bench.judge.schemas import Outcome

# Refused by what it is made of, before anything of it ran: this tells of no hidden input.
BY_MAKE = frozenset({"text", "include", "flags", "symbols", "imports", "init_code", "segments", "instructions"})


class Rejected(Exception):
    """A submission's grade is settled before it is credited.

    `property` names what failed (build, values, memory, ...); `detail` may show values and is
    disclosed on `/score` only; `log` is output of the build or the run.
    """

    def __init__(self, outcome: Outcome, property: str, detail: dict[str, Any] | None = None, log: str = "") -> None:
        super().__init__(f"{outcome}: {property}")
        self.outcome = outcome
        self.property = property
        self.detail: dict[str, Any] = json_safe(detail or {})
        self.log = log


def json_safe(value: Any) -> Any:
    """`value` with every NaN and infinity as text ("nan", "inf", "-inf"): JSON has no number for them."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {name: json_safe(inner) for name, inner in value.items()}
        case list() | tuple():
            return [json_safe(inner) for inner in value]
    return value
