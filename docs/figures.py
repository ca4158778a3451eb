"""Writes docs/measurements/figures.md from the JSON files there, and into docs/measuring.md the figures it quotes.

With `--check` it only names what is stale. No figure of the project is typed by hand.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pages import table, write
from pydantic import ValidationError

from bench.judge.schemas import Preset
from bench.measure.calibration import AgainstItself, Calibration, Ceilings, Level, Rung, Share, Spread

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "measurements"
NOTE = "<!-- Written by `make docs` from the JSON files beside it. -->\n"
HEAD = """\
# Figures

What the project has measured of itself. Each section shows one JSON file: the output of one command, on one machine,
at one commit. [Measurements](README.md) says how they are made; [what a number means](../measuring.md) is how to read
them. Brackets behind a median hold the 5th and the 95th percentile; behind a share, its 95 % interval.
"""
NONE_YET = "Nothing has been measured yet.\n"
# What a quiet machine is to reach.
SPREAD_GOAL, LADDER_GOAL, COVERED_GOAL = 0.05, 0.03, 0.84
# A figure that a page quotes: its key, and its text between the two comments.
QUOTE = re.compile(r"(<!-- MEASURE (\w+) -->)(.*?)(<!-- END -->)")


@dataclass(frozen=True)
class Figure:
    """One line of a calibration's table; `met` is None where there is no goal, or the run was too rough for it."""

    key: str
    what: str
    value: str
    goal: str = ""
    met: bool | None = None


def verdict(met: bool | None) -> str:
    return {True: "yes", False: "**no**", None: ""}[met]


def percent(rate: float) -> str:
    return f"{rate * 100:.1f} %"


def share(found: Share) -> str:
    return f"{percent(found.rate)} ({percent(found.low)} to {percent(found.high)}; {found.hits} of {found.of})"


def spread(found: Spread, unit: str, digits: int) -> str:
    return f"{found.median:.{digits}f}{unit} ({found.low:.{digits}f} to {found.high:.{digits}f}; {found.of} values)"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# A calibration


def calibration_figures(found: Calibration) -> Iterator[Figure]:
    """Every figure of a calibration, in the order of the page."""
    machine = f"{found.cpu_model}, {found.machine_cores} cores, {len(found.timing_cores)} of them timing"
    yield Figure("machine", "Machine", machine)
    yield Figure("empty_call", "Empty call", spread(found.empty_call_ns, " ns", 0))
    yield Figure("empty_python_call", "Empty call in Python", spread(found.empty_python_call_ns, " ns", 0))
    yield from own_figures(found.against_itself, judged=not found.quick)
    yield from ladder_figures(found, judged=not found.quick and found.ladder_preset is Preset.XL)
    yield from ceiling_figures(found.ceilings)


def own_figures(own: AgainstItself, judged: bool) -> Iterator[Figure]:
    credited = f"{share(own.credited)}, p = {own.p:.2f}"
    goal = f"not significantly above {percent(own.expected)}"
    yield Figure("credited", "A/A: inputs credited", credited, goal, not own.above_chance if judged else None)
    met = own.spread <= SPREAD_GOAL if judged else None
    what, goal = "A/A: |S - 1| in 95 of 100 grades at most", f"at most {percent(SPREAD_GOAL)}"
    yield Figure("score_spread", what, percent(own.spread), goal, met)
    yield Figure("intervals_hold_one", "A/A: 90 % intervals that hold 1", share(own.covered))
    yield Figure("order_effect", "A/A: first of a pair over second", spread(own.order_effect, "", 4))
    yield Figure("resolves", "Shown as faster in nine grades of ten, from", f"{own.resolves:.3f}")


def ladder_figures(found: Calibration, judged: bool) -> Iterator[Figure]:
    """The known ratios together; their rungs have a table of their own."""
    where, goal = f"Known ratios at {found.ladder_preset}", f"within {percent(LADDER_GOAL)}"
    off, worst = max(map(median_error, found.ladder)), max(rung.worst_error for rung in found.ladder)
    met = off <= LADDER_GOAL if judged else None
    yield Figure("ladder_off", f"{where}: a rung's median off by at most", percent(off), goal, met)
    met = worst <= LADDER_GOAL if judged else None
    yield Figure("ladder_worst", f"{where}: a single grade off by at most", percent(worst), goal, met)
    met = found.ladder_covered.rate >= COVERED_GOAL if judged else None
    what, goal = f"{where}: intervals that hold the truth", f"at least {percent(COVERED_GOAL)}"
    yield Figure("ladder_covered", what, share(found.ladder_covered), goal, met)


def median_error(rung: Rung) -> float:
    return abs(rung.raw.median / rung.truth - 1)


def ceiling_figures(ceilings: Ceilings) -> Iterator[Figure]:
    for level in ceilings.levels:
        yield Figure(f"bandwidth_{level.name.lower()}", f"At most, {place(level)}", rates(level))
    peaks = f"{ceilings.float32_flops:.0f} Gflop/s in float32, {ceilings.float64_flops:.0f} in float64"
    yield Figure("peak", "At most, arithmetic", peaks)


def place(level: Level) -> str:
    return level.name if level.name == "memory" else f"{level.name} ({level.bytes >> 10} KiB)"


def rates(level: Level) -> str:
    stream = f", stream {level.stream_rate:.1f} GB/s" if level.stream_rate else ""
    return f"copy {level.copy_rate:.1f} GB/s, read {level.read_rate:.1f} GB/s{stream}"


def calibration_section(name: str, found: Calibration) -> str:
    rows = [(line.what, line.value, line.goal, verdict(line.met)) for line in calibration_figures(found)]
    command = f"kcourt calibrate{' --quick' if found.quick else ''}"
    version = f"{found.package_version}, {found.package_commit or 'no commit'}"
    return "\n".join(
        [
            f"## Calibration, {found.made_at[:10]}: {found.cpu_model}\n",
            facts(name, command, version, f"Linux {found.kernel_release}", found.sandbox, found.seconds, found.quiet),
            table(["Figure", "Measured", "Goal", "Met"], rows),
            table(["True ratio", "Found", "5 % to 95 %", "Worst grade off by", "Intervals hold it"], rung_rows(found)),
            table(["A/A of", "Preset", "Grades", "Credited", "|S - 1|", "Shown as faster from"], track_rows(found)),
        ]
    )


def rung_rows(found: Calibration) -> Iterator[tuple[str, ...]]:
    for rung in found.ladder:
        raw, held = rung.raw, f"{rung.covered} of {rung.raw.of}"
        span = f"{raw.low:.3f} to {raw.high:.3f}"
        yield f"{rung.truth:.2f}", f"{raw.median:.3f}", span, percent(rung.worst_error), held


def track_rows(found: Calibration) -> Iterator[tuple[str, ...]]:
    for track in found.against_itself.tracks:
        credited, resolves = f"{track.credited} of {track.inputs}", f"{track.resolves:.3f}"
        yield track.kernel, track.preset, str(track.grades), credited, percent(track.spread), resolves


def facts(
    name: str, command: str, version: str, system: str, sandbox: str, seconds: float, quiet: Iterable[str]
) -> str:
    """How a file came about, as a list."""
    disturbed = "; ".join(quiet) or "nothing"
    return (
        f"* [`{name}`]({name}), from `{command}`\n"
        f"* Kernelcourt {version}; {system}; sandbox level `{sandbox}`; took {seconds:.0f} s\n"
        f"* Not quiet meanwhile: {disturbed}\n"
    )


# Benchmarks


def bench_section(name: str, found: Mapping[str, Any]) -> str:
    machine, versions, results = found["machine"], found["versions"], found["results"]
    version = f"{versions['package']}, {versions['commit'] or 'no commit'}"
    system = f"Linux {machine['kernel']}, Python {versions['python']}"
    return "\n".join(
        [
            f"## Speed and agreement, {found['made_at'][:10]}: {machine['cpu_model']}, {machine['cores']} cores\n",
            facts(name, found["command"], version, system, found["sandbox"], found["seconds"], found["quiet"]),
            table(["What", "Measured", "Goal", "Met", "Range", "n"], map(bench_row, results)),
            *stages_table([result for result in results if "stages_ms" in result]),
            *(each_table(result) for result in results if "each" in result),
        ]
    )


def bench_row(result: Mapping[str, Any]) -> tuple[str, ...]:
    unit = result["unit"]
    goal = "" if result.get("goal") is None else f"at most {result['goal']:g} {unit}"
    span = f"{number(result['min'])} to {number(result['max'])}" if "min" in result else ""
    measured = f"{number(result['value'])} {unit}"
    return result["name"], measured, goal, verdict(result["met"]), span, str(result.get("n", ""))


def stages_table(results: list[Mapping[str, Any]]) -> Iterator[str]:
    """Where the time of a grade goes, in seconds; nothing where no result tells."""
    if results:
        stages = dict.fromkeys(stage for result in results for stage in result["stages_ms"])
        rows = [(r["name"], *(f"{r['stages_ms'].get(stage, 0) / 1e3:.2f}" for stage in stages)) for r in results]
        yield table(["Seconds of", *stages], rows)


def each_table(result: Mapping[str, Any]) -> str:
    rows = []
    for row in result["each"]:
        then, now, apart = f"{row['then']:.3f}", f"{row['now']:.3f}", f"{row['apart_percent']:.1f} %"
        rows.append((row["kernel"], f"`{row['file']}`", then, now, apart, row["verdict"]))
    return table(["Kernel", "Submission", "Raw ratio then", "Now", "Apart", "Verdict"], rows)


# A GPU


def gpu_section(name: str, found: Mapping[str, Any]) -> str:
    """One run of the figures of a GPU: what it was on, its figures, where its grades' time went, what is missing."""
    parts, versions = found["parts"], found["versions"]
    seen = parts.get("facts", {}).get("facts", {})
    measured = [figure for part in parts.values() for figure in part["figures"]]
    lacking = [f"* Not measured ({part}): {why}" for part, those in parts.items() for why in those["missing"]]
    version = f"{versions['package']}, {versions['commit'] or 'no commit'}"
    return "\n".join(
        [
            f"## GPU, {found['made_at'][:10]}: {seen.get('name', found['device'])}\n",
            f"* [`{name}`]({name}), from `{found['command']}`",
            f"* Kernelcourt {version}; took {found['seconds']:.0f} s",
            *(f"* {fact}" for fact in gpu_facts(parts)),
            *lacking,
            "",
            table(["What", "Measured", "Goal", "Met", "10 % to 90 %", "n", "How"], map(gpu_row, measured)),
            *stages_table([figure for figure in measured if "stages_ms" in figure]),
        ]
    )


# Heading of a line → the facts that it tells.
GPU_FACTS = {
    "Device": ("target", "driver", "multiprocessors", "memory_bytes", "cache_bytes"),
    "Compiler and packages": ("compiler", "python", "torch", "triton"),
    "Machine": ("cpu_model", "cores", "kernel", "sandbox"),
    "Profiler": ("ncu_version", "ncu_reads_counters"),
}


def gpu_facts(parts: Mapping[str, Any]) -> Iterator[str]:
    """What was measured on, and how the device was before the first part and after the last."""
    seen: dict[str, Any] = {}
    for part in parts.values():
        seen |= part["facts"]
    for heading, names in GPU_FACTS.items():
        if told := [f"{name} {seen[name]}" for name in names if seen.get(name) is not None]:
            yield f"{heading}: {', '.join(told)}"
    states = [part["facts"].get(when) for part in parts.values() for when in ("before", "after")]
    if states := [state for state in states if state]:
        first, last = (", ".join(f"{what} {value:g}" for what, value in states[end].items()) for end in (0, -1))
        yield f"At first: {first}; at last: {last}"


def gpu_row(figure: Mapping[str, Any]) -> tuple[str, ...]:
    what, measured, goal, met, _, count = bench_row(figure)
    span = f"{number(figure['low'])} to {number(figure['high'])}" if "low" in figure else ""
    return what, measured.strip(), goal, met, span, count, figure["note"]


# Files


def calibrations(folder: Path) -> dict[str, Calibration]:
    """Calibrations by file name, in the order of their dates."""
    return {path.name: read(path) for path in sorted(folder.glob("*-calibration.json"))}


def read(path: Path) -> Calibration:
    """Ends the program where the file is no calibration."""
    try:
        return Calibration.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise SystemExit(f"{path}: is no calibration of this version; measure again, or remove it") from error


def page(folder: Path) -> str:
    """The page of figures: the newest file of each kind first."""
    calibrated = [calibration_section(name, found) for name, found in reversed(calibrations(folder).items())]
    files = sorted(folder.glob("*-bench.json"), reverse=True)
    benched = [bench_section(path.name, json.loads(path.read_text(encoding="utf-8"))) for path in files]
    files = sorted(folder.glob("gpu-*.json"), reverse=True)
    on_gpus = [gpu_section(path.name, json.loads(path.read_text(encoding="utf-8"))) for path in files]
    return NOTE + "\n".join([HEAD, *([*calibrated, *benched, *on_gpus] or [NONE_YET])])


def quoting(text: str, folder: Path) -> str:
    """A page with its quotes from the last whole calibration; as it is where there is none."""
    whole = [found for found in calibrations(folder).values() if not found.quick]
    if not whole:
        return text
    values = {line.key: line.value for line in calibration_figures(whole[-1])}

    def quoted(match: re.Match[str]) -> str:
        if match[2] not in values:
            raise SystemExit(
                f"docs/measuring.md quotes {match[2]!r}, which is no figure; there are {', '.join(values)}"
            )
        return f"{match[1]}{values[match[2]]}{match[4]}"

    return QUOTE.sub(quoted, text)


if __name__ == "__main__":
    figures, quotes = FOLDER / "figures.md", DOCS / "measuring.md"
    sys.exit(write(sys.argv[1:], {figures: page(FOLDER), quotes: quoting(quotes.read_text("utf-8"), FOLDER)}))
