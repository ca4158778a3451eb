"""One grade's buffers and oracles: puts a case's inputs in place, calls a runner on them, and checks every output."""

import secrets
from dataclasses import asdict, dataclass

import numpy as np

from bench.inputs import Case, draw, scalar_value, sizes_text, touched
from bench.judge.schemas import Outcome
from bench.measure.stopwatch import Stopwatch
from bench.native.helper import Timing
from bench.reference import OracleOf, numpy_oracle
from bench.runner.buffers import Arena
from bench.runner.memory import Array, Memory, Placement
from bench.runner.runner import Runner
from bench.task import POINTER_FAMILIES, Argument, Role, Task
from bench.tolerance import Oracle, first_mismatch
from bench.verdict import Rejected

# Bytes of each output that are looked at in the moment when a call is done: more would take longer than to stop it.
WATCHED_BYTES = 14


@dataclass(frozen=True)
class Prepared:
    """A case whose inputs lie in the buffers, with what its outputs must be."""

    case: Case
    offsets: dict[str, int]
    views: dict[str, Array]
    slots: list[int]
    oracle: Oracle
    canary: int


@dataclass
class Session:
    """Everything a grade's calls share. The judge's process alone holds the seed and the expected outputs."""

    task: Task
    seed: bytes
    arena: Arena
    watch: Stopwatch

    @property
    def memory(self) -> Memory:
        """Where the arrays lie."""
        return self.arena.memory

    def prepare(
        self, case: Case, oracle_of: OracleOf | None = None, placement: Placement = Placement.MIDDLE
    ) -> Prepared:
        """Draw a case's values into the buffers (every runner is stopped) and compute what must come out.

        The NumPy reference computes it, unless another oracle is given.
        """
        offsets = self.arena.offsets(case.sizes, placement)
        views = self.arena.views(case.sizes, offsets)
        with self.watch.stage("values"):
            scalars = self._fill_inputs(case, views)
            canary = secrets.randbits(64)
            self.arena.plant_canaries(views, offsets, canary)
        with self.watch.stage("oracle"):
            oracle = (
                oracle_of({**views, **scalars}, case.sizes)
                if oracle_of
                else numpy_oracle(self.task, {**self._seen(views), **scalars}, case.sizes)
            )
        slots = [self._slot(name, argument, case, offsets, scalars) for name, argument in self.task.arguments.items()]
        return Prepared(case, offsets, views, slots + self.arena.workspace_slots(), oracle, canary)

    def _seen(self, views: dict[str, Array]) -> dict[str, Array]:
        """What a kernel reads, as NumPy's arrays."""
        written = {name for name, argument in self.task.outputs.items() if argument.role is Role.OUTPUT}
        return {name: self.memory.seen(view) for name, view in views.items() if name not in written}

    def _fill_inputs(self, case: Case, views: dict[str, Array]) -> dict[str, float | int]:
        scalars: dict[str, float | int] = {}
        for name, argument in self.task.arguments.items():
            if argument.role is Role.SCALAR:
                scalars[name] = scalar_value(case, self.seed, name, argument)
            elif argument.role in (Role.INPUT, Role.INDEX, Role.INOUT):
                self._fill(case, name, argument, views[name])
        return scalars

    def _fill(self, case: Case, name: str, argument: Argument, view: Array) -> None:
        family, key = case.family(argument), case.key(self.seed, name)
        bound = int(argument.bound(case.sizes)) if argument.bound else 0
        if family in POINTER_FAMILIES:
            self.memory.put(view, draw(argument, family, key, view.shape, bound))
        else:
            self.memory.fill(view, family.value, key, bound)
            other = touched(self.task, case, self.seed)
            if other and other.name == name:
                self.memory.fill(view.reshape(-1)[other.at : other.at + 1], family.value, other.key, bound)

    def _slot(
        self,
        name: str,
        argument: Argument,
        case: Case,
        offsets: dict[str, int],
        scalars: dict[str, float | int],
    ) -> int:
        """The 64-bit word that delivers one argument: a size, an offset, or a scalar's bits."""
        if argument.role is Role.SIZE:
            return case.sizes[name]
        if argument.is_array:
            return offsets[name]
        raw = np.zeros(8, np.uint8)
        value = np.array([scalars[name]], argument.dtype)
        raw[: value.nbytes] = value.view(np.uint8)
        return int(raw.view(np.int64)[0])

    def call(self, runner: Runner, prepared: Prepared, limit_ns: int, timed: bool = False) -> Timing:
        """Poison the outputs, renew what is updated in place, call, and check all that came out.

        A timed call starts with cold buffers, on a core that is awake.

        Raises:
            Rejected: the call failed, wrote outside its outputs, or gave an output out of bounds.
        """
        case = prepared.case
        with self.watch.stage("values"):
            for name, argument in self.task.outputs.items():
                if argument.role is Role.INOUT:
                    self._fill(case, name, argument, prepared.views[name])
                else:
                    self.memory.poison(prepared.views[name], secrets.randbits(64))
            if runner.workspace:
                self.arena.poison_workspace(prepared.canary)
        if timed:
            with self.watch.stage("flush"):
                workspace = [self.arena.workspace.bytes] if runner.workspace and self.arena.workspace else []
                self.memory.flush([*prepared.views.values(), *workspace])
        if runner.checked:
            runner.describe(self._bytes(prepared, runner.workspace))
        with self.watch.stage("call"):
            watched = [] if runner.on_device else self._watched(prepared)
            timing = runner.call(prepared.slots, limit_ns, case.stage, self.watch, timed, watched)
        with self.watch.stage("compare"):
            self._check(prepared, runner.workspace)
        return timing

    def _watched(self, prepared: Prepared) -> list[int]:
        """Addresses of some bytes of the outputs, at random places and at both ends."""
        found = []
        for name in self.task.outputs:
            view = prepared.views[name]
            places = [0, view.nbytes - 1, *(secrets.randbelow(view.nbytes) for _ in range(WATCHED_BYTES))]
            found += [view.ctypes.data + place for place in places]
        return found

    def _bytes(self, prepared: Prepared, workspace: bool) -> list[int]:
        """Bytes of each argument, 0 where it is no array."""
        arrays = [prepared.views[name].nbytes if name in prepared.views else 0 for name in self.task.arguments]
        return [*arrays, *([self.arena.workspace_bytes] if workspace else [])]

    def _check(self, prepared: Prepared, workspace: bool) -> None:
        """Raises Rejected when a canary is broken (`tampered`) or an output is out of bounds (`wrong`)."""
        case = prepared.case
        got = {name: prepared.views[name] for name in self.task.outputs}
        when_done = self.memory.stamp(list(got.values()))
        name = self.arena.broken_canary(prepared.views, prepared.offsets, prepared.canary)
        if name or (workspace and self.arena.workspace_overrun(prepared.canary)):
            name = name or "workspace"
            where = f"the array '{name}' at {sizes_text(case.sizes)}"
            message = f"it wrote outside {where}; stay within the shapes of the contract"
            raise Rejected(Outcome.TAMPERED, "memory", {"message": message, "output": name})
        if found := first_mismatch(self.task, case.sizes, got, prepared.oracle, self.memory):
            detail = {**asdict(found), "sizes": case.sizes, "stage": case.stage}
            raise Rejected(Outcome.WRONG, "values", detail)
        if self.memory.stamp(list(got.values())) != when_done or not self.memory.is_idle():
            message = (
                "the kernel's work went on after it was to be done; launch all of it on the stream that it is given"
            )
            raise Rejected(Outcome.TAMPERED, "state", {"message": message})
