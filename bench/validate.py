"""Validates kernels before their release: references agree, honest controls pass, wrong ones and mutants fail."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from bench import seeds
from bench.adhoc import read_source
from bench.build import builder
from bench.court import Court
from bench.dtypes import numpy_dtype
from bench.errors import KernelcourtError, UsageError
from bench.grade import grade
from bench.inputs import Case, draw, scalar_value
from bench.judge.schemas import SUFFIXES, Kind, Language, Outcome, Preset
from bench.mutants import KINDS, mutants
from bench.native import helper
from bench.records import GradeOrder, GradeReport
from bench.reference import OracleOf, Twin, numpy_oracle
from bench.task import CONTROL_KINDS, Role, Task
from bench.tolerance import bound
from bench.wording import did_you_mean

# A twin differs from NumPy by float64 rounding only: far below the float32 bound that it has to decide.
TWIN_SHARE = 1e-4
OVERHEAD_NS = 500
SOLVE_S_LIMIT_S = 1.0


class Verdict(StrEnum):
    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Check:
    """One finding about a kernel."""

    check: str
    verdict: Verdict
    note: str = ""


def validate(task: Task, court: Court) -> Iterator[Check]:
    """All checks of one kernel, as they are made; a reference or baseline that does not work at all ends them.

    A kernel for GPUs alone has neither a float64 twin on this CPU nor mutants.
    """
    yield from _manifest(task)
    yield from _controls_named(task)
    oracle = "twin" if task.baselines else "reference"
    try:
        yield from _twin(task, court) if task.baselines else _reference(task)
    except KernelcourtError as error:
        yield Check(oracle, Verdict.FAIL, f"{error}\n(no submission was tried: mend this first)")
        return
    yield from _controls(task, court)
    if task.baselines:  # mutants are written in C
        yield from _mutants(task, court)


def worst(checks: Sequence[Check]) -> Verdict:
    """FAIL over WARN over PASS."""
    found = {check.verdict for check in checks}
    return next(verdict for verdict in (Verdict.FAIL, Verdict.WARN, Verdict.PASS) if verdict in found or not found)


def _manifest(task: Task) -> Iterator[Check]:
    """Traffic and flops are plausible; exemptions name mutants that exist."""
    sizes = task.size(Preset.XL)
    outputs = sum(
        int(np.prod(task.shape(name, sizes))) * numpy_dtype(str(argument.dtype)).itemsize
        for name, argument in task.outputs.items()
    )
    traffic, flops = task.manifest.traffic(sizes), task.manifest.flops(sizes)
    if traffic < outputs:
        yield Check("traffic", Verdict.FAIL, f"{traffic} bytes are fewer than the outputs' own {outputs}")
    elif flops < 0:
        yield Check("flops", Verdict.FAIL, f"{flops} operations at XL")
    else:
        yield Check("traffic", Verdict.PASS, f"{traffic:.3g} bytes, {flops:.3g} operations at XL")
    for kind in set(task.manifest.mutants) - set(KINDS):
        yield Check("manifest", Verdict.FAIL, f"mutants: '{kind}' is no kind of mutant; {did_you_mean(kind, KINDS)}")


def _controls_named(task: Task) -> Iterator[Check]:
    """There are two honest controls, and no file that would be passed over without a word."""
    if len(task.controls("honest")) < 2:
        yield Check("controls", Verdict.FAIL, "two honest controls are needed, controls/honest_*, of different style")
    known = {path for kind in CONTROL_KINDS for path in task.controls(kind)}
    for path in sorted((task.folder / "controls").glob("*.*")):
        if path not in known:
            begins, ends = (f"{kind}_" for kind in CONTROL_KINDS), SUFFIXES.values()
            note = (
                f"not tried; a control's name begins with {', '.join(begins)} and ends in {', '.join(ends)}: rename it"
            )
            yield Check(path.name, Verdict.FAIL, note)


def _reference(task: Task) -> Iterator[Check]:
    """The NumPy reference gives a value for every case of S; a baseline for GPUs has no twin on this CPU."""
    seed = seeds.new_root()
    variants = max(len(argument.values) for argument in task.arguments.values()) or 1
    start = time.perf_counter()
    for variant in range(variants):
        case = Case("validate", f"S{variant}", task.size(Preset.S), variant)
        numpy_oracle(task, drawn_inputs(task, case, seed), case.sizes)
    seconds = (time.perf_counter() - start) / variants
    if seconds > SOLVE_S_LIMIT_S:
        yield Check("reference S", Verdict.WARN, f"it takes {seconds:.1f} s, more than a second")
    yield Check("reference", Verdict.PASS, "runs at S")


def _twin(task: Task, court: Court) -> Iterator[Check]:
    """The float64 twin of the baseline gives what NumPy gives, at S and M, in every family."""
    twin, seed = Twin(court.sandbox, task), seeds.new_root()
    variants = max(len(argument.values) for argument in task.arguments.values()) or 1
    for preset in (Preset.S, Preset.M):
        for variant in range(variants):
            case = Case("validate", f"{preset}{variant}", task.size(preset), variant)
            start = time.perf_counter()
            note = disagreement(task, twin.oracle, case, seed)
            seconds = time.perf_counter() - start
            if note:
                yield Check(f"twin {preset}", Verdict.FAIL, note)
                return
            if preset is Preset.S and seconds > SOLVE_S_LIMIT_S:
                yield Check("reference S", Verdict.WARN, f"it takes {seconds:.1f} s, more than a second")
    yield Check("twin", Verdict.PASS, "agrees with NumPy at S and M")


def disagreement(task: Task, twin: OracleOf, case: Case, seed: bytes) -> str:
    """Where a float64 twin and NumPy differ by more than a small share of the bound, or an empty text."""
    inputs = drawn_inputs(task, case, seed)
    by_numpy, by_twin = numpy_oracle(task, inputs, case.sizes), twin(inputs, case.sizes)
    for name, argument in task.outputs.items():
        limits = bound(task, str(argument.dtype), case.sizes)
        found = helper.compare(
            by_twin.expected[name],
            by_numpy.expected[name],
            by_numpy.magnitude.get(name),
            limits.factor * TWIN_SHARE,
            limits.floor,
        )
        if found.count:
            got, expected = (
                by_twin.expected[name].flat[found.first],
                by_numpy.expected[name].flat[found.first],
            )
            return f"{name}[{found.first}] at {case.sizes}: twin {got!r}, NumPy {expected!r} ({found.count} differ)"
    return ""


def drawn_inputs(task: Task, case: Case, seed: bytes) -> dict[str, Any]:
    """Inputs, indices, in-outs and scalars of a case, by name, drawn in NumPy."""
    inputs: dict[str, Any] = {}
    for name, argument in task.arguments.items():
        if argument.role is Role.SCALAR:
            inputs[name] = scalar_value(case, seed, name, argument)
        elif argument.values:
            limit = int(argument.bound(case.sizes)) if argument.bound else 0
            key, shape = case.key(seed, name), task.shape(name, case.sizes)
            inputs[name] = draw(argument, case.family(argument), key, shape, limit)
    return inputs


def _controls(task: Task, court: Court) -> Iterator[Check]:
    """The baselines and every honest and fast control are solved; every wrong one is rejected."""
    wrong = task.controls("wrong")
    for path in [*task.baselines, *task.gpu_baselines, *task.controls("honest"), *task.controls("fast"), *wrong]:
        language = Language.of(path)
        if lacking := builder.lacking(language):
            yield Check(path.name, Verdict.WARN, f"not tried: {lacking}")
            continue
        try:
            found = _graded(task, court, language, read_source(path))
        except UsageError as error:
            yield Check(path.name, Verdict.FAIL, str(error))
            continue
        if path in wrong:
            yield _must_fail(path.name, found)
        elif found.outcome is not Outcome.SOLVED:
            yield Check(path.name, Verdict.FAIL, f"must be solved, but is {_finding(found)}")
        elif found.raw_ratio is None:
            yield Check(path.name, Verdict.PASS, f"solved, {found.device}")
        else:
            yield Check(path.name, Verdict.PASS, f"solved, {found.raw_ratio:.2f} x at S")
            slowest = max(max(cell.denominator_ns) for cell in found.cells)
            if path in task.baselines and slowest < OVERHEAD_NS:
                yield Check("work", Verdict.WARN, f"the baseline takes {slowest} ns at S, near an empty call")


def _mutants(task: Task, court: Court) -> Iterator[Check]:
    """Every generated mutant is rejected, unless the manifest says why its kind does not apply."""
    for kind, source in mutants(task).items():
        reason = task.manifest.mutants.get(kind)
        if source is None and reason is None:
            note = f"cannot be written for this signature; say why under mutants.{kind} of task.yaml"
            yield Check(kind, Verdict.FAIL, note)
        elif source is None:
            yield Check(kind, Verdict.PASS, f"does not apply: {reason}")
        elif reason is not None:
            yield Check(kind, Verdict.WARN, f"not tried: {reason}")
        else:
            yield _must_fail(kind, _graded(task, court, Language.C, source))


def _graded(task: Task, court: Court, language: Language, source: str) -> GradeReport:
    order = GradeOrder(
        grade_id="validate",
        kind=Kind.CALIBRATION,
        kernel=task.name,
        language=language,
        source=source,
        preset=Preset.S,
        protocol="mw2x5",
        seed=seeds.new_root().hex(),
        disclose=True,
    )
    return grade(order, court)


def _must_fail(name: str, found: GradeReport) -> Check:
    if found.outcome is Outcome.SOLVED:
        note = "must be rejected, but is solved: it is right, or the kernel's values, sizes or tolerance hide its fault"
        return Check(name, Verdict.FAIL, note)
    if found.outcome in (Outcome.JUDGE_FAULT, Outcome.BUILD_FAILED):
        return Check(name, Verdict.FAIL, f"must be rejected for what it computes, but is {_finding(found)}")
    return Check(name, Verdict.PASS, f"rejected: {found.outcome}")


def _finding(found: GradeReport) -> str:
    detail = ", ".join(f"{name} {value}" for name, value in found.detail.items() if value is not None)
    return " ".join(filter(None, [f"{found.outcome}:", found.property, detail, found.log[:300]]))
