"""AMD's GPUs, by what Linux's driver shows below /sys. Written after its documentation; not tried on a device yet."""

import contextlib
import re
from pathlib import Path
from typing import Any

from bench.build.gpu import Target
from bench.build.gpu_library import Kit, amd_kit
from bench.devices.card import Card, Vendor
from bench.errors import EnvironmentFault

SYS = Path("/sys")
_TOPOLOGY = "class/kfd/kfd/topology/nodes"
_MILLI, _MICRO = 1e-3, 1e-6


def _read(path: Path) -> str:
    """Content of a file of /sys without its line end; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _properties(node: Path) -> dict[str, str]:
    pairs = (line.partition(" ") for line in _read(node / "properties").splitlines())
    return {name: value for name, _, value in pairs}


def architecture(version: int) -> str:
    """The compiler's name of `gfx_target_version`: 90402 → gfx942, 90010 → gfx90a (a step is one hexadecimal digit)."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def cards(root: Path = SYS) -> tuple[Card, ...]:
    """All of this machine, in the order in which ROCm counts them; raises EnvironmentFault when there is none."""
    nodes = sorted((root / _TOPOLOGY).glob("*"), key=lambda path: int(path.name) if path.name.isdigit() else 0)
    driver = _read(root / "module/amdgpu/version") or "of the kernel"
    found: list[Card] = []
    for node in nodes:
        properties = _properties(node)
        if int(properties.get("simd_count", "0")) > 0:  # a processor has none
            target = architecture(int(properties.get("gfx_target_version", "0")))
            found.append(Card(len(found), _read(node / "name") or target, target, driver))
    if not found:
        raise EnvironmentFault(f"no GPU of AMD was found below {root / _TOPOLOGY}; load its driver, or set DEVICE")
    return tuple(found)


def state(card: Card, root: Path = SYS) -> dict[str, Any]:
    """How a card is doing, as far as its driver shows it."""
    devices = sorted(root.glob("class/drm/card*/device"), key=lambda path: int(re.sub(r"\D", "", path.parent.name)))
    amd = [device for device in devices if _read(device / "vendor") == "0x1002"]
    if card.index >= len(amd):
        return {}
    device = amd[card.index]
    sensors = next(iter(sorted(device.glob("hwmon/hwmon*"))), device)
    shown = {
        "mhz": (_active_mhz(_read(device / "pp_dpm_sclk")), 1.0),
        "memory_mhz": (_active_mhz(_read(device / "pp_dpm_mclk")), 1.0),
        "watts": (_read(sensors / "power1_average") or _read(sensors / "power1_input"), _MICRO),
        "celsius": (_read(sensors / "temp1_input"), _MILLI),
        "load_percent": (_read(device / "gpu_busy_percent"), 1.0),
    }
    found = {}
    for name, (text, unit) in shown.items():
        with contextlib.suppress(ValueError):
            found[name] = float(text) * unit
    return found


def _active_mhz(levels: str) -> str:
    """The clock of the level that is marked as the one in use: `1: 2100Mhz *`."""
    marked = re.search(r"(\d+)\s*Mhz\s*\*", levels, re.IGNORECASE)
    return marked[1] if marked else ""


def nodes() -> tuple[Path, ...]:
    dev = Path("/dev")
    return tuple(path for path in (dev / "kfd", *sorted(dev.glob("dri/renderD*"))) if path.exists())


def kit(card: Card) -> Kit:
    """Raises EnvironmentFault when there is no compiler, or this version knows no such card."""
    try:
        return amd_kit(Target(card.target))
    except ValueError as error:
        known = ", ".join(target for target in Target if target.is_amd)
        raise EnvironmentFault(f"{card.name} is of {card.target}; this version grades on {known}") from error


VENDOR = Vendor("ROCR_VISIBLE_DEVICES", cards, state, nodes, kit)
