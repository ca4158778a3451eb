"""Grades what is on trial on a GPU: `tests/exploits_gpu`, and every kernel's honest solutions in HIP.

`python -m tests.gpu_trials` grades all of it on the GPU of NVIDIA that is here, as `tests.trials` does on CPUs and with
the same headers: an honest control is graded before, between and after them, and must not move. `--only GLOB` takes the
names that match, such as `exploits_gpu/C0*`. `--device played` has this machine play the GPU, where times mean nothing.
`--gates` runs nothing: it builds each file for sm_90, and sees whether what declares `policy` is refused for what it
declares, and all else is not.
"""

import argparse
import fnmatch
import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))  # what tests share lies here, where its modules look for each other

from trials import Control, Trial, all_trials, look_at, order_of, print_line

from bench import process
from bench.build.gpu import Target
from bench.build.gpu_library import Kit, nvidia_kit
from bench.court import Court, open_court
from bench.errors import EnvironmentFault
from bench.evaluation import parse_plan
from bench.gates import artifacts
from bench.judge.schemas import Device, Language, Outcome, Preset
from bench.records import GradeOrder, GradeReport
from bench.sandbox import scratch_folder
from bench.task import find_task, tasks_root
from bench.verdict import Rejected

EXPLOITS = Path(__file__).with_name("exploits_gpu")
PLAYED = "played"
CONTROL = Trial(tasks_root() / "dense/axpy/baseline.hip", {"kernel": "axpy", "outcome": "solved"})
CONTROLS_AT_AN_END, MOST_MOVED = 3, 0.03
# What a build alone can end in, but for properties that a call shows.
BY_BUILD, BY_CALL = {Outcome.POLICY, Outcome.BUILD_FAILED}, {"library", "system_call"}


def exploits() -> list[Trial]:
    return all_trials(EXPLOITS)


def honest() -> list[Trial]:
    """Every kernel's baseline and honest controls in HIP and CUDA, which must be solved."""
    paths = [
        path
        for glob in ("baseline.*", "controls/honest_*", "controls/fast_*")
        for path in tasks_root().glob(f"*/*/{glob}")
    ]
    found = [path for path in paths if path.suffix in (Language.HIP.suffix, Language.CUDA.suffix)]
    kernels = [(path.parent.parent if path.parent.name == "controls" else path.parent).name for path in found]
    trials = [Trial(path, {"kernel": kernel, "outcome": "solved"}) for path, kernel in zip(found, kernels, strict=True)]
    return sorted(trials, key=lambda trial: trial.name)


def playable(trial: Trial) -> bool:
    """Whether a played GPU can tell anything of it."""
    return "needs" not in trial.header and Language.of(trial.path) in (Language.HIP, Language.TRITON)


def playable_here(trial: Trial) -> bool:
    """Whether it can be played by this Python."""
    needs = ("torch", "triton") if Language.of(trial.path) is Language.TRITON else ()
    return playable(trial) and all(map(find_spec, needs))


def report_of(refused: Rejected, order: GradeOrder) -> GradeReport:
    """The report of a grade that ended with its build."""
    return GradeReport(
        grade_id=order.grade_id,
        outcome=refused.outcome,
        property=refused.property,
        detail=refused.detail,
        log=refused.log,
        protocol=order.protocol,
        preset=order.preset,
        seed_commitment="",
        sandbox="",
    )


def gate(trial: Trial, court: Court, kit: Kit) -> tuple[str, str, str]:
    """Build it for the kit's GPU and let the gates look at it: outcome, property, and what is not as declared."""
    trial = trial.at_the_gates
    order = order_of(trial)
    try:
        with scratch_folder() as folder:
            artifacts.make(court.sandbox, folder, find_task(order.kernel), order, kit=kit)
    except Rejected as refused:
        return refused.outcome, refused.property, trial.wrong(report_of(refused, order))
    refused_here = trial.outcomes <= BY_BUILD and not trial.properties & BY_CALL
    return "passed", "", f"it passed, and is to be {trial.header['outcome']}" if refused_here else ""


def gate_all(trials: Sequence[Trial], court: Court) -> list[dict[str, Any]]:
    """`gate` one after the other, a line for each; raises EnvironmentFault where there is no nvcc."""
    kit, found = nvidia_kit(Target.SM_90), []
    for trial in trials:
        outcome, property, wrong = gate(trial, court, kit)
        print_line(trial, outcome, property, wrong)
        found.append({"name": trial.name, "outcome": outcome, "property": property, "wrong": wrong})
    return found


def grade_all(trials: Sequence[Trial], court: Court, preset: Preset | None) -> list[dict[str, Any]]:
    """Grade one after the other, a line for each; where `preset` is given, it is that of all of them."""
    control = Control(court, CONTROL, preset or Preset.L, CONTROLS_AT_AN_END)
    control.measure(CONTROLS_AT_AN_END)
    found = [
        {
            "name": trial.name,
            "outcome": report.outcome,
            "property": report.property,
            "ratio": report.raw_ratio,
            "suspect": report.suspect,
            "wrong": wrong,
        }
        for trial, report, wrong in look_at(trials, court, control, preset)
    ]
    control.measure(CONTROLS_AT_AN_END)
    by_ratio, by_time = control.moved()
    print(f"control, {len(control.ratios)} grades: ratio moved {by_ratio:+.1%}, best time {by_time:+.1%}")
    moved = court.card is not None and max(abs(by_ratio), abs(by_time)) >= MOST_MOVED
    wrong = f"it moved by more than {MOST_MOVED:.0%}; nobody else may use this device" if moved else ""
    return [*found, {"name": "control", "ratio": control.ratios, "time_ns": control.times_ns, "wrong": wrong}]


def open_the_court(device: str) -> Court:
    if device == PLAYED:
        from played import played_court

        return played_court()
    return open_court("limits", tools=parse_plan(), device=Device(device))


def main() -> int:
    parser = argparse.ArgumentParser(description="Grade what is on trial on a GPU.")
    parser.add_argument("--device", choices=[Device.CUDA.value, Device.HIP.value, PLAYED], default=Device.CUDA.value)
    parser.add_argument("--only", metavar="GLOB", default="*", help="names that match; all by default")
    parser.add_argument("--preset", type=Preset, help="sizes of all files; each file's own by default, S where played")
    parser.add_argument("--gates", action="store_true", help="only build for sm_90, and look at what was made")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found")
    arguments = parser.parse_args()
    process.adopt_orphans()
    chosen = [trial for trial in [*exploits(), *honest()] if fnmatch.fnmatch(trial.name, arguments.only)]
    if arguments.gates:
        found = gate_all(chosen, open_court("limits"))
    elif arguments.device == PLAYED:
        played = [trial for trial in chosen if playable_here(trial)]
        print(f"left out: {len(chosen) - len(played)} that need a device, or a Python with torch and triton")
        found = grade_all(played, open_the_court(PLAYED), arguments.preset or Preset.S)
    else:
        found = grade_all(chosen, open_the_court(arguments.device), arguments.preset)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    wrong = [one["name"] for one in found if one["wrong"]]
    print(f"{len(found)} looked at, {len(wrong)} otherwise than declared{': ' if wrong else ''}{', '.join(wrong)}")
    return int(bool(wrong))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EnvironmentFault as fault:
        sys.exit(str(fault))
