"""A GPU as the machine shows it, before anybody opens it: which there are, of what kind, and how one is doing now."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.build.gpu_library import Kit


@dataclass(frozen=True)
class Card:
    """One GPU: its place in the vendor's own count, its architecture by its compiler's name, its driver's version."""

    index: int
    name: str
    target: str
    driver: str


@dataclass(frozen=True)
class Vendor:
    """What is asked of one vendor's GPUs.

    `cards()` raises EnvironmentFault, in words, where there are none. `mask` is the variable that says which of them a
    process sees, by index or name. `state(card)` is its clocks (MHz), power (W), temperature (°C) and load (%) now, as
    far as they are shown. `nodes()` are the nodes of /dev that a process needs.
    """

    mask: str
    cards: Callable[[], tuple[Card, ...]]
    state: Callable[[Card], dict[str, Any]]
    nodes: Callable[[], tuple[Path, ...]]
    kit: Callable[[Card], Kit]
