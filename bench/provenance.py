"""What a reader needs to trust or repeat a number: builds, clocks, noise, versions, the machine before and after."""

import hashlib
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

from bench.build import builder
from bench.build.gpu_library import Kit
from bench.build.toolchain import Artifact, toolchains, toolchains_text
from bench.court import Court
from bench.devices import cpu
from bench.judge.schemas import Language
from bench.measure.sampling import Sides
from bench.measure.statistics import relative_iqr
from bench.records import Cell, SourceFile
from bench.version import versions

TOOLCHAINS_ROLE = "toolchains"


def planned_build(language: Language, kernel: str, kit: Kit | None) -> dict[str, Any]:
    """How a submission will be built; a build that fails leaves this on its row."""
    commands = builder.submission_commands(language, kernel, kit)
    compiler = kit.compiler if kit else toolchains()[language].version if commands else ""
    return {"commands": commands, "compiler": compiler}


def build_facts(built: Artifact) -> dict[str, Any]:
    """How an artifact was built: argv of each command, and the compiler's first line of `--version`."""
    return {"commands": built.commands, "compiler": built.compiler}


def library_facts(library: Path) -> dict[str, Any]:
    """What a submission without source was: its sha256 (hex) and its size in bytes, or why it cannot be read."""
    try:
        content = library.read_bytes()
    except OSError as error:
        return {"unreadable": error.strerror}
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def clock_figures(sides: Sides) -> dict[str, Any]:
    """Empty call of each side, and how far the judge's time of a call lies above the runner's own (ns)."""
    runners = {"candidate": sides.candidate, "denominator": sides.denominator}
    empty = {f"empty_{side}_ns": runner.empty_ns for side, runner in runners.items()}
    return empty | {f"offset_{side}_ns": _p50_p99(offsets) for side, offsets in sides.offsets_ns.items() if offsets}


def _p50_p99(values: Sequence[float]) -> dict[str, float]:
    percentiles = quantiles(values, n=100, method="inclusive") if len(values) > 1 else [values[0]] * 99
    return {"p50": percentiles[49], "p99": percentiles[98]}


def noise(cells: Sequence[Cell]) -> dict[str, float] | None:
    """Relative IQR of each side's times: the median over the timed inputs; None where nothing was timed."""
    if not cells:
        return None
    return {
        "candidate": median(relative_iqr(cell.candidate_ns) for cell in cells),
        "denominator": median(relative_iqr(cell.denominator_ns) for cell in cells),
    }


def machine_state(court: Court) -> dict[str, Any]:
    """How busy and how fast this machine is now: load average over a minute, clock of the timing cores (MHz)."""
    found = {"load": os.getloadavg()[0], "mhz": [cpu.frequency_mhz(core) for core in court.cores.timing]}
    return found | ({"gpu": court.gpu_state()} if court.gpu else {})


def circumstances(
    court: Court, denominator: Path, name: str, cells: Sequence[Cell], before: dict[str, Any]
) -> dict[str, Any]:
    """What is known of a grade at its end, whatever came of it; `before` is the machine's state at its start.

    `name` is the denominator's, whose source lies at `denominator`.
    """
    return {
        "sandbox_by": court.sandbox.by,
        "cores": {"timing": court.cores.timing, "clock": court.cores.clock},
        "affinity": sorted(os.sched_getaffinity(0)),
        "machine": cpu.description() | ({"gpu": court.gpu_facts()} if court.gpu else {}),
        "before": before,
        "after": machine_state(court),
        "noise": noise(cells),
        "denominator": {"name": name, "sha256": hashlib.sha256(denominator.read_bytes()).hexdigest()},
        "versions": {**versions(), "python": platform.python_version(), "numpy": np.__version__},
    }


def toolchains_source() -> SourceFile:
    """The compilers and flags in force, as one of the texts that define a grade."""
    return SourceFile(role=TOOLCHAINS_ROLE, name="toolchains.yaml", content=toolchains_text())
