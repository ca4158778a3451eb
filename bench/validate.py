"""Validates kernels before their release: references agree, honest controls pass, wrong ones and mutants fail."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from bench import seeds
from bench.court import Court
from bench.errors import EnvironmentFault, KernelcourtError
from bench.grade import grade
from bench.inputs import Case, draw, scalar_value
from bench.judge.schemas import Kind, Language, Outcome, Preset
from bench.mutants import KINDS, mutants
from bench.native import helper
from bench.records import GradeOrder, GradeReport
from bench.reference import Twin, numpy_oracle
from bench.task import Role, Task
from bench.tolerance import bound

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

    kernel: str
    check: str
    verdict: Verdict
    note: str = ""

    def as_dict(self) -> dict[str, str]:
        return {key: str(value) for key, value in asdict(self).items()}


def validate(task: Task, court: Court) -> Iterator[Check]:
    """All checks of one kernel, as they are made."""
    checks: Sequence[Callable[[Task, Court], Iterator[Check]]] = (
        _manifest,
        _twin_agrees,
        _honest_pass,
        _wrong_fail,
        _mutants_fail,
    )
    for check in checks:
        try:
            yield from check(task, court)
        except KernelcourtError as error:
            yield Check(task.name, check.__name__.strip("_"), Verdict.FAIL, str(error))


def worst(checks: Sequence[Check]) -> Verdict:
    """FAIL over WARN over PASS."""
    found = {check.verdict for check in checks}
    return next(verdict for verdict in (Verdict.FAIL, Verdict.WARN, Verdict.PASS) if verdict in found or not found)


def _manifest(task: Task, _: Court) -> Iterator[Check]:
    """Traffic and flops are plausible; controls exist; exemptions name mutants that exist."""
    sizes = task.size(Preset.XL)
    outputs = sum(
        int(np.prod(task.shape(name, sizes))) * np.dtype(str(argument.dtype)).itemsize
        for name, argument in task.outputs.items()
    )
    traffic, flops = task.manifest.traffic(sizes), task.manifest.flops(sizes)
    if traffic < outputs:
        yield Check(task.name, "traffic", Verdict.FAIL, f"{traffic} bytes are fewer than the outputs' own {outputs}")
    elif flops < 0:
        yield Check(task.name, "flops", Verdict.FAIL, f"{flops} operations at XL")
    else:
        yield Check(task.name, "traffic", Verdict.PASS, f"{traffic:.3g} bytes, {flops:.3g} operations at XL")
    if len(task.controls("honest")) < 2:
        yield Check(task.name, "controls", Verdict.FAIL, "two honest controls of different style are needed")
    for kind in set(task.manifest.mutants) - set(KINDS):
        yield Check(task.name, "manifest", Verdict.FAIL, f"mutants: '{kind}' is no kind; kinds: {', '.join(KINDS)}")


def _twin_agrees(task: Task, court: Court) -> Iterator[Check]:
    """The float64 twin of the baseline gives what NumPy gives, at S and M, in every family."""
    twin, seed = Twin(court.sandbox, task), seeds.new_root()
    variants = max(len(argument.values) for argument in task.arguments.values()) or 1
    for preset in (Preset.S, Preset.M):
        for variant in range(variants):
            case = Case("validate", f"{preset}{variant}", f"{preset}{variant}", task.size(preset), variant)
            start = time.perf_counter()
            note = _disagreement(task, twin, case, seed)
            seconds = time.perf_counter() - start
            if note:
                yield Check(task.name, f"twin {preset}", Verdict.FAIL, note)
                return
            if preset is Preset.S and seconds > SOLVE_S_LIMIT_S:
                yield Check(task.name, "reference S", Verdict.WARN, f"it takes {seconds:.1f} s, more than a second")
    yield Check(task.name, "twin", Verdict.PASS, "agrees with NumPy at S and M")


def _disagreement(task: Task, twin: Twin, case: Case, seed: bytes) -> str:
    """Where twin and NumPy differ by more than a small share of the bound, or an empty text."""
    inputs: dict[str, Any] = {}
    for name, argument in task.arguments.items():
        if argument.role is Role.SCALAR:
            inputs[name] = scalar_value(case, seed, name, argument)
        elif argument.values:
            limit = int(argument.bound(case.sizes)) if argument.bound else 0
            key, shape = case.key(seed, name, argument), task.shape(name, case.sizes)
            inputs[name] = draw(argument, case.family(argument), key, shape, limit)
    by_numpy, by_twin = numpy_oracle(task, inputs, case.sizes), twin.oracle(inputs, case.sizes)
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


def _grade_file(task: Task, court: Court, path: Path) -> GradeReport:
    language = next(language for language in Language if language.suffix == path.suffix)
    return _grade_text(task, court, language, path.read_text(encoding="utf-8"))


def _grade_text(task: Task, court: Court, language: Language, source: str) -> GradeReport:
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


def _found(report: GradeReport) -> str:
    return f"{report.outcome}: {report.property} {report.detail} {report.log[:300]}"


def _honest_pass(task: Task, court: Court) -> Iterator[Check]:
    """The baseline, and every honest and fast control, is solved; timed work stands clear of the empty call."""
    for path in [*task.baselines, *task.controls("honest"), *task.controls("fast")]:
        try:
            found = _grade_file(task, court, path)
        except EnvironmentFault as error:
            if path in task.baselines:
                raise
            yield Check(task.name, path.name, Verdict.WARN, f"not tried: {error}")
            continue
        if found.outcome is not Outcome.SOLVED:
            yield Check(task.name, path.name, Verdict.FAIL, _found(found))
            continue
        yield Check(task.name, path.name, Verdict.PASS, f"solved, {found.raw_ratio:.2f} x at S")
        slowest = max(max(cell.denominator_ns) for cell in found.cells)
        if path in task.baselines and slowest < OVERHEAD_NS:
            yield Check(task.name, "work", Verdict.WARN, f"the baseline takes {slowest} ns at S, near an empty call")


def _wrong_fail(task: Task, court: Court) -> Iterator[Check]:
    for path in task.controls("wrong"):
        yield _must_fail(task, path.name, _grade_file(task, court, path))


def _mutants_fail(task: Task, court: Court) -> Iterator[Check]:
    """Every generated mutant is rejected, unless the manifest says why its kind does not apply."""
    for mutant in mutants(task):
        reason = task.manifest.mutants.get(mutant.kind)
        if mutant.source is None:
            yield Check(task.name, mutant.kind, Verdict.PASS, f"does not apply: {reason or 'not with this signature'}")
        elif reason is not None:
            yield Check(task.name, mutant.kind, Verdict.WARN, f"not tried: {reason}")
        else:
            found = _grade_text(task, court, Language.C, mutant.source)
            yield _must_fail(task, mutant.kind, found)


def _must_fail(task: Task, name: str, found: GradeReport) -> Check:
    if found.outcome in (Outcome.SOLVED, Outcome.JUDGE_FAULT, Outcome.BUILD_FAILED):
        return Check(task.name, name, Verdict.FAIL, f"must be rejected for its values, but: {_found(found)}")
    return Check(task.name, name, Verdict.PASS, f"rejected: {found.outcome}")
