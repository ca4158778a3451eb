"""The measuring process of a judge: grades, profiles or warms one order a line, away from the web server.

`python -m bench.worker <judge.json>`; stdin and stdout carry one JSON object a line. First it grades one of its own
references, and says `{"ready": {...}}` or `{"unfit": "why"}`. Then it answers each line:

    {"order": GradeOrder}      {"report": GradeReport}
    {"profile": ProfileOrder}  {"profiled": ProfileReport} or {"lacking": Lacking}
    {"warm": WarmOrder}        {"warmed": "<kernel>"}
    what it cannot do          {"fault": "why"}
"""

import gc
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TextIO

from pydantic import ValidationError, model_validator

from bench import process, seeds
from bench.build import builder
from bench.config import JudgeConfig
from bench.court import Court, open_court
from bench.errors import EnvironmentFault, JudgeFault, KernelcourtError
from bench.grade import grade
from bench.judge.schemas import Closed, Device, Kind, Language, Outcome, Preset
from bench.profile import profile
from bench.records import GradeOrder, Lacking, ProfileOrder, WarmOrder
from bench.sandbox import sweep_scratch
from bench.task import Task, select
from bench.warm import warm


class _Line(Closed):
    """One order: exactly one of these is there."""

    order: GradeOrder | None = None
    profile: ProfileOrder | None = None
    warm: WarmOrder | None = None

    @model_validator(mode="after")
    def _one_order(self) -> Self:
        if [self.order, self.profile, self.warm].count(None) != 2:
            raise ValueError("a line holds one of 'order', 'profile' and 'warm'")
        return self


def main() -> int:
    # The judge ends this process when the job ends. A signal of the job's end to a runner or a compiler would count
    # against its submission.
    process.ignore_stops()
    process.die_with_parent()
    process.adopt_orphans()
    answers = _private_stdout()
    try:
        config = JudgeConfig.read(Path(sys.argv[1]))
        os.environ["KCOURT_CACHE"] = str(config.cache_dir)
        sweep_scratch()
        court = open_court(
            config.allow_sandbox,
            config.rank,
            config.ranks,
            config.timing_cores,
            config.clock_core,
            config.plan,
            Device(config.device),
        )
        languages = sorted({setup.language for setup in config.setups.values()})
        self_grade(court, languages)
    except KernelcourtError as error:
        _say(answers, {"unfit": str(error)})
        return int(error.exit_code)
    cores = {"timing": court.cores.timing, "clock": court.cores.clock}
    device = {"device": config.device, "device_name": court.gpu.facts["name"] if court.gpu else ""}
    _say(answers, {"ready": {"sandbox": str(court.sandbox.level), "cores": cores, **device}})
    gc.freeze()  # what is there now stays: no collection in a grade need look at it again
    for line in sys.stdin:
        _say(answers, answer(line, court))
        process.sweep()
    return 0


def answer(line: str, court: Court) -> dict[str, Any]:
    """Carry out one line's order; returns the line that answers it."""
    try:
        asked = _Line.model_validate_json(line)
        if asked.order is not None:
            return {"report": grade(asked.order, court).model_dump(mode="json")}
        if asked.warm is not None:
            warm(asked.warm, court)
            return {"warmed": asked.warm.kernel}
        assert asked.profile is not None
        found = profile(asked.profile, court)
        return {"lacking" if isinstance(found, Lacking) else "profiled": found.model_dump(mode="json")}
    except ValidationError as error:
        return {"fault": f"not an order: {error}"}
    except KernelcourtError as error:
        return {"fault": str(error)}


def self_grade(court: Court, languages: Sequence[Language] = ()) -> None:
    """Grade a baseline of the first kernel for this device at S, and in each other language of `languages` (those of
    the setups) an honest control: toolchains, sandbox, device and clock work, or the judge is unfit.

    Raises:
        EnvironmentFault: the compiler of one of the languages was not found.
        JudgeFault: one of them was not solved; the message holds the finding.
    """
    for language in languages:
        if why := builder.lacking(language, court.kit.device if court.kit else None):
            raise EnvironmentFault(f"a setup is written in {language}: {why}")
    tasks = [task for task in select("all") if task.manifest.platform.status == "active"]
    if not tasks:
        raise JudgeFault("the corpus holds no active kernel; set KCOURT_TASKS_DIR to a folder of kernels")
    if court.gpu:
        first = next((task for task in tasks if task.gpu_baselines), tasks[0]).gpu_track
    else:
        first = next((task for task in tasks if task.baselines), tasks[0])
    own = first.defining_baselines[0]
    must_solve(first, own, court)
    controls = [(task, path) for task in tasks for path in task.controls("honest")]
    for language in set(languages) - {Language.of(own)}:
        for task, path in [control for control in controls if Language.of(control[1]) is language][:1]:
            must_solve(task, path, court)


def must_solve(task: Task, reference: Path, court: Court) -> None:
    """Raises JudgeFault when a solution of the judge's own is not solved."""
    report = grade(order_of(task, reference), court)
    if report.outcome is not Outcome.SOLVED:
        finding = report.provenance.get("finding", {})
        found = ", ".join(fact for fact in (report.property, *_worded(finding), report.log.strip()) if fact)
        raise JudgeFault(f"the judge's own {task.name} ({reference.name}) is {report.outcome}, not solved: {found}")


def _worded(finding: Mapping[str, Any]) -> Iterator[str]:
    """The facts of a finding for a reader: `index 3`, `sizes n=5 m=7`; a message stands for itself."""
    for name, value in finding.items():
        text = " ".join(f"{key}={one}" for key, one in value.items()) if isinstance(value, Mapping) else str(value)
        yield text if name == "message" else f"{name} {text}"


def order_of(task: Task, reference: Path, preset: Preset = Preset.S, protocol: str = "mw2x5") -> GradeOrder:
    """An order that grades one of a kernel's own files: a baseline, a control."""
    return GradeOrder(
        grade_id="self",
        kind=Kind.CALIBRATION,
        kernel=task.name,
        language=Language.of(reference),
        source=reference.read_text(encoding="utf-8"),
        preset=preset,
        protocol=protocol,
        seed=seeds.new_root().hex(),
    )


def _private_stdout() -> TextIO:
    """Keep the answer stream to ourselves: whatever else prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
