"""Times candidate and denominator interleaved: pairs in random order, new values each, outputs all checked."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.errors import JudgeFault
from bench.inputs import Case, random_bits, timed_sizes
from bench.judge.schemas import Preset
from bench.measure.protocols import Protocol
from bench.measure.session import OracleOf, Prepared, Session
from bench.measure.statistics import credit
from bench.native.helper import Timing
from bench.records import Cell
from bench.runner.runner import Runner
from bench.verdict import Rejected

CALL_FLOOR_NS = 5_000_000_000
LATER_FLOOR_NS = 1_000_000_000
MAX_REPEATS = 3


@dataclass(frozen=True)
class Sides:
    """The two processes of a grade, on the same buffers; the one that is not called is stopped."""

    candidate: Runner
    denominator: Runner


@dataclass(frozen=True)
class Pair:
    """One pair's times in ns, whether the candidate went first, and whether a clock was disturbed."""

    candidate_ns: int
    denominator_ns: int
    candidate_first: bool
    disturbed: bool


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
        sizes = timed_sizes(session.task, session.seed, preset, index)
        limits = TimeLimits()
        pairs: list[Pair] = []
        repeated = 0
        orders = random_bits(session.seed, "timed", f"order{index}", protocol.runs + 1 + MAX_REPEATS)
        orders[0] = False  # the denominator's warm-up sets the candidate's time limit
        for number, candidate_first in enumerate(orders):
            case = Case("timed", f"i{index}", f"i{index}.{number}", sizes)
            pair = _time_pair(session, sides, session.prepare(case, oracle_of), candidate_first, limits)
            if number == 0:
                continue
            if pair.disturbed and repeated < MAX_REPEATS:
                repeated += 1
                continue
            pairs.append(pair)
            if len(pairs) == protocol.runs:
                break
        yield _cell(index, sizes, pairs, repeated, protocol)


def _time_pair(session: Session, sides: Sides, prepared: Prepared, candidate_first: bool, limits: TimeLimits) -> Pair:
    """Call both sides on the same values; the judge's clock was undisturbed unless the pair says otherwise."""
    timings: dict[str, Timing] = {}
    for name in ("candidate", "denominator") if candidate_first else ("denominator", "candidate"):
        if name == "candidate":
            timings[name] = session.call(sides.candidate, prepared, limits.now_ns, cold=True)
            limits.saw_candidate(timings[name].elapsed_ns)
        else:
            timings[name] = _call_denominator(session, sides.denominator, prepared)
            limits.saw_denominator(timings[name].elapsed_ns)
    return Pair(
        timings["candidate"].elapsed_ns,
        timings["denominator"].elapsed_ns,
        candidate_first,
        any(timing.disturbed for timing in timings.values()),
    )


def _call_denominator(session: Session, runner: Runner, prepared: Prepared) -> Timing:
    try:
        return session.call(runner, prepared, 60 * LATER_FLOOR_NS, cold=True)
    except Rejected as error:
        raise JudgeFault(f"the denominator of {session.task.name} failed: {error}: {error.detail}") from error


def _cell(index: int, sizes: dict[str, int], pairs: list[Pair], repeated: int, protocol: Protocol) -> Cell:
    candidate = tuple(pair.candidate_ns for pair in pairs)
    denominator = tuple(pair.denominator_ns for pair in pairs)
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
