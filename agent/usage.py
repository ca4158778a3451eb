"""What an agent used: tokens by kind, turns, tool calls; "not reported" is never zero."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Usage:
    """Use by a part of an episode; None is "not reported". `api_s` is seconds spent waiting for a model."""

    tokens_fresh: int | None = None
    tokens_cached: int | None = None
    tokens_output: int | None = None
    turns: int | None = None
    tool_calls: int | None = None
    api_s: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        names = [field.name for field in fields(Usage)]
        sums: dict[str, Any] = {name: _sum(getattr(self, name), getattr(other, name)) for name in names}
        return Usage(**sums)

    @property
    def tokens(self) -> int:
        """Tokens of all kinds: what a token budget counts."""
        return (self.tokens_fresh or 0) + (self.tokens_cached or 0) + (self.tokens_output or 0)


NOTHING = Usage()


def _sum(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other
