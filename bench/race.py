"""What a grade is measured against: a kernel's baselines race, and the fastest is the denominator.

On a GPU PyTorch races too. To start it and to compile takes long, so that the outcome there is kept, by all that it
depends on, and later grades start the fastest alone. No time of a race is ever part of a score.
"""

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from pydantic import Field, ValidationError

from bench.build import builder, torch_build
from bench.build.gpu_library import Kit
from bench.build.toolchain import Artifact, toolchains
from bench.build.torch_build import Mode
from bench.cache import content_key, default_cache, of_text, renewed
from bench.court import Court
from bench.inputs import timed_sizes
from bench.judge.schemas import Closed, Language, Preset
from bench.measure.sampling import baseline_fault, race_ns
from bench.measure.session import Session
from bench.measure.stopwatch import Stopwatch
from bench.reference import OracleOf, Twin
from bench.runner.buffers import Arena
from bench.runner.runner import Runner
from bench.sandbox import Sandbox, scratch_folder
from bench.seeds import new_root
from bench.task import Sizes, Task
from bench.verdict import Rejected

RULE = "fastest"
# What PyTorch says of a kernel that it has compiled for one value of a scalar alone.
_FOR_ONE_VALUE = "Detected recompile"


@dataclass(frozen=True)
class Contender:
    """A baseline in a race: its source, and how PyTorch runs it where it is in PyTorch. Rows have its `name`."""

    task: Task
    source: Path
    mode: Mode | None = None

    @property
    def name(self) -> str:
        return self.mode or self.source.name

    def build(self, sandbox: Sandbox, kit: Kit | None) -> Artifact:
        """What its runner loads. Raises JudgeFault when it does not build."""
        return torch_build.build(self.task, self.mode) if self.mode else builder.denominator(sandbox, self.source, kit)

    def built_by(self, kit: Kit | None) -> str:
        """What makes its code of its source, as far as this is a choice."""
        if self.mode:
            return torch_build.text(self.task, self.mode)
        if kit:
            return repr(kit.steps(Path(self.source.name), (), self.task.name))
        return repr(toolchains()[Language.of(self.source).value])


class Race(Closed):
    """The outcome of a race: the times (ns) of each contender's calls, at these sizes, and why others have none."""

    sizes: dict[str, int]
    times_ns: dict[str, tuple[int, ...]]
    left_out: dict[str, str] = Field(default_factory=dict)

    @property
    def medians_ns(self) -> dict[str, int]:
        return {name: round(median(times)) for name, times in self.times_ns.items()}

    @property
    def fastest(self) -> str:
        return min(self.medians_ns, key=self.medians_ns.__getitem__)

    def without(self, name: str, why: str) -> "Race":
        """The same, had this contender been left out."""
        times = {other: ns for other, ns in self.times_ns.items() if other != name}
        return Race(sizes=self.sizes, times_ns=times, left_out=self.left_out | {name: why})


def contenders(task: Task, kit: Kit | None) -> tuple[tuple[Contender, ...], dict[str, str]]:
    """Who races for a kernel here, and why others do not: the declared baselines and, on a GPU, PyTorch."""
    declared = tuple(Contender(task, path) for path in task.defining_baselines)
    if kit is None:
        return declared, {}
    if why := torch_build.lacking(task):
        return declared, dict.fromkeys(Mode, why)
    assert task.torch_reference
    return (*declared, *(Contender(task, task.torch_reference, mode) for mode in Mode)), {}


def policy(entrants: Sequence[Contender]) -> str:
    """The racing rule and those that it is applied to, in words."""
    names = ", ".join(one.name for one in entrants)
    return f"{RULE} of {names}" if len(entrants) > 1 else names


def policy_stamp(task: Task, kit: Kit | None = None) -> str:
    """Identity of a track's denominator policy here: baselines, what builds them, and the racing rule."""
    entrants, _ = contenders(task, kit)
    sources = [one.source.read_bytes() for one in entrants]
    return content_key(*sources, *(one.built_by(kit) for one in entrants), RULE)


def started(
    contender: Contender, court: Court, folder: Path, arena: Arena, sizes: Sequence[Sizes], watch: Stopwatch
) -> "contextlib.closing[Runner]":
    """The process of a contender that will be called at these sizes; it waits, and has loaded nothing."""
    with watch.stage("build"):
        artifact = contender.build(court.sandbox, court.kit)
        shim = builder.call_shim(court.sandbox, contender.task, artifact.language)
    cores = court.cores.timing
    runner = Runner(court.sandbox, folder, artifact, shim, arena, cores, False, kit=court.kit, planned=sizes)
    return contextlib.closing(runner)


def race(
    session: Session,
    entrants: Sequence[Contender],
    start: Callable[[Contender], AbstractContextManager[Runner]],
    preset: Preset,
    oracle_of: OracleOf,
) -> Race:
    """Race in the order given; who is far behind after one call is not called again.

    What PyTorch does not run, or answers wrongly, is left out.

    Raises:
        JudgeFault: another baseline failed, or the judge did.
    """
    found = Race(sizes=timed_sizes(session.task, session.seed, preset, 0), times_ns={})
    for contender in entrants:
        best_ns = min(found.medians_ns.values(), default=None)
        try:
            with start(contender) as runner:
                with session.watch.stage("start"):
                    runner.load()
                times = race_ns(session, runner, preset, oracle_of, best_ns)
        except Rejected as error:
            if not contender.mode:
                raise baseline_fault(session.task, error) from error
            found = found.without(contender.name, _in_words(error))
        else:
            found = found.model_copy(update={"times_ns": {**found.times_ns, contender.name: times}})
    return found


def _in_words(error: Rejected) -> str:
    if _FOR_ONE_VALUE in error.log:
        return "it would be compiled anew for every value of a scalar"
    return f"{error}: {error.detail.get('message') or error.detail}"


@dataclass(frozen=True)
class Kept:
    """Where the outcome of a kernel's race at a preset is kept, for a GPU."""

    key: str

    @classmethod
    def of(cls, task: Task, preset: Preset, court: Court) -> "Kept":
        """Keyed by kernel, preset, card, driver, and by sources and versions of all that races."""
        assert court.gpu and court.kit
        card = (court.gpu.facts["name"], court.card.driver if court.card else "")
        made_by = (court.kit.compiler, "" if torch_build.lacking(task) else torch_build.compiler())
        return cls(content_key(task.hash, preset, *card, *made_by, policy_stamp(task, court.kit)))

    @property
    def path(self) -> Path:
        return default_cache() / "races" / f"{self.key}.json"

    def read(self) -> Race | None:
        """The outcome; None before the first race."""
        try:
            return Race.model_validate_json(self.path.read_bytes())
        except (OSError, ValidationError):
            return None

    def write(self, found: Race) -> None:
        """Raises EnvironmentFault when the cache cannot be written."""
        renewed(self.path.parent, self.key, ".json", of_text(found.model_dump_json(indent=1)))

    def leave_out(self, name: str, why: str) -> None:
        """Have a contender that won and failed since race no more."""
        if (found := self.read()) and len(found.times_ns) > 1:
            self.write(found.without(name, why))


def outcome(task: Task, preset: Preset, court: Court) -> Race:
    """The outcome of the race of a kernel's GPU track, had now unless it was had before.

    It has memory and values of its own, and nothing of a submission runs meanwhile: a grade must not move later ones.

    Raises:
        JudgeFault: a declared baseline failed, or the judge did.
    """
    kept = Kept.of(task, preset, court)
    if before := kept.read():
        return before
    entrants, _ = contenders(task, court.kit)
    seed, watch = new_root(), Stopwatch()
    sizes = [timed_sizes(task, seed, preset, 0)]
    twin = Twin(court.sandbox, task, court.memory, court.kit)
    for contender in entrants:
        contender.build(court.sandbox, court.kit)
    with (
        scratch_folder() as folder,
        contextlib.closing(Arena(task, sizes, memory=court.memory)) as arena,
        court.timing(watch),
    ):
        start = partial(started, court=court, folder=folder, arena=arena, sizes=sizes, watch=watch)
        found = race(Session(task, seed, arena, watch), entrants, start, preset, twin.oracle)
    kept.write(found)
    return found
