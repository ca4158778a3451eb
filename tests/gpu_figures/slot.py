"""The judge slot that is measured, how much is measured on it, and runners and grades outside a judge."""

import contextlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.build import builder
from bench.build.toolchain import Artifact
from bench.court import Court, open_court
from bench.devices.gpu import Gpu
from bench.errors import JudgeFault, UsageError
from bench.grade import Work, grade, load_baseline, start_runner
from bench.judge.schemas import Device, Language, Outcome, Preset
from bench.measure.session import Prepared, Session
from bench.native.helper import Timing
from bench.records import GradeReport
from bench.runner.buffers import Arena
from bench.runner.runner import Runner
from bench.sandbox import scratch_folder
from bench.task import Sizes, Task, select
from bench.worker import order_of

from . import spinning
from .figures import Deadline

LIMIT_NS = 60_000_000_000


@dataclass(frozen=True)
class Extent:
    """How much is measured: kernels and presets, copies, calls of a runner, grades of each kind, lengths of a call."""

    kernels: str = "gpu"
    staged: tuple[str, ...] = ("axpy", "rmsnorm", "sgemm")
    large: Preset = Preset.XL
    middle: Preset = Preset.L
    copies: int = 20
    empty_calls: int = 300
    calls: int = 60
    few_calls: int = 6
    own_grades: int = 100
    rungs: tuple[int, ...] = spinning.STEPS
    rung_grades: int = 5
    stage_grades: int = 3
    lengths_ns: tuple[int, ...] = (5_000, 20_000, 50_000, 200_000, 1_000_000, 5_000_000)
    first_passes: tuple[int, int] = (100, 1000)


# A GPU that the CPU plays shows that the parts work; no number of it means anything.
PLAYED = Extent(
    kernels="axpy",
    large=Preset.S,
    middle=Preset.S,
    copies=3,
    empty_calls=12,
    calls=4,
    few_calls=2,
    own_grades=2,
    rungs=(40,),
    rung_grades=1,
    stage_grades=1,
    lengths_ns=(5_000, 50_000),
    first_passes=(10, 100),
)


@dataclass(frozen=True)
class Slot:
    """What every part is given."""

    court: Court
    extent: Extent
    deadline: Deadline

    @property
    def gpu(self) -> Gpu:
        assert self.court.gpu is not None
        return self.court.gpu

    @property
    def tasks(self) -> list[Task]:
        """The kernels of the extent, as they are graded on a GPU."""
        return [task.gpu_track for task in select(self.extent.kernels)]


def open_slot(device: str, seconds: float) -> Slot:
    """The slot of a device: `cuda`, `hip`, or `played` by this CPU (which needs what the tests need).

    Raises:
        UsageError: there is no such device.
        EnvironmentFault: it is not here, or its compiler is not.
    """
    deadline = Deadline.within(seconds)
    if device == "played":
        sys.path.insert(0, str(Path(__file__).parents[1]))
        return Slot(import_module("played").played_court(), PLAYED, deadline)
    if device not in (Device.CUDA, Device.HIP):
        raise UsageError(f"'{device}' is no device with figures; take cuda, hip or played")
    return Slot(open_court("limits", device=Device(device)), Extent(), deadline)


def sources(task: Task) -> list[Path]:
    """The HIP sources that solve a kernel: its first baseline, then its honest controls."""
    controls = [path for kind in ("fast", "honest") for path in task.controls(kind)]
    return [task.baselines[0], *(path for path in controls if Language.of(path) is Language.HIP)]


def built(court: Court, task: Task, path: Path) -> Artifact:
    """One of a kernel's own sources, built as its denominator is, and cached like that."""
    with scratch_folder() as folder:
        named = folder / task.name / path.name
        named.parent.mkdir()
        shutil.copy(path, named)
        return builder.denominator(court.sandbox, named, court.kit)


@contextlib.contextmanager
def running(court: Court, task: Task, plan: Sequence[Sizes], path: Path) -> Iterator[tuple[Session, Runner]]:
    """A runner of one of a kernel's own sources on the timing core, with buffers for the sizes of a plan.

    Raises:
        JudgeFault: it does not build or does not load.
    """
    with scratch_folder() as folder, contextlib.ExitStack() as held:
        work = Work(order_of(task, path), task, court, folder)
        held.enter_context(court.building(work.watch))
        arena = held.enter_context(contextlib.closing(Arena(task, plan, memory=court.memory)))
        runner = held.enter_context(start_runner(work, built(court, task, path), arena))
        held.enter_context(court.timing(work.watch))
        load_baseline(work, runner)
        yield Session(task, work.seed, arena, work.watch), runner


def timed_calls(session: Session, runner: Runner, prepared: Prepared, count: int) -> list[Timing]:
    """So many timed calls on the same values, behind one that warms up."""
    timings = [session.call(runner, prepared, LIMIT_NS, timed=True) for _ in range(count + 1)]
    return timings[1:]


def calm(timings: Sequence[Timing]) -> list[Timing]:
    """Those that nothing disturbed; all of them where there is no other."""
    return [timing for timing in timings if not timing.disturbed and not timing.strayed] or list(timings)


def solved(slot: Slot, task: Task, path: Path, preset: Preset, protocol: str) -> GradeReport:
    """A grade of one of a kernel's own sources.

    Raises:
        JudgeFault: it is not solved.
    """
    report = grade(order_of(task, path, preset, protocol), slot.court, task)
    if report.outcome is not Outcome.SOLVED:
        finding: dict[str, Any] = report.provenance.get("finding", {})
        said = " ".join(f"{finding.get('message') or finding} {report.log}".split())
        raise JudgeFault(f"{task.name}, {path.name} at {preset}: {report.outcome} ({report.property}): {said[-400:]}")
    return report
