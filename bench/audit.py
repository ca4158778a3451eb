"""Holds a grade against an earlier one of the same submission: reproduced or not, and what else differs."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bench.records import GradeReport
from bench.results.rows import json_text
from bench.results.stored import StoredGrade

# Two grades of one submission may differ by so much before anybody asks why.
FREE = math.log(1.05)
MACHINE = ("cpu_model", "cores", "last_level_cache_bytes")
Graded = StoredGrade | GradeReport


class Agreement(StrEnum):
    """What a regrade says of the grade that it repeats."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    OTHER_MACHINE = "other machine"


@dataclass(frozen=True)
class Difference:
    """A circumstance that is not what it was."""

    what: str
    then: Any
    now: Any


def agreement(then: Graded, now: Graded) -> Agreement:
    """`reproduced`: same outcome, and raw ratios (where there are any) no further apart than `allowance`.

    What is not reproduced is `other machine` where CPU model, number of cores, cache or GPU differ: then neither grade
    speaks against the other. Else it `differs`.
    """
    if then.outcome is now.outcome and _apart(then, now) <= allowance(then, now):
        return Agreement.REPRODUCED
    return Agreement.OTHER_MACHINE if other_machine(then, now) else Agreement.DIFFERS


def allowance(then: Graded, now: Graded) -> float:
    """How far apart the raw ratios may be, as a logarithm: 5 % or the reach of either interval, the widest."""
    return max(FREE, _reach(then), _reach(now))


def other_machine(then: Graded, now: Graded) -> bool:
    """Whether the two were timed on machines of another kind."""
    before, after = (_facts(graded).get("machine", {}) for graded in (then, now))
    return any(before.get(fact) != after.get(fact) for fact in MACHINE) or _gpu(before) != _gpu(after)


def _gpu(machine: dict[str, Any]) -> str | None:
    """Name of the GPU that graded."""
    name: str | None = machine.get("gpu", {}).get("name")
    return name


def _apart(then: Graded, now: Graded) -> float:
    if then.raw_ratio is None or now.raw_ratio is None:
        return 0.0
    return abs(math.log(now.raw_ratio / then.raw_ratio))


def _reach(graded: Graded) -> float:
    """From the raw ratio to the further end of its interval, as a logarithm."""
    if graded.raw_ratio is None or graded.interval is None:
        return 0.0
    low, high = graded.interval
    return max(math.log(high / graded.raw_ratio), math.log(graded.raw_ratio / low))


def differences(then: Graded, now: Graded) -> tuple[Difference, ...]:
    """Machine, toolchain, versions and sandbox, where both grades know them and they are not the same."""
    before, after = dict(_circumstances(then)), dict(_circumstances(now))
    return tuple(
        Difference(what, before[what], after[what])
        for what in before
        if before[what] is not None and after.get(what) is not None and before[what] != after[what]
    )


def _circumstances(graded: Graded) -> Iterator[tuple[str, Any]]:
    facts = _facts(graded)
    machine, versions, build = (facts.get(part, {}) for part in ("machine", "versions", "build"))
    yield from ((name.replace("_", " "), machine.get(name)) for name in ("host", *MACHINE, "kernel"))
    yield "gpu", _gpu(machine)
    yield "gpu driver", machine.get("gpu", {}).get("driver")
    yield "timing cores", facts.get("cores", {}).get("timing")
    for side, built in (("candidate", build), ("denominator", build.get("denominator", {}))):
        yield f"compiler of the {side}", built.get("compiler")
        yield f"command of the {side}", _commands(built.get("commands"))
    yield from ((name, versions.get(name)) for name in ("package", "commit", "python", "numpy"))
    yield "denominator", graded.denominator
    yield "sandbox", graded.sandbox


def _commands(commands: list[list[str]] | None) -> str | None:
    """Build commands as text, without the name of what they write: a cache's names follow the machine."""
    if commands is None:
        return None
    return "; ".join(" ".join(_without_output(command)) for command in commands)


def _without_output(command: list[str]) -> list[str]:
    return [word for before, word in zip(["", *command], command, strict=False) if "-o" not in (before, word)]


def _facts(graded: Graded) -> dict[str, Any]:
    """Provenance as a database gives it back."""
    facts: dict[str, Any] = json.loads(json_text(graded.provenance))
    return facts
