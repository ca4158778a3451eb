"""Measures the figures of a GPU, each part in a process and a share of the time of its own; writes JSON after each.

Where a part fails, what it has found stands, with the reason, and the others go on.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import process
from bench.errors import KernelcourtError
from bench.verdict import Rejected
from bench.version import versions

from . import device_parts, grade_parts
from .figures import MOST_WORDS, Line, allotment, gathered, why
from .slot import Slot, open_slot

ROOT = Path(__file__).resolve().parents[2]
# How much longer than it was given a part may take to end by itself.
GRACE_S = 25.0
# Part → what measures it, and its share of the time where all parts are measured.
PARTS: Mapping[str, tuple[Callable[[Slot], Iterator[Line]], float]] = {
    "facts": (device_parts.facts, 8),  # builds the judge's own pieces
    "copy": (device_parts.copy, 1),
    "matrix": (device_parts.matrix, 3),
    "builds": (grade_parts.builds, 10),
    "empty": (device_parts.empty, 3),
    "clocks": (device_parts.clocks, 4),
    "do_bench": (device_parts.do_bench, 4),
    "ladder": (grade_parts.ladder, 8),
    "roofline": (grade_parts.roofline, 16),
    "grade_cost": (grade_parts.grade_cost, 20),
    "profilers": (device_parts.profilers, 3),
    "against_itself": (grade_parts.against_itself, 22),
}


def named(text: str) -> list[str]:
    """Parts of a comma list, in the order in which they are measured."""
    wanted = text.split(",")
    if unknown := sorted(set(wanted) - set(PARTS)):
        raise argparse.ArgumentTypeError(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return [part for part in PARTS if part in wanted]


def options(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu_figures", description=__doc__)
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument("--device", default="cuda", choices=("cuda", "hip", "played"), help="default: cuda")
    parser.add_argument(
        "--parts", type=named, default=[*PARTS], help=f"a comma list of {', '.join(PARTS)}; default: all"
    )
    parser.add_argument("--commit", help="the commit of this copy of the code, where it is no checkout")
    parser.add_argument("--minutes", type=float, default=9.0, help="how long all of it may take; default: 9")
    for hidden in ("--part", "--lines"):  # one part, in the process that measures it
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=60, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if not given.part and not given.out:
        parser.error("--out is missing: the file that the figures go to")
    return given


# One part, in a process of its own


def measure(part: str, device: str, seconds: float, lines: Path) -> None:
    """Write a part's lines as they come: what stands there stays, however this process ends."""
    process.adopt_orphans()
    with lines.open("w", encoding="utf-8", buffering=1) as out:

        def say(line: Line) -> None:
            out.write(json.dumps(line) + "\n")

        slot = open_slot(device, seconds)
        say({"before": slot.court.gpu_state()})
        for line in PARTS[part][0](slot):
            say(line)
        for cut in slot.deadline.cut:
            say({"missing": cut})
        say({"after": slot.court.gpu_state()})


# All parts, one after the other


def in_its_own_process(part: str, device: str, seconds: float) -> dict[str, Any]:
    """What a part found within so many seconds, and under `missing` how it ended if not well."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.touch()
        argv = [sys.executable, "-m", "tests.gpu_figures", "--part", part, "--lines", str(lines)]
        argv += ["--device", device, "--seconds", f"{seconds:.1f}"]
        done = process.run(argv, limits=process.Limits(wall_s=seconds + GRACE_S), cwd=ROOT)
        found = gathered([json.loads(line) for line in whole_lines(lines.read_text(encoding="utf-8"))])
    if not done.ok:
        ended = f"was stopped after {seconds + GRACE_S:.0f} s" if done.timed_out else f"left with {done.returncode}"
        last = " ".join(done.output.split())[-MOST_WORDS:]
        found["missing"].append(f"the rest, for its process {ended}: {last}")
    return {"seconds": round(time.monotonic() - begun, 1), "allotted_s": round(seconds, 1), **found}


def whole_lines(text: str) -> list[str]:
    """Lines that were written to their end."""
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]


def report(given: argparse.Namespace) -> None:
    begun, deadline = time.monotonic(), time.monotonic() + 60 * given.minutes
    found: dict[str, Any] = {
        # Where the file lies means nothing to a reader elsewhere.
        "command": " ".join(["python -m tests.gpu_figures", *sys.argv[1:]]).replace(str(given.out), given.out.name),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": given.device,
        "versions": versions() | ({"commit": given.commit} if given.commit else {}),
        "parts": {},
    }
    for number, part in enumerate(given.parts):
        weights = [PARTS[later][1] for later in given.parts[number:]]
        seconds = allotment(deadline - time.monotonic(), weights)
        print(f"{part}: {seconds:.0f} s at most", flush=True)
        found["parts"][part] = in_its_own_process(part, given.device, seconds)
        found["seconds"] = round(time.monotonic() - begun, 1)
        write(given.out, found)
        show(part, found["parts"][part])


def write(out: Path, found: Mapping[str, Any]) -> None:
    """The file holds the parts so far, whole, at any time."""
    fresh = out.with_name(f"{out.name}.{os.getpid()}")
    fresh.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    fresh.replace(out)


def show(part: str, found: Mapping[str, Any]) -> None:
    print(f"{part}: took {found['seconds']} s", flush=True)
    for fact, value in found["facts"].items():
        print(f"  {fact}: {value}")
    for figure in found["figures"]:
        span = f" ({figure['low']:g} to {figure['high']:g})" if "low" in figure else ""
        goal = "" if figure["goal"] is None else f"; goal {figure['goal']:g}, {'met' if figure['met'] else 'NOT MET'}"
        print(f"  {figure['name']}: {figure['value']:g} {figure['unit']}{span}, n = {figure['n']}{goal}")
    for reason in found["missing"]:
        print(f"  MISSING {reason}", flush=True)


def main() -> None:
    given = options()
    if not given.part:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        return report(given)
    try:
        measure(given.part, given.device, given.seconds, Path(given.lines))
    except (KernelcourtError, Rejected) as error:
        sys.exit(f"error: {why(error)}")
    return None


if __name__ == "__main__":
    main()
