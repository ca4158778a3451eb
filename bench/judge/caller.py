"""Who sends a request: the episode (or driver) of its token, what that may use, and what the headers say."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bench.config import JudgeConfig
from bench.judge.refusal import Refused
from bench.judge.schemas import (
    ADHOC,
    DRIVER_LABEL,
    EpisodeLabel,
    Header,
    JudgeTool,
    Kind,
    SetupRecord,
    SubmissionMode,
    label_of,
)

DRIVER_KINDS = {kind.value: kind for kind in (Kind.PROMOTED, Kind.HARVESTED)}
MAX_KEY = 200
# SQLite's integers, and those of most languages, end there.
MAX_INTEGER = 2**63 - 1
_SHOWN_CHARS = 40

Headers = Mapping[str, str]


@dataclass(frozen=True)
class Caller:
    """Whose request it is; for the driver's token, the episode that it speaks for, if it names one.

    `kernel` is the episode's, the only one that it may have graded. At an open judge every caller is the same: no
    label, and a setup of its own.
    """

    setup: SetupRecord
    label: str | None = None
    episode: EpisodeLabel | None = None
    kernel: str | None = None
    driver: bool = False

    def may_read(self, label: str | None) -> bool:
        """Whether this caller may read an answer that was given to `label`."""
        return self.driver or self.label == label


@dataclass(frozen=True)
class RequestHeaders:
    """What the headers of a request to grade say; `kind` is None for the route's own."""

    key: str | None = None
    attempt: int = 1
    tokens: int | None = None
    home_rank: int | None = None
    kind: Kind | None = None
    of_grade: str | None = None


class Preference(NamedTuple):
    """`later`: 202 instead of a long wait (`respond-async`); `wait_s`: how long an answer is waited for before that."""

    later: bool
    wait_s: int


def identify(headers: Headers, config: JudgeConfig, secret: bytes | None) -> Caller:
    """The caller that the token names; `secret` is None at an open judge.

    Raises:
        Refused: 401 without a genuine token, 403 with one that does not fit the episode or the job.
    """
    if secret is None:
        _refuse_driver_headers(headers, Header.KIND, Header.OF_GRADE, Header.EPISODE)
        return Caller(SetupRecord(setup=ADHOC, preset=config.preset, submission_mode=SubmissionMode.MULTI))
    label = _label(headers, secret)
    episode = headers.get(Header.EPISODE)
    if label == DRIVER_LABEL:
        if episode is None:
            return Caller(SetupRecord(setup=DRIVER_LABEL), driver=True)
        return _for_episode(episode, config, driver=True)
    _refuse_driver_headers(headers, Header.KIND, Header.OF_GRADE)
    if episode not in (None, label):
        raise Refused(403, "other_episode", f"this token is of {label} only; use the other episode's own token")
    return _for_episode(label, config, driver=False)


def _label(headers: Headers, secret: bytes) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        message = "the request has no token; send the episode's as 'Authorization: Bearer <token>'"
        raise Refused(401, "token_missing", message)
    label = label_of(secret, token.strip())
    if label is None:
        raise Refused(401, "token_invalid", "this token was not made for this job; use the one you were given")
    return label


def _for_episode(label: str, config: JudgeConfig, driver: bool) -> Caller:
    try:
        episode = EpisodeLabel.parse(label)
    except ValueError as error:
        raise Refused(403, "no_episode", f"{error}; send an episode's token") from error
    setup = config.setups.get(episode.setup)
    if setup is None:
        served = ", ".join(config.setups) or "none"
        message = f"setup '{episode.setup}' is not of this job, which serves {served}; use a token of this job"
        raise Refused(403, "unknown_setup", message)
    if episode.problem >= len(config.problems):
        message = f"this job has {len(config.problems)} problems, and none has number {episode.problem}"
        raise Refused(403, "unknown_problem", f"{message}; use a token of this job")
    return Caller(setup, label, episode, config.problems[episode.problem], driver)


def _refuse_driver_headers(headers: Headers, *names: Header) -> None:
    if sent := [name for name in names if name in headers]:
        message = f"{' and '.join(sent)}: only the driver's token may send this, and this request has another or none"
        raise Refused(403, "driver_only", f"{message}; leave the header out")


def check_submit(caller: Caller) -> None:
    """Raises Refused (403) when this caller may not submit."""
    if caller.driver and caller.label is None:
        message = f"the driver submits for an episode; name it in the header {Header.EPISODE}"
        raise Refused(403, "episode_missing", message)


def check_tool(tool: JudgeTool, caller: Caller, config: JudgeConfig) -> None:
    """Raises Refused (403) when this caller may not use this tool; at an open judge everybody has all."""
    if caller.driver:
        raise Refused(403, "driver_only_submits", "the driver's token promotes and harvests at /submit only")
    setup = caller.setup
    if setup.submission_mode is SubmissionMode.BLIND and tool is not JudgeTool.SEARCH:
        raise Refused(403, "blind_mode", "this episode has no previews (blind mode); use /submit")
    if caller.label and tool not in config.tools_of(setup.setup):
        message = f"treatment '{setup.treatment}' of setup '{setup.setup}' has no {tool}; go on without it"
        raise Refused(403, "tool_withheld", message)


def read_headers(headers: Headers, caller: Caller) -> RequestHeaders:
    """Read the headers of a request to grade.

    Raises:
        Refused: 400 naming the header that is malformed.
    """
    attempt = _integer(headers, Header.ATTEMPT, least=1)
    kind = _kind(headers, caller)
    of_grade = headers.get(Header.OF_GRADE)
    if kind is Kind.PROMOTED and of_grade is None:
        raise _malformed(Header.OF_GRADE, "is missing; a promoted submission names the score that it promotes")
    if kind is not Kind.PROMOTED and of_grade is not None:
        raise _malformed(Header.OF_GRADE, "is for promoted submissions only; leave it out")
    return RequestHeaders(
        key=_key(headers),
        attempt=1 if attempt is None else attempt,
        tokens=_integer(headers, Header.TOKENS),
        home_rank=_integer(headers, Header.HOME_RANK),
        kind=kind,
        of_grade=of_grade,
    )


def _kind(headers: Headers, caller: Caller) -> Kind | None:
    word = headers.get(Header.KIND)
    if not caller.driver and word is None:
        return None
    if word not in DRIVER_KINDS:
        sent = "is missing" if word is None else f"is '{word[:_SHOWN_CHARS]}'"
        raise _malformed(Header.KIND, f"{sent}; the driver sends 'promoted' or 'harvested'")
    return DRIVER_KINDS[word]


def _key(headers: Headers) -> str | None:
    key = headers.get(Header.IDEMPOTENCY)
    if key is not None and not re.fullmatch(rf"[!-~]{{1,{MAX_KEY}}}", key):
        why = f"is '{key[:_SHOWN_CHARS]}' ({len(key)} characters); send 1 to {MAX_KEY} ASCII characters without spaces"
        raise _malformed(Header.IDEMPOTENCY, why)
    return key


def _integer(headers: Headers, name: str, least: int = 0) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", text) or not least <= int(text) <= MAX_INTEGER:
        why = f"is '{text[:_SHOWN_CHARS]}'; send a whole number from {least} to {MAX_INTEGER}, or leave it out"
        raise _malformed(name, why)
    return int(text)


def _malformed(name: str, why: str) -> Refused:
    return Refused(400, "bad_header", f"header {name} {why}")


def preference(fields: Iterable[str]) -> Preference:
    """Read every `Prefer` field (RFC 7240) of a request; what is not known, or malformed, is no preference."""
    found: dict[str, str] = {}
    for part in ",".join(fields).split(","):
        name, _, value = part.partition(";")[0].partition("=")
        found.setdefault(name.strip().lower(), value.strip().strip('"'))
    wait = found.get("wait", "")
    return Preference("respond-async" in found, int(wait) if re.fullmatch("[0-9]{1,9}", wait) else 0)
