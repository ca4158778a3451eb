"""Times candidate and denominator interleaved: pairs in random order, new values each, outputs all checked."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from bench.errors import BaselineFault
from bench.gates import agreement
from bench.inputs import Case, balanced_order, timed_sizes
from bench.judge.schemas import Preset
from bench.measure.protocols import Protocol
from bench.measure.session import Prepared, Session
from bench.measure.statistics import credit
from bench.native.helper import Timing
from bench.records import Cell
from bench.reference import OracleOf
from bench.runner.runner import Runner
from bench.task import Task
from bench.verdict import Rejected

CALL_FLOOR_NS = 5_000_000_000
LATER_FLOOR_NS = 1_000_000_000
DENOMINATOR_NS = 60_000_000_000
MAX_REPEATS = 10
# Linux takes the core from a real-time task that has had it for 0.95 s of a second.
URGENT_MOST_NS = 500_000_000
RACE_CALLS = 5
# Who takes so many times the time of the fastest is not called again.
LOST = 2


@dataclass(frozen=True)
class Sides:
    """The two processes of a grade, on the same buffers; the one that is not called is stopped.

    `offsets_ns` gathers, for each timed call of a side, the judge's time less the runner's own.
    """

    candidate: Runner
    denominator: Runner
    offsets_ns: dict[str, list[int]] = field(default_factory=lambda: {"candidate": [], "denominator": []})

    def share_empty_call(self) -> None:
        """Take the same off the times of both: the loop that answers is the same, and what differed was chance."""
        self.candidate.empty_ns = self.denominator.empty_ns = min(self.candidate.empty_ns, self.denominator.empty_ns)

    def calm(self) -> None:
        """Time both as ordinary processes from now on, so that neither has what the other lacks."""
        self.candidate.calm()
        self.denominator.calm()


@dataclass(frozen=True)
class Pair:
    """One call of each side on the same values, and whether the candidate went first."""

    candidate: Timing
    denominator: Timing
    candidate_first: bool

    @property
    def disturbed(self) -> bool:
        """Whether one of the two times is not the kernel's alone."""
        return any(timing.disturbed or timing.strayed for timing in (self.candidate, self.denominator))


@dataclass
class TimeLimits:
    """A call's time limit: max(5 s, 10 x the denominator) first, then 3 x the first call, at least 1 s."""

    first_ns: int = CALL_FLOOR_NS
    later_ns: int | None = None

    @property
    def now_ns(self) -> int:
        return self.later_ns or self.first_ns

    def saw_denominator(self, elapsed_ns: int) -> None:
        self.first_ns = max(CALL_FLOOR_NS, 10 * elapsed_ns)

    def saw_candidate(self, elapsed_ns: int) -> None:
        if self.later_ns is None:
            self.later_ns = max(LATER_FLOOR_NS, 3 * elapsed_ns)


def time_inputs(
    session: Session, sides: Sides, protocol: Protocol, preset: Preset, oracle_of: OracleOf
) -> Iterator[Cell]:
    """One cell a timed input of the protocol.

    Raises:
        Rejected: the candidate failed a call or answered wrongly.
        JudgeFault: the denominator did.
    """
    for index in range(protocol.inputs):
        timed = TimedInput(session, sides, oracle_of, preset, index)
        warm_up = timed.pair(candidate_first=False)  # the denominator goes first: it sets the candidate's time limit
        if max(warm_up.candidate.elapsed_ns, warm_up.denominator.elapsed_ns) > URGENT_MOST_NS:
            sides.calm()
        pairs, repeated = [], 0
        for candidate_first in balanced_order(session.seed, index, protocol.runs):
            pair = timed.pair(candidate_first)
            while pair.disturbed and repeated < MAX_REPEATS:
                pair, repeated = timed.pair(candidate_first), repeated + 1
            pairs.append(pair)
        timed.twin()
        agreement.check([pair.candidate for pair in pairs], [pair.denominator for pair in pairs])
        yield _cell(index, timed.sizes, pairs, repeated, protocol)


class TimedInput:
    """One timed input of a grade: gives as many pairs as are asked for, each with values of its own."""

    def __init__(self, session: Session, sides: Sides, oracle_of: OracleOf, preset: Preset, index: int) -> None:
        self.sizes = timed_sizes(session.task, session.seed, preset, index)
        self._session, self._sides, self._oracle_of, self._index = session, sides, oracle_of, index
        self._limits = TimeLimits()
        self._drawn = 0

    def _case(self) -> Case:
        return Case("timed", f"i{self._index}.{self._drawn}", self.sizes)

    def twin(self) -> None:
        """Call the candidate on the last values but for one element; only what comes out matters."""
        prepared = self._session.prepare(replace(self._case(), twin=True), self._oracle_of)
        self._session.call(self._sides.candidate, prepared, self._limits.now_ns)

    def pair(self, candidate_first: bool) -> Pair:
        """Call both sides on the same new values, one after the other."""
        self._drawn += 1
        prepared = self._session.prepare(self._case(), self._oracle_of)
        timings: dict[str, Timing] = {}
        for side in ("candidate", "denominator") if candidate_first else ("denominator", "candidate"):
            timings[side] = self._call(side, prepared)
        return Pair(timings["candidate"], timings["denominator"], candidate_first)

    def _call(self, side: str, prepared: Prepared) -> Timing:
        if side == "denominator":
            timing = _call_denominator(self._session, self._sides.denominator, prepared)
            self._limits.saw_denominator(timing.elapsed_ns)
        else:
            timing = self._session.call(self._sides.candidate, prepared, self._limits.now_ns, timed=True)
            self._limits.saw_candidate(timing.elapsed_ns)
        self._sides.offsets_ns[side].append(timing.offset_ns)
        return timing


def race_ns(
    session: Session, baseline: Runner, preset: Preset, oracle_of: OracleOf, best_ns: float | None = None
) -> tuple[int, ...]:
    """Times (ns) of RACE_CALLS calls of a baseline at the sizes of the first timed input, after a warm-up.

    Every baseline of a race gets the same values. One that is far behind the best so far is called once.

    Raises:
        Rejected: it failed a call or answered wrongly.
    """
    sizes, times = timed_sizes(session.task, session.seed, preset, 0), []
    for number in range(RACE_CALLS + 1):
        prepared = session.prepare(Case("race", f"i0.{number}", sizes), oracle_of)
        elapsed_ns = session.call(baseline, prepared, DENOMINATOR_NS, timed=True).elapsed_ns
        if number:
            times.append(elapsed_ns)
        if number == 1 and best_ns is not None and elapsed_ns > LOST * best_ns:
            break
    return tuple(times)


def _call_denominator(session: Session, runner: Runner, prepared: Prepared) -> Timing:
    try:
        return session.call(runner, prepared, DENOMINATOR_NS, timed=True)
    except Rejected as error:
        raise baseline_fault(session.task, error) from error


def baseline_fault(task: Task, error: Rejected) -> BaselineFault:
    """The judge's own baseline failed, as no submission can make it."""
    finding = f"{error}: {error.detail.get('message') or error.detail}"
    return BaselineFault(f"the denominator of {task.name} failed: {finding}; run `kcourt task validate {task.name}`")


def _cell(index: int, sizes: dict[str, int], pairs: list[Pair], repeated: int, protocol: Protocol) -> Cell:
    candidate = tuple(pair.candidate.elapsed_ns for pair in pairs)
    denominator = tuple(pair.denominator.elapsed_ns for pair in pairs)
    found = credit(candidate, denominator, protocol.alpha)
    return Cell(
        index=index,
        sizes=sizes,
        ratio=found.ratio,
        raw=found.raw,
        p=found.p,
        credited=found.credited,
        candidate_ns=candidate,
        denominator_ns=denominator,
        order="".join("c" if pair.candidate_first else "d" for pair in pairs),
        repeated=repeated,
    )
