"""What a text promises an agent, read from its words, and which of that is not so: pure functions."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.budget import Budget, BudgetMode
from agent.tools.offered import Tool
from bench.judge.schemas import SubmissionMode

_AGAIN = re.compile(
    r"\bre-?submi\w+"
    r"|\bsubmit\w*(?:\s+\w+){0,3}?\s+(?:again|repeatedly|twice|more\s+than\s+once|several\s+times|many\s+times|as\s+often)\b"
    r"|\b(?:another|second|further|later|next|more|last|latest|every|each)\s+submi(?:t|ts|ssions?)\b",
    re.IGNORECASE,
)
_SECONDS = re.compile(r"\b(?P<number>\d[\d,_]*(?:\.\d+)?)\s+(?P<unit>seconds?|minutes?|hours?)\b", re.IGNORECASE)
_TOKENS = re.compile(r"\b(?P<number>\d[\d,_]*)\s+tokens?\b", re.IGNORECASE)
# A figure is a promise only behind such a word: "a call takes 2 seconds" and "rows of 512 tokens" are none.
_LIMIT = re.compile(r"\b(?:you have|budget|limit|within|at most|up to|left)\b[^.\n]*$", re.IGNORECASE)
_ENDLESS = re.compile(
    r"\b(?:unlimited|no\s+(?:time\s+|token\s+)?limits?|as\s+long\s+as\s+you\s+(?:like|want|need))\b", re.I
)
# A number of versions is asked for; "8 versions of gcc" and "100 iterations of the loop" are not.
_VERSIONS = re.compile(
    r"\b(?:write|make|try|produce|hand\s+in)\s+(?:(?:at least|at most|up to|about)\s+)?"
    r"(?P<number>\d+)\s+(?:\w+\s+)?versions?\b(?!\s+of\b)"
    r"|\byou have\s+(?P<rounds>\d+)\s+iterations?\b",
    re.IGNORECASE,
)
_RESUMED = re.compile(
    r"\b(?:asked|told)\s+to\s+go\s+on\b|\b(?:your|the)\s+session\s+(?:is|will\s+be|goes)\s+(?:resumed|on)\b",
    re.IGNORECASE,
)
_BUILD = re.compile(r"^ {4}(?P<command>(?:gcc|g\+\+|gfortran|clang\S*|hipcc|nvcc|none:)\s.*)$", re.MULTILINE)
_FLAG = re.compile(r"(?<![\w-])-(?:O\w+|std=[\w+]+|m[a-z][\w.=+-]+|f[a-z][\w=-]+|l[a-z]\w*|D[A-Z]\w*)")
_UNIT_S = {"s": 1, "m": 60, "h": 3600}
_PREVIEW = r"|\bpreviews?\b"


@dataclass(frozen=True)
class Enforced:
    """What holds for a setup's agents, whatever they are told. `build` is the judge's own command line."""

    mode: SubmissionMode
    tools: tuple[Tool, ...]
    budget: Budget
    build: str


@dataclass(frozen=True)
class Promise:
    """One promise: the words that make it, where they start, and why it is not kept (empty: it is)."""

    phrase: str
    start: int
    broken: str


def promises(text: str, enforced: Enforced) -> list[Promise]:
    """Every promise in a text, each held against what is enforced."""
    kinds = (_tools, _resubmission, _budget, _versions, _resumption, _build)
    return [promise for kind in kinds for promise in kind(text, enforced)]


@functools.lru_cache(maxsize=4096)  # hundreds of setups share most texts
def broken(text: str, enforced: Enforced) -> Promise | None:
    """The first promise of a text that is not kept."""
    return min((found for found in promises(text, enforced) if found.broken), key=lambda one: one.start, default=None)


def _naming(tool: Tool) -> re.Pattern[str]:
    """A tool's name where it means the tool: in code, as a route, in a call, or beside the word `tool`."""
    name = tool.value
    forms = rf"`/?{name}`|`{name}[(\s]|(?<![\w/])/{name}\b|\b{name}\(|\b{name}[\s-]+tool\b|\btool\s+{name}\b"
    return re.compile(forms + (_PREVIEW if tool is Tool.SCORE else ""), re.IGNORECASE)


def _tools(text: str, enforced: Enforced) -> Iterator[Promise]:
    for tool in Tool:
        why = "" if tool in enforced.tools else f"the tool '{tool}' is not offered here (mode {enforced.mode})"
        yield from (Promise(match[0], match.start(), why) for match in _naming(tool).finditer(text))


def _resubmission(text: str, enforced: Enforced) -> Iterator[Promise]:
    why = "" if enforced.mode is SubmissionMode.MULTI else f"mode {enforced.mode} takes one submission"
    yield from (Promise(match[0], match.start(), why) for match in _AGAIN.finditer(text))


def _budget(text: str, enforced: Enforced) -> Iterator[Promise]:
    limits = f"the limits are {enforced.budget.timeout_s:g} s and {enforced.budget.max_tokens} tokens"
    for match in _limits(_SECONDS, text):
        yield Promise(match[0], match.start(), "" if _seconds(match) == int(enforced.budget.timeout_s) else limits)
    for match in _limits(_TOKENS, text):
        yield Promise(match[0], match.start(), "" if _number(match) == enforced.budget.max_tokens else limits)
    yield from (Promise(match[0], match.start(), limits) for match in _ENDLESS.finditer(text))


def _versions(text: str, enforced: Enforced) -> Iterator[Promise]:
    asked = enforced.budget.versions
    why = f"mode {enforced.budget.mode} asks for {asked} versions" if asked else "no number of versions is set"
    for match in _VERSIONS.finditer(text):
        yield Promise(match[0], match.start(), "" if _asked(match) == asked else why)


def _resumption(text: str, enforced: Enforced) -> Iterator[Promise]:
    mode = enforced.budget.mode
    why = "" if mode is BudgetMode.TIME else f"in budget mode {mode} a session that ends is not resumed"
    yield from (Promise(match[0], match.start(), why) for match in _RESUMED.finditer(text))


def _asked(match: re.Match[str]) -> int:
    return int(match["number"] or match["rounds"])


def _build(text: str, enforced: Enforced) -> Iterator[Promise]:
    why = f"the judge builds with: {enforced.build}"
    for match in _BUILD.finditer(text):
        yield Promise(match["command"], match.start(), "" if match["command"].strip() == enforced.build else why)
    flags = enforced.build.split()
    for match in _FLAG.finditer(text):
        yield Promise(match[0], match.start(), "" if match[0] in flags else why)


def _limits(figure: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    for match in figure.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if _LIMIT.search(line):
            yield match


def _seconds(match: re.Match[str]) -> float:
    return _number(match) * _UNIT_S[match["unit"][0].lower()]


def _number(match: re.Match[str]) -> float:
    return float(match["number"].replace(",", "").replace("_", ""))
