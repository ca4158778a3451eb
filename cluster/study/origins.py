"""Layers of KEY=value stacked on each other: the later wins, and every value remembers where it was set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Layer:
    """Keys that one place sets: KEY → value, and KEY → line (from 1) where the place is a file."""

    name: str
    path: Path
    values: dict[str, str]
    lines: dict[str, int] = field(default_factory=dict)

    def where(self, key: str) -> str:
        """The place as `file:line`, or the file alone where the line is not known."""
        return f"{self.path}:{self.lines[key]}" if key in self.lines else str(self.path)


@dataclass(frozen=True)
class Origin:
    """One layer's value of a KEY; `line` is 0 where the layer is no file."""

    layer: str
    path: Path
    line: int
    value: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)


# KEY → every layer that gave it, the winner last.
Origins = dict[str, list[Origin]]


def stacked(layers: Sequence[Layer]) -> Origins:
    """All that the layers say of each KEY, the strongest last."""
    origins: Origins = {}
    for layer in layers:
        for key, value in layer.values.items():
            said = Origin(layer.name, layer.path, layer.lines.get(key, 0), value)
            origins.setdefault(key, []).append(said)
    return origins


def values_of(origins: Mapping[str, Sequence[Origin]]) -> dict[str, str]:
    """KEY → the value that wins."""
    return {key: said[-1].value for key, said in origins.items()}
