"""Measures the speed goals (`make bench`): a table on standard error, one JSON object on standard output."""

import argparse
import importlib
import json
import pkgutil
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


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
        value, goal, met = (result.get(key) for key in ("value", "goal", "met"))
        spread = f"{result['min']:.3g} - {result['max']:.3g}" if "min" in result else ""
        verdict = {True: "yes", False: "NO", None: ""}[met]
        target = "" if goal is None else f"{goal:g} {result['unit']}"
        count = str(result.get("n", ""))
        table.add_row(result["name"], f"{value:.3g} {result['unit']}", target, verdict, spread, count)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="benchmarks to run, such as cli; all by default")
    parser.add_argument("--out", type=Path, help="also write the JSON to this file")
    options = parser.parse_args()
    results = []
    for name in modules(options.names):
        print(f"measuring {name.removesuffix('_bench')} ...", file=sys.stderr)
        results += measured(name)
    Console(stderr=True).print(shown(results))
    report = {"python": platform.python_version(), "machine": platform.machine(), "results": results}
    text = json.dumps(report, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
