"""What every profiler of GPUs has in common: whose GPU it needs, how it is run, and what it tells of kernels."""

import csv
import io
import math
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from bench.errors import EnvironmentFault, JudgeFault
from bench.judge.schemas import Device, Outcome, Preset, ProfileTool
from bench.process import Completed
from bench.profilers.profiler import RECORDING_BYTES
from bench.verdict import Rejected

WALL_S = 120
# Kernels of the judge's own.
OWN_PREFIX = "kc_"
# What ROCm says to a user who may not use the GPU, and what to do.
NO_ACCESS_TO_AMD = {
    "Unable to open /dev/kfd": "the judge's user must be in groups render and video, its container must have /dev/kfd"
}
# Numbers of bounded length: a submission can write into what is read here. Tools put commas between thousands.
_NUMBER = re.compile(r"[-+]?\d[\d,]{0,30}(\.\d{0,30})?([eE][-+]?\d{1,3})?")
_HUGE = 1e18


class GpuVendor(StrEnum):
    """Whose GPU a profiler is for."""

    AMD = "AMD"
    NVIDIA = "NVIDIA"

    @property
    def device(self) -> str:
        """What grades are made on where such a GPU is (a `Device`)."""
        return "hip" if self is GpuVendor.AMD else "cuda"


@dataclass(frozen=True)
class Pass:
    """One command of a profile. Without a `needed` one there is no profile; the others add counters to it."""

    name: str
    argv: tuple[str, ...]
    needed: bool = True


@dataclass(frozen=True)
class Output:
    """What a profiler left: files below a folder that the submission could write to, and what each pass printed."""

    folder: Path
    said: Mapping[str, str] = field(default_factory=dict)

    def files(self, ending: str) -> Iterator[str]:
        """The texts of files whose name ends so, each cut at RECORDING_BYTES.

        Links are not followed: a submission could have put one to a file of the judge.
        """
        for _, folders, names, fd in os.fwalk(self.folder):
            folders.sort()
            for name in sorted(name for name in names if name.endswith(ending)):
                try:
                    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
                except OSError:
                    continue
                with os.fdopen(opened, "rb") as file:
                    if stat.S_ISREG(os.fstat(opened).st_mode):
                        yield file.read(RECORDING_BYTES).decode(errors="replace")

    def rows(self, ending: str) -> Iterator[dict[str, str]]:
        for text in self.files(ending):
            yield from rows(text)


@dataclass(frozen=True)
class GpuKernel:
    """What was measured of one kernel, all its launches together.

    `time_ns` is their sum. In percent: `memory` and `compute` of the peaks, `caches` of what the busiest cache can
    give, `occupancy` of the waves that a GPU can hold, `conflicts` the part of its cycles that shared memory loses to
    bank conflicts. `limiter` says what keeps more waves out, `scratch` what goes to a lane's memory; empty for nothing.
    None is what the tool did not tell. `figures` are its counters by name, `hints` its own advice.
    """

    name: str
    launches: int
    time_ns: float
    memory: float | None = None
    compute: float | None = None
    caches: float | None = None
    occupancy: float | None = None
    conflicts: float | None = None
    limiter: str = ""
    scratch: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What a profiler told: the kernels that take most time first, the GPU, what is missing and why, its own words."""

    kernels: tuple[GpuKernel, ...] = ()
    gpu: str = ""
    notes: tuple[str, ...] = ()
    raw: str = ""


@dataclass(frozen=True)
class GpuProfiler:
    """One profiler of GPUs.

    `program` is looked for on PATH and in `places`; `get_it` says what to install. What it needs lies beside it and in
    the folders `shown`; `variables` go into its environment. `passes(program, argv, folder)` are
    the commands that watch `argv` and write below `folder`, each asked for after the one before has ended.
    `read` makes sense of any output, damaged too. `known` holds what to do, by the words of a tool that may not count.
    """

    tool: ProfileTool
    vendor: GpuVendor
    program: str
    places: tuple[str, ...]
    get_it: str
    passes: Callable[[str, Sequence[str], Path], Iterator[Pass]]
    read: Callable[[Output], Findings]
    shown: tuple[str, ...]
    known: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    preset: Preset = Preset.XL

    def needs(self, device: Device) -> str:
        """Why a judge that grades on `device` cannot use it; empty where it can."""
        if device == self.vendor.device:
            return ""
        return f"{self.tool} needs a GPU of {self.vendor}; this judge's device is {device}"

    def found(self) -> str | None:
        """The program's path, or None where it is not installed."""
        return next(filter(None, map(shutil.which, (self.program, *self.places))), None)

    def folders(self) -> list[Path]:
        """What a process has to see to run it, beside what lies below /usr."""
        program = Path(self.found() or self.program)
        places = [program.parent, program.resolve().parent, *map(Path, self.shown)]
        return [place for place in places if not place.is_relative_to("/usr")]

    def lacking(self) -> str:
        """Why it cannot be used on this machine; empty where it can."""
        return "" if self.found() else f"{self.tool} was not found; {self.get_it}"


# Runs a command in the sandbox of a submission for so many seconds. It may write to the folder of the profile.
Run = Callable[[Sequence[str], float], Completed]


def watch(
    profiler: GpuProfiler,
    argv: Sequence[str],
    folder: Path,
    run: Run,
    in_call: Callable[[], bool],
    limit_s: float = WALL_S,
) -> Findings:
    """Run the program `argv` under a profiler that writes below `folder`, within `limit_s` seconds for all passes.

    `in_call()` is whether the program, when the last run ended, was in code of the submission and had not come back.

    Raises:
        Rejected: it takes too long (`timeout`), or ends in its own code (`crashed`), which it did not without the tool.
        EnvironmentFault: the machine or its driver does not allow it; says what to change.
        JudgeFault: a pass without which there is no profile failed.
    """
    said: dict[str, str] = {}
    notes = []
    ends = time.monotonic() + limit_s
    for one in profiler.passes(profiler.found() or profiler.program, argv, folder):
        left_s = ends - time.monotonic()
        if left_s <= 0 and not one.needed:
            notes.append(f"{one.name}: not collected, no time was left")
            continue
        ended = run(one.argv, max(left_s, 1))
        said[one.name] = ended.output
        if not ended.ok or in_call():
            output = Output(folder, said)
            _check_allowed(profiler, output)
            if one.needed:
                words = "\n".join((ended.output, *output.files(".log"))).strip()
                raise _unfinished(profiler, ended, words, in_call(), limit_s)
            notes.append(f"{one.name}: not collected ({_last_line(ended.output) or how_it_ended(ended)})")
    output = Output(folder, said)
    _check_allowed(profiler, output)
    found = profiler.read(output)
    kernels = [kernel for kernel in found.kernels if not short_name(kernel.name).startswith(OWN_PREFIX)]
    kernels.sort(key=lambda kernel: -kernel.time_ns)
    return replace(found, kernels=tuple(kernels), notes=(*notes, *found.notes))


def _check_allowed(profiler: GpuProfiler, output: Output) -> None:
    """Raises EnvironmentFault where the tool says what this machine does not allow."""
    for text in (*output.said.values(), *output.files(".log")):
        for words, advice in profiler.known.items():
            if words in text:
                raise EnvironmentFault(f"{profiler.tool} cannot count here ({words}): {advice}")


def _unfinished(profiler: GpuProfiler, ended: Completed, said: str, in_call: bool, limit_s: float) -> Exception:
    tool = profiler.tool
    detail = {"stage": "profile"}
    if ended.timed_out:
        message = f"it took more than {limit_s:g} s under {tool} at preset {profiler.preset}; do less work in a call"
        return Rejected(Outcome.TIMEOUT, "time", {"message": message, **detail}, said)
    if in_call:
        message = f"it passed a call by itself, but ended under {tool} ({how_it_ended(ended)}); see the log's end"
        return Rejected(Outcome.CRASHED, "profiler", {"message": message, **detail}, said)
    return JudgeFault(f"{tool} could not profile the call ({how_it_ended(ended)}): {said[-500:]}")


def how_it_ended(ended: Completed) -> str:
    if ended.timed_out:
        return "it took too long"
    return f"signal {ended.signal}" if ended.signal else f"exit code {ended.returncode}"


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:200]


def rows(text: str) -> Iterator[dict[str, str]]:
    """The rows of a CSV text by column name; they end where the text is no longer CSV."""
    reader = csv.DictReader(io.StringIO(text.replace("\0", "")), restval="")
    try:
        for row in reader:
            yield {key: value for key, value in row.items() if isinstance(key, str) and isinstance(value, str)}
    except csv.Error:
        return


def number(text: str) -> float | None:
    """A number as tools write it, `1,234.50` too; None for any other text."""
    if not _NUMBER.fullmatch(text.strip()):
        return None
    value = float(text.strip().replace(",", ""))
    return value if math.isfinite(value) and abs(value) < _HUGE else None


def mean(values: Sequence[float]) -> float:
    """Of one value or more."""
    return sum(values) / len(values)


def shown(value: float) -> str:
    """A value as a person reads it, with commas where it is large."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def short_name(name: str) -> str:
    """`scale` of `void scale<float>(float const*, long) [clone .kd]`: what a person calls a kernel."""
    plain = name.replace("(anonymous namespace)::", "").removeprefix("void ").removesuffix(".kd")
    return re.split(r"[(<\[]", plain, maxsplit=1)[0].strip() or name
