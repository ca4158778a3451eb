"""Measures the speed goals (`make bench`): a table on standard error, one JSON object on standard output."""

import argparse
import importlib
import json
import pkgutil
import platform
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.court import Court, open_court
from bench.devices import cpu
from bench.errors import KernelcourtError
from bench.measure.quiet import Lookout
from bench.version import versions

# A host's name means nothing to a reader elsewhere.
FACTS = ("cpu_model", "cores", "kernel", "last_level_cache_bytes")


def modules(wanted: list[str]) -> list[str]:
    """Modules of this package that measure something, or those of the given names."""
    found = [info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]) if info.name.endswith("_bench")]
    if unknown := set(wanted) - {name.removesuffix("_bench") for name in found}:
        sys.exit(f"error: no benchmark {', '.join(sorted(unknown))}; there are {', '.join(sorted(found))}")
    return [name for name in found if not wanted or name.removesuffix("_bench") in wanted]


def measured(name: str) -> Iterator[dict[str, Any]]:
    """Results of one module: `name`, `value` and `unit` (or `median_s`), and `goal`, an upper bound."""
    found = importlib.import_module(f"tests.benchmarks.{name}").measure()
    for result in found if isinstance(found, list) else [found]:
        figure = {"value": result["median_s"], "unit": "s"} if "median_s" in result else {}
        whole = {**result, **figure}
        goal = whole.get("goal")
        yield {**whole, "met": None if goal is None else whole["value"] <= goal}


def shown(results: list[dict[str, Any]]) -> Table:
    table = Table("what", "measured", "goal", "met", "spread", "n")
    for result in results:
        goal, met = result.get("goal"), result["met"]
        spread = f"{_number(result['min'])} - {_number(result['max'])}" if "min" in result else ""
        verdict = {True: "yes", False: "NO", None: ""}[met]
        target = "" if goal is None else f"{goal:g} {result['unit']}"
        count = str(result.get("n", ""))
        table.add_row(result["name"], f"{_number(result['value'])} {result['unit']}", target, verdict, spread, count)
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def circumstances(court: Court) -> dict[str, Any]:
    """Which machine measures which code, at which sandbox level, since when."""
    return {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {fact: cpu.description()[fact] for fact in FACTS},
        "cores": {"timing": court.cores.timing, "clock": court.cores.clock},
        "sandbox": str(court.sandbox.level),
        "versions": {**versions(), "python": platform.python_version()},
    }


def report(wanted: list[str]) -> dict[str, Any]:
    """Measure; the whole JSON object, with what was not quiet meanwhile.

    Raises:
        KernelcourtError: this machine cannot grade, or a grade that a benchmark needs went wrong.
    """
    court = open_court("limits")
    facts, begun, lookout, results = circumstances(court), time.monotonic(), Lookout(court.cores), []
    for name in modules(wanted):
        print(f"measuring {name.removesuffix('_bench')} ...", file=sys.stderr)
        results += measured(name)
    seconds = round(time.monotonic() - begun, 1)
    return {
        "command": " ".join(["python -m tests.benchmarks", *wanted]),
        **facts,
        "seconds": seconds,
        "quiet": lookout.warnings(),
        "results": results,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="benchmarks to run, such as cli; all by default")
    parser.add_argument("--out", type=Path, help="also write the JSON to this file")
    options = parser.parse_args()
    try:
        found = report(options.names)
    except KernelcourtError as error:
        sys.exit(f"error: {error}")
    Console(stderr=True).print(shown(found["results"]))
    text = json.dumps(found, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
