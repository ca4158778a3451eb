"""What a check is: its state, what was found, what to do; and what all checks are made for."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from bench.errors import KernelcourtError
from bench.places import anchored, run_root
from cluster.job.allocation import DEFAULT_PORT
from cluster.study.settings import JobSettings
from cluster.study.systems import System


class State(StrEnum):
    """`blocks`: the work that the check names cannot be done here; `warning`: it can, with less."""

    OK = "ok"
    WARNING = "warning"
    BLOCKS = "blocks"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: its state, what was found, and what to do where it is not ok."""

    name: str
    state: State
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Subject:
    """What is examined: a machine as part of a system (None: unknown), and one setup where one is named.

    `options` are those of sbatch that are decided, by name; `nodes`: the nodes are asked, too.
    """

    environ: Mapping[str, str]
    system: System | None = None
    setup: JobSettings | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    nodes: bool = False

    @property
    def on_slurm(self) -> bool:
        return self.system is not None and self.system.facts.launcher == "slurm"

    @property
    def run_root(self) -> Path:
        return anchored(self.setup.run_root) if self.setup else run_root()

    @property
    def runtime(self) -> str:
        """How roles are containerised."""
        if self.setup and self.setup.container_runtime:
            return self.setup.container_runtime
        known = self.system.facts.container_runtime if self.system else None
        return known or ("ce" if self.setup and self.on_slurm else "none")

    @property
    def ports(self) -> range:
        """Ports of the judges of one node."""
        first = (self.setup.judge_port if self.setup else None) or DEFAULT_PORT
        per_node = self.setup.judges_per_node if self.setup else None
        sockets = self.system.facts.nodes.sockets if self.system else None
        return range(first, first + 2 * (per_node or sockets or 1))


def blocks(checks: Iterable[Check]) -> bool:
    return any(check.state is State.BLOCKS for check in checks)


def halves(error: KernelcourtError) -> tuple[str, str]:
    """What happened, and what to do: an error says both, in this order."""
    what, _, advice = str(error).partition("; ")
    return what, advice


def is_there(path: Path) -> bool:
    """Whether we can see something there; `Path.exists` raises below a folder that we may not search."""
    return os.path.exists(path)  # noqa: PTH110


def nearest_there(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.absolute().parents) if is_there(folder))
