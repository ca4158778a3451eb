"""Grades what is on trial: `tests/exploits` (submissions that cheat) and `tests/honest` (odd ones that do not).

`python -m tests.trials [FILE...]` grades these files, or all, and says how each ended; with all of them, an honest
control is graded before, between and after them, and must not move. `--foreign FOLDER` grades another suite, whose
entry point is called `kernel` (`foreign` says how it is read).

A file is a submission whose first comment holds its header, one `key: value` a line, and then says in words what it
does:

    row        the kind of cheat, as docs/trust.md lists them; only exploits have one
    kernel     what it claims to be
    outcome    what it must end in, one or several (`tampered | policy`); `solved` for what is honest
    property   what must have failed, one or several; left out where the outcome says enough
    preset     sizes of the timed inputs (S)
    workspace  bytes of the workspace that it asks for (0)
    library    command that makes a prebuilt library of it: `{source}` and `{library}` are the two files
    gain       `none`: it is solved, and must not be faster than the control
    needs      `device`: it cannot be tried on a GPU that is only played
    gates      `off`: the gates refuse it for what it imports or names; its outcome is that of the walls behind them
"""

import argparse
import itertools
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from bench import process, seeds
from bench.build import builder
from bench.court import Court, open_court
from bench.evaluation import parse_plan
from bench.grade import grade
from bench.judge.schemas import Kind, Language, Outcome, Preset
from bench.records import GradeOrder, GradeReport

EXPLOITS = Path(__file__).with_name("exploits")
HONEST = Path(__file__).with_name("honest")
_FIELD = re.compile(
    r"^[\s/*#!\"']*(row|kernel|outcome|property|preset|workspace|library|gain|needs|gates):\s*(.*?)\s*(?:\*/)?$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Trial:
    """One file on trial, and what its header says."""

    path: Path
    header: dict[str, str]

    @property
    def name(self) -> str:
        folder = self.path.parent
        return f"{(folder.parent if folder.name == 'controls' else folder).name}/{self.path.name}"

    @property
    def row(self) -> str:
        return self.header.get("row", "")

    @property
    def is_honest(self) -> bool:
        return self.outcomes == {Outcome.SOLVED}

    @property
    def at_the_gates(self) -> "Trial":
        """As the gates have to find it."""
        if "gates" not in self.header:
            return self
        return replace(self, header={"kernel": self.header["kernel"], "outcome": "policy", "property": "imports"})

    @property
    def outcomes(self) -> set[Outcome]:
        return {Outcome(word) for word in _words(self.header["outcome"])}

    @property
    def properties(self) -> set[str]:
        return set(_words(self.header.get("property", "")))

    def wrong(self, report: GradeReport) -> str:
        """What is other than the header says; empty when nothing is."""
        if report.outcome not in self.outcomes:
            return f"{report.outcome} ({report.property}), not {self.header['outcome']}: {_reason(report)}"
        if self.properties and report.property not in self.properties:
            return f"{report.outcome} for {report.property}, not {self.header['property']}: {_reason(report)}"
        if self.is_honest and report.suspect:
            return f"solved, but flagged: {report.suspect}"
        return ""


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s|,]+", text) if word]


def _reason(report: GradeReport) -> str:
    found = report.detail or report.provenance.get("finding", {})
    return " ".join(str(part) for part in (found.get("message", found), report.log.strip()[-300:]) if part)


def read(path: Path) -> Trial:
    """A file's header. Raises ValueError when it lacks a kernel or an outcome."""
    head = path.read_bytes()[:3000].decode(errors="replace")
    below = itertools.dropwhile(lambda field: not field, map(_FIELD.match, head.splitlines()))
    fields = itertools.takewhile(bool, below)
    header = {match[1]: match[2] for match in fields if match}
    if not {"kernel", "outcome"} <= set(header):
        raise ValueError(f"{path}: the first comment needs the lines 'kernel:' and 'outcome:'")
    return Trial(path, header)


def all_trials(*folders: Path) -> list[Trial]:
    """Everything on trial in these folders; without any, what CPUs grade, the exploits first."""
    suffixes = {language.suffix for language in Language}
    files = [path for folder in folders or (EXPLOITS, HONEST) for path in sorted(folder.iterdir())]
    return [read(path) for path in files if path.suffix in suffixes]


def gradable(trials: Sequence[Trial]) -> list[Trial]:
    """Those whose compiler this machine has; what is left out is said."""
    found = [trial for trial in trials if not builder.lacking(Language.of(trial.path))]
    if len(found) < len(trials):
        print(f"left out: {len(trials) - len(found)} whose compiler is not installed")
    return found


def order_of(trial: Trial, preset: Preset | None = None, library: Path | None = None) -> GradeOrder:
    """A `/submit` of it, as source or as a library that was made of it."""
    return GradeOrder(
        grade_id="trial",
        kind=Kind.SUBMIT,
        kernel=trial.header["kernel"],
        language=Language.of(trial.path),
        source=None if library else trial.path.read_bytes().decode(errors="surrogateescape"),
        library=str(library) if library else None,
        binding="gates" in trial.header,
        workspace_bytes=int(trial.header.get("workspace", 0)),
        preset=preset or Preset(trial.header.get("preset", "S")),
        protocol="mw4x5",
        seed=seeds.new_root().hex(),
        disclose=True,
    )


def graded(trial: Trial, court: Court, preset: Preset | None = None) -> GradeReport:
    """The trial's grade, as a `/submit` would make it."""
    with tempfile.TemporaryDirectory() as folder:
        library = None
        if command := trial.header.get("library"):
            library = Path(folder, f"{trial.header['kernel']}.so")
            words = command.format(source=shlex.quote(str(trial.path)), library=shlex.quote(str(library)))
            subprocess.run(shlex.split(words), check=True)
        report = grade(order_of(trial, preset, library), court)
        process.sweep()
        return report


# What other suites call their verdicts, and the kernels of ours with the signatures of theirs.
_FOREIGN_OUTCOMES = {
    "ACCEPT": Outcome.SOLVED,
    "wrong": Outcome.WRONG,
    "policy": Outcome.POLICY,
    "tamper": Outcome.TAMPERED,
    "timeout": Outcome.TIMEOUT,
    "resource": Outcome.RESOURCE,
    "crash": Outcome.CRASHED,
    "build": Outcome.BUILD_FAILED,
}
_FOREIGN_KERNELS = {"T1": "axpy", "T2": "softmax_rows", "T3": "sgemm"}
_FOREIGN_FIELD = re.compile(r"@(task|verdict|cpu)\s+(.*?)\s*(?=@|$)", re.MULTILINE)
_FOREIGN_VERDICT = re.compile(rf"\b({'|'.join(_FOREIGN_OUTCOMES)})\b")


def foreign(path: Path, folder: Path) -> Trial | None:
    """A file of another suite as a trial in `folder`; None when it cannot be tried here.

    Its header is `@task T1` (axpy), `T2` (softmax of rows) or `T3` (sgemm), `@verdict` with one or several of the names
    in `_FOREIGN_OUTCOMES`, and `@cpu`; its entry point `kernel` has the same arguments as the kernel here.
    """
    fields = dict(_FOREIGN_FIELD.findall(path.read_text(encoding="utf-8", errors="replace")[:3000]))
    kernel = _FOREIGN_KERNELS.get(fields.get("task", "").partition(" ")[0])
    suffixes = {language.suffix for language in Language}
    if kernel is None or path.suffix not in suffixes or not fields.get("cpu", "").startswith("yes"):
        return None
    outcomes = {_FOREIGN_OUTCOMES[word] for word in _FOREIGN_VERDICT.findall(fields["verdict"])}
    if outcomes.isdisjoint({Outcome.SOLVED, Outcome.WRONG}):
        outcomes.add(Outcome.POLICY)  # what is refused by what it is made of never comes to do what it would
    copy = folder / path.name
    copy.write_text(f"#define kernel {kernel}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    return Trial(copy, {"kernel": kernel, "outcome": " | ".join(sorted(outcomes)), "preset": "L"})


CONTROL = Trial(HONEST / "static_helper.c", {"kernel": "axpy", "outcome": "solved"})
CONTROLS_AT_AN_END, EXPLOITS_BETWEEN = 7, 12
MOST_MOVED, MOST_GAINED = 0.03, 0.1


@dataclass
class Control:
    """The honest submission that is graded among the others: its ratio to the baseline, and its own time (ns)."""

    court: Court
    trial: Trial = CONTROL
    preset: Preset = Preset.L
    at_an_end: int = CONTROLS_AT_AN_END
    ratios: list[float] = field(default_factory=list)
    times_ns: list[float] = field(default_factory=list)

    def measure(self, times: int = 1) -> None:
        """Raises AssertionError when it is not solved."""
        for _ in range(times):
            report = graded(self.trial, self.court, self.preset)
            assert report.outcome is Outcome.SOLVED, f"the control is {report.outcome}: {_reason(report)}"
            assert report.raw_ratio is not None
            self.ratios.append(report.raw_ratio)
            sizes = sum(cell.sizes["n"] for cell in report.cells)
            self.times_ns.append(sum(median(cell.candidate_ns) for cell in report.cells) / sizes)

    def moved(self) -> tuple[float, float]:
        """By how much the end differs from the beginning: the median ratio, and the best time of an element."""
        first, last = slice(self.at_an_end), slice(-self.at_an_end, None)
        ratio = median(self.ratios[last]) / median(self.ratios[first])
        return ratio - 1, min(self.times_ns[last]) / min(self.times_ns[first]) - 1

    def gained(self, trial: Trial, report: GradeReport) -> str:
        """What a trial that says `gain: none` has won over the control, in words; empty when nothing."""
        if trial.header.get("gain") != "none" or report.raw_ratio is None:
            return ""
        ratio = report.raw_ratio / median(self.ratios)
        return f"it is {ratio:.2f} times as fast as the control" if ratio > 1 + MOST_GAINED else ""


def look_at(
    trials: Sequence[Trial], court: Court, control: Control | None = None, preset: Preset | None = None
) -> Iterator[tuple[Trial, GradeReport, str]]:
    """Grade one after the other, print a line for each, and yield it with what is not as declared."""
    for number, trial in enumerate(trials):
        if control and number % EXPLOITS_BETWEEN == EXPLOITS_BETWEEN - 1:
            control.measure()
        report = graded(trial, court, preset)
        wrong = trial.wrong(report) or (control.gained(trial, report) if control else "")
        print_line(trial, report.outcome, report.property, wrong)
        yield trial, report, wrong


def print_line(trial: Trial, outcome: str, property: str | None, wrong: str) -> None:
    mark = "WRONG" if wrong else "ok"
    print(f"{mark:<6}{trial.name:<48}{outcome:<13}{property or '':<14}{wrong}", flush=True)


def report_all(trials: Sequence[Trial], court: Court, control: Control | None = None) -> list[str]:
    """`look_at` all of them; returns what is not as declared."""
    return [f"{trial.name}: {wrong}" for trial, _, wrong in look_at(trials, court, control) if wrong]


def run_all(court: Court) -> int:
    """Everything on trial with the control among it; prints the table for docs/trust.md."""
    trials, control = gradable(all_trials()), Control(court)
    control.measure(CONTROLS_AT_AN_END)
    faults = report_all(trials, court, control)
    control.measure(CONTROLS_AT_AN_END)
    by_ratio, by_time = control.moved()
    dishonest = [trial for trial in trials if not trial.is_honest]
    solved = sum(" solved" in fault.partition(",")[0] for fault in faults if fault.startswith(EXPLOITS.name))
    refused = sum(fault.startswith(HONEST.name) for fault in faults)
    print(f"""
dishonest submissions           {len(dishonest)} of {len({trial.row for trial in dishonest})} kinds
  solved                        {solved}
  otherwise than declared       {len(faults) - refused}
honest submissions              {len(trials) - len(dishonest)}
  refused                       {refused}
control, {len(control.ratios)} grades: ratio moved  {by_ratio:+.1%}
control, best time moved        {by_time:+.1%}""")
    still = max(abs(by_ratio), by_time) < MOST_MOVED
    if not still:
        print(f"the control moved by more than {MOST_MOVED:.0%}; run this on a quiet machine")
    return int(bool(faults) or not still)


def main() -> int:
    parser = argparse.ArgumentParser(description="Grade what is on trial.")
    parser.add_argument("files", nargs="*", type=Path, help="files of tests/exploits or tests/honest; all by default")
    parser.add_argument("--foreign", type=Path, metavar="FOLDER", help="a suite whose entry point is called `kernel`")
    arguments = parser.parse_args()
    process.adopt_orphans()
    court = open_court("limits", tools=parse_plan())
    if arguments.foreign:
        with tempfile.TemporaryDirectory() as folder:
            found = [foreign(path, Path(folder)) for path in sorted(arguments.foreign.iterdir()) if path.is_file()]
            trials = [trial for trial in found if trial]
            print(f"{len(trials)} of {len(found)} files can be tried here")
            return min(len(report_all(trials, court)), 1)
    if arguments.files:
        return min(len(report_all([read(path) for path in arguments.files], court)), 1)
    return run_all(court)


if __name__ == "__main__":
    sys.exit(main())
