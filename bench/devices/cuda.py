"""NVIDIA's GPUs, by what `nvidia-smi` says."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.build.gpu import Target
from bench.build.gpu_library import Kit, nvidia_kit
from bench.devices.card import Card, Vendor
from bench.errors import EnvironmentFault
from bench.process import Limits, run

_CARD = ("index", "name", "compute_cap", "driver_version")
# Field of the query → name in a state; `[N/A]` and the like are left out.
_STATE = {
    "clocks.sm": "mhz",
    "clocks.mem": "memory_mhz",
    "power.draw": "watts",
    "temperature.gpu": "celsius",
    "utilization.gpu": "load_percent",
}
_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


def _query(fields: Sequence[str], *options: str) -> list[list[str]]:
    """One row a GPU; raises EnvironmentFault where the tool is missing or fails."""
    if shutil.which("nvidia-smi") is None:
        raise EnvironmentFault("no GPU of NVIDIA was found: nvidia-smi is not here; install its driver, or set DEVICE")
    argv = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", *options]
    done = run(argv, limits=Limits(wall_s=30))
    if not done.ok:
        raise EnvironmentFault(f"no GPU of NVIDIA can be used: nvidia-smi says {done.output.strip()[-300:]}")
    return read_rows(done.output, len(fields))


def read_rows(text: str, count: int) -> list[list[str]]:
    """The values of each line that has as many as were asked for."""
    rows = [[value.strip() for value in line.split(",")] for line in text.splitlines()]
    return [row for row in rows if len(row) == count]


def cards() -> tuple[Card, ...]:
    """All of this machine; raises EnvironmentFault when there is none."""
    found = tuple(
        Card(int(index), name, f"sm_{capability.replace('.', '')}", driver)
        for index, name, capability, driver in _query(_CARD)
    )
    if not found:
        raise EnvironmentFault("no GPU of NVIDIA was found: nvidia-smi lists none")
    return found


def state(card: Card) -> dict[str, Any]:
    """How a card is doing; empty where the tool says nothing."""
    try:
        rows = _query(tuple(_STATE), f"--id={card.index}")
    except EnvironmentFault:
        return {}
    return read_state(rows[0]) if rows else {}


def read_state(values: Sequence[str]) -> dict[str, float]:
    """Numbers by name, of one row."""
    found = {}
    for name, value in zip(_STATE.values(), values, strict=True):
        try:
            found[name] = float(value)
        except ValueError:
            continue
    return found


def nodes() -> tuple[Path, ...]:
    dev = Path("/dev")
    shared = [dev / name for name in _NODES]
    return tuple(path for path in (*sorted(dev.glob("nvidia[0-9]*")), *shared) if path.exists())


def kit(card: Card) -> Kit:
    """Raises EnvironmentFault when there is no compiler, or this version knows no such card."""
    try:
        return nvidia_kit(Target(card.target))
    except ValueError as error:
        known = ", ".join(target for target in Target if not target.is_amd)
        raise EnvironmentFault(f"{card.name} is of {card.target}; this version grades on {known}") from error


VENDOR = Vendor("CUDA_VISIBLE_DEVICES", cards, state, nodes, kit)
