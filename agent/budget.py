"""What an episode may use and how it ended: pure functions over facts that the driver observed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from agent.usage import Usage
from bench.judge.schemas import End, SubmissionMode
from bench.wording import did_you_mean

BUDGET_KEYS = ("timeout_s", "max_tokens")

# A launch that ended so is tried again; every other end says something about the agent or about its budget.
RELAUNCHED = frozenset({End.CRASH, End.TOOLS_UNAVAILABLE})
# Nothing of the agent's work is there to be promoted, or nobody waits for the answer.
NEVER_PROMOTED = frozenset({End.CANCELLED, End.START_FAILED, End.TOOLS_UNAVAILABLE})
# An orderly end that leaves time for more, where a budget is to be used up.
RESUMED = frozenset({End.FINISHED, End.SUBMITTED})
# With less time left a session is not resumed: that would not last for one more version and its grade.
LEAST_RESUMED_S = 60.0
# The node, its client or its model failed, not the agent: the next episode would most likely end so too.
OUTSIDE = frozenset({End.API, End.START_FAILED, End.TOOLS_UNAVAILABLE})
# A shell's codes for a program that is not executable, or not there.
NOT_STARTED_CODES = frozenset({126, 127})


class BudgetMode(StrEnum):
    """What an agent does with its budget: make so many versions, or go on until the time is spent."""

    ITERATIONS = "iterations"
    TIME = "time"


@dataclass(frozen=True)
class Budget:
    """Limits over all attempts of one episode: wall clock in seconds, tokens of all kinds.

    `iterations` is how many versions the prompt asks for in mode `iterations`; None: it names no number.
    """

    timeout_s: float
    max_tokens: int
    mode: BudgetMode = BudgetMode.ITERATIONS
    iterations: int | None = None

    @property
    def versions(self) -> int | None:
        """How many versions an agent is asked for; None where it is not."""
        return self.iterations if self.mode is BudgetMode.ITERATIONS else None

    def remaining_s(self, elapsed_s: float) -> float:
        """Seconds left of the wall clock, never negative."""
        return max(0.0, self.timeout_s - elapsed_s)

    def left(self, usage: Usage, elapsed_s: float) -> "Budget":
        """What `usage` and `elapsed_s` seconds leave of it."""
        tokens = max(0, self.max_tokens - usage.tokens)
        return replace(self, timeout_s=self.remaining_s(elapsed_s), max_tokens=tokens)

    def tokens_spent(self, usage: Usage) -> bool:
        return usage.tokens >= self.max_tokens


def budget_of(problem_budget: Mapping[str, float], default: Budget) -> Budget:
    """The default with what a problem's own line overrides.

    Raises:
        ValueError: a key that no budget has, or a value that is not positive.
    """
    for key, value in problem_budget.items():
        if key not in BUDGET_KEYS:
            raise ValueError(f"budget.{key}: unknown key; {did_you_mean(key, BUDGET_KEYS)}")
        if not value > 0:
            raise ValueError(f"budget.{key}: {value} is not above 0")
    return replace(
        default,
        timeout_s=problem_budget.get("timeout_s", default.timeout_s),
        max_tokens=int(problem_budget.get("max_tokens", default.max_tokens)),
    )


class Stop(StrEnum):
    """Why the driver ended a harness process that would have gone on."""

    TIME = "time"
    TOKENS = "tokens"
    CANCELLED = "cancelled"
    NO_TOOLS = "no_tools"
    OTHER_MODEL = "other_model"
    STALLED = "stalled"
    LINGERED = "lingered"


@dataclass(frozen=True)
class Observed:
    """How one launch went. `exit_code` is None when no process could be started.

    `ready` says whether the client announced exactly its tools; `reported` is the end in the client's own
    structured result; `submitted` is known from the judge's answers alone.
    """

    exit_code: int | None
    stop: Stop | None = None
    ready: bool = True
    reported: End | None = None
    submitted: bool = False


_STOPPED = {
    Stop.CANCELLED: End.CANCELLED,
    Stop.TIME: End.TIME,
    Stop.TOKENS: End.TOKENS,
    Stop.NO_TOOLS: End.TOOLS_UNAVAILABLE,
    Stop.OTHER_MODEL: End.START_FAILED,
    Stop.STALLED: End.CRASH,
}


def classify(seen: Observed, mode: SubmissionMode) -> End:
    """How a launch ended, in one word; exit codes decide only whether the client was there at all."""
    if seen.submitted and mode is not SubmissionMode.MULTI:
        return End.SUBMITTED
    if seen.stop in _STOPPED:
        return _STOPPED[seen.stop]
    if not seen.ready:
        missing = seen.exit_code is None or seen.exit_code in NOT_STARTED_CODES
        return End.START_FAILED if missing else End.TOOLS_UNAVAILABLE
    if seen.reported is None:
        return End.CRASH
    return End.SUBMITTED if seen.submitted and seen.reported is End.FINISHED else seen.reported


def relaunches(end: End, launches: int, limit: int, remaining_s: float) -> bool:
    """Whether another attempt follows one that ended so."""
    return end in RELAUNCHED and launches < limit and remaining_s > 0


@dataclass(frozen=True)
class Session:
    """One session of a client as it ended: its id (None: it told none), and whether it called a tool."""

    end: End
    id: str | None
    worked: bool


def resumes(session: Session, resumed: int, left: Budget, mode: SubmissionMode) -> bool:
    """Whether a session goes on that ended by itself; `resumed` is how often one of its attempt has so far.

    One that was resumed and did nothing would do nothing again.
    """
    if left.mode is not BudgetMode.TIME or session.end not in RESUMED or session.id is None:
        return False
    if session.end is End.SUBMITTED and mode is not SubmissionMode.MULTI:
        return False
    return (session.worked or resumed == 0) and left.timeout_s >= LEAST_RESUMED_S and left.max_tokens > 0
