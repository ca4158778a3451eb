"""Evaluation tools: which are to look at a submission, how much their word counts, and what each of them found."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from bench.cache import content_key
from bench.errors import ConfigError
from bench.wording import did_you_mean

# Seconds of one tool, where a plan does not say it, and the most that it can say.
ONE_TIMEOUT_S, LONGEST_S = 60, 3600


class EvaluationTool(StrEnum):
    """The tools that this version knows."""

    ADDRESS = "address"
    UNDEFINED = "undefined"


class Policy(StrEnum):
    """What a finding does to a grade: it flags it (advisory), or it rejects it (required)."""

    ADVISORY = "advisory"
    REQUIRED = "required"


class Execution(StrEnum):
    """What became of a tool's run."""

    NOT_RUN = "not_run"
    COMPLETED = "completed"
    TOOL_ERROR = "tool_error"
    TIMEOUT = "timeout"


class Finding(StrEnum):
    """What a tool says of the submission; only a completed run can say `clean`."""

    NOT_EVALUATED = "not_evaluated"
    CLEAN = "clean"
    FOUND = "found"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class PlannedTool:
    """One tool of a plan; it has `timeout_s` whole seconds for one submission."""

    name: EvaluationTool
    policy: Policy
    timeout_s: int


@dataclass(frozen=True)
class Plan:
    """The tools of a judge, in the order in which they run, within `timeout_s` seconds all together."""

    tools: tuple[PlannedTool, ...]
    timeout_s: int

    @property
    def fingerprint(self) -> str:
        """Identity of a plan: grades with the same one were looked at alike."""
        return content_key(repr(self))


NO_TOOLS = Plan((), LONGEST_S)
# A memory error rejects, undefined behaviour flags.
USUAL = "address:required undefined:advisory"
USUAL_TIMEOUT_S = 180


@dataclass(frozen=True)
class Result:
    """What became of one tool: `why` tells what it found, or why it said nothing."""

    tool: str
    policy: Policy
    execution: Execution
    finding: Finding
    why: str = ""
    log: str = ""

    def facts(self) -> dict[str, Any]:
        """For the grade's provenance; the log is the submission's own words, and not in it."""
        return {name: str(value) for name, value in asdict(self).items() if name != "log" and value}


def parse_plan(text: str = USUAL, timeout_s: int = USUAL_TIMEOUT_S) -> Plan:
    """The plan that `name[:policy[:seconds]]`, separated by commas or spaces, describes; nothing is no tool at all.

    Raises:
        ConfigError: an unknown or repeated tool, an unknown policy, or a time that is no whole number of seconds from 1
            to 3600 or more than the plan's own.
    """
    check_seconds("the time of all tools", timeout_s, LONGEST_S)
    planned = [_parse_tool(word, timeout_s) for word in text.replace(",", " ").split()]
    names = [tool.name for tool in planned]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"the tool '{twice}' is named twice; name it once")
    return Plan(tuple(planned), timeout_s)


def _parse_tool(word: str, longest_s: int) -> PlannedTool:
    if word.count(":") > 2:
        raise ConfigError(f"'{word}' is no tool: write name:policy:seconds, such as address:required:60")
    name, policy, seconds = [*word.split(":"), "", ""][:3]
    known = tuple(EvaluationTool)
    if name not in known:
        raise ConfigError(f"there is no tool '{name}'; {did_you_mean(name, known)}")
    if policy and policy not in set(Policy):
        raise ConfigError(f"the policy of '{name}' is '{policy}'; it must be {' or '.join(Policy)}")
    if seconds and not seconds.isdecimal():
        raise ConfigError(f"the time of '{name}' is '{seconds}'; it must be a whole number of seconds")
    limit_s = int(seconds) if seconds else min(ONE_TIMEOUT_S, longest_s)
    check_seconds(f"the time of '{name}'", limit_s, longest_s)
    return PlannedTool(EvaluationTool(name), Policy(policy or Policy.ADVISORY), limit_s)


def check_seconds(what: str, seconds: int, longest_s: int) -> None:
    """Raises ConfigError unless it is from 1 to `longest_s`."""
    if not 1 <= seconds <= longest_s:
        raise ConfigError(f"{what} is {seconds} s; it must be from 1 to {longest_s}")


Run = Callable[[PlannedTool, float], Result]


def carry_out(plan: Plan, run: Run, now: Callable[[], float]) -> tuple[Result, ...]:
    """Run a plan's tools one after the other; `run` is given a tool and the seconds that it has (`now` tells time)."""
    end, results = now() + plan.timeout_s, []
    for tool in plan.tools:
        left_s = min(tool.timeout_s, end - now())
        if left_s <= 0:
            why = f"the plan's {plan.timeout_s} s were over before its turn"
            results.append(Result(tool.name, tool.policy, Execution.NOT_RUN, Finding.NOT_EVALUATED, why))
        else:
            results.append(run(tool, left_s))
    return tuple(results)


def rejects(results: Sequence[Result]) -> Result | None:
    """The first finding that rejects the submission."""
    return next((one for one in results if one.finding is Finding.FOUND and one.policy is Policy.REQUIRED), None)


def flags(results: Sequence[Result]) -> str | None:
    """Why a grade should be looked at: an advisory tool found something, or a required one came to no conclusion.

    A tool that could not be run flags nothing: the grade's provenance says that it was not applied.
    """
    for one in results:
        unsure = one.finding is Finding.INCONCLUSIVE and one.policy is Policy.REQUIRED
        if one.finding is Finding.FOUND or unsure:
            return f"{one.tool}: {one.why}"
    return None


def provenance(plan: Plan, results: Sequence[Result]) -> dict[str, Any]:
    """What a grade's row holds of its tools."""
    return {"plan": plan.fingerprint, "results": [one.facts() for one in results]}
