"""Who asks: the episode (or driver) that a bearer token names, and what headers say beside a request."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bench.config import JudgeConfig
from bench.judge.refusal import Refused
from bench.judge.schemas import ADHOC, DRIVER_LABEL, EpisodeLabel, Header, Kind, SetupRecord, SubmissionMode, label_of

DRIVER_KINDS = frozenset({Kind.PROMOTED, Kind.HARVESTED})
MAX_KEY = 200
# SQLite's integers, and those of most languages, end there.
MAX_INTEGER = 2**63 - 1

Headers = Mapping[str, str]


@dataclass(frozen=True)
class Caller:
    """Whose request it is; for the driver's token, the episode that it speaks for, if it names one.

    `kernel` is the episode's, the only one that it may have graded. An open judge serves everyone as nobody: no
    label, a setup of its own.
    """

    setup: SetupRecord
    label: str | None = None
    episode: EpisodeLabel | None = None
    kernel: str | None = None
    driver: bool = False

    def may_read(self, label: str | None) -> bool:
        """Whether an answer given to `label` is this caller's to read."""
        return self.driver or self.label == label


@dataclass(frozen=True)
class Beside:
    """What the headers of one request say; `kind` is None for the route's own."""

    key: str | None = None
    attempt: int = 1
    tokens: int | None = None
    home_rank: int | None = None
    kind: Kind | None = None
    of_grade: str | None = None


def identify(headers: Headers, config: JudgeConfig, secret: bytes | None) -> Caller:
    """The caller that the token names.

    Raises:
        Refused: 401 without a genuine token, 403 with one that does not fit the episode or the job.
    """
    if secret is None:
        if Header.KIND in headers or Header.EPISODE in headers:
            raise _not_driver(headers)
        return Caller(SetupRecord(setup=ADHOC, preset=config.preset, submission_mode=SubmissionMode.MULTI))
    label = _label(headers, secret)
    if label == DRIVER_LABEL:
        return _for_driver(headers.get(Header.EPISODE), config)
    if Header.KIND in headers or Header.OF_GRADE in headers:
        raise _not_driver(headers)
    if headers.get(Header.EPISODE, label) != label:
        raise Refused(403, "other_episode", f"this token speaks for {label} only; use the episode's own token")
    return _for_episode(label, config)


def _label(headers: Headers, secret: bytes) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Refused(401, "token_missing", "send the episode's token as 'Authorization: Bearer <token>'")
    label = label_of(secret, token.strip())
    if label is None:
        raise Refused(401, "token_invalid", "this token was not made for this job; use the one you were given")
    return label


def _for_driver(episode: str | None, config: JudgeConfig) -> Caller:
    if episode is None:
        return Caller(SetupRecord(setup=DRIVER_LABEL), driver=True)
    return _for_episode(episode, config, driver=True)


def _for_episode(label: str, config: JudgeConfig, driver: bool = False) -> Caller:
    try:
        episode = EpisodeLabel.parse(label)
    except ValueError as error:
        raise Refused(403, "no_episode", f"{error}; ask with an episode's token") from error
    setup = config.setups.get(episode.setup)
    if setup is None:
        served = ", ".join(config.setups) or "none"
        message = f"setup '{episode.setup}' is not of this job; it serves {served}"
        raise Refused(403, "unknown_setup", message)
    if episode.problem >= len(config.problems):
        message = f"problem {episode.problem} is not of this job, which has {len(config.problems)}; use a token of it"
        raise Refused(403, "unknown_problem", message)
    return Caller(setup, label, episode, config.problems[episode.problem], driver)


def _not_driver(headers: Headers) -> Refused:
    sent = [name for name in (Header.KIND, Header.OF_GRADE, Header.EPISODE) if name in headers]
    message = f"{' and '.join(sent)}: only with the driver's token, which this request lacks; leave it out"
    return Refused(403, "driver_only", message)


def beside(headers: Headers, caller: Caller) -> Beside:
    """Read the headers of a grade request.

    Raises:
        Refused: 400 naming the header that is malformed.
    """
    attempt = _integer(headers, Header.ATTEMPT)
    kind = _kind(headers, caller)
    of_grade = headers.get(Header.OF_GRADE)
    if (kind is Kind.PROMOTED) != (of_grade is not None):
        raise _malformed(Header.OF_GRADE, "a promoted submission names the score that it promotes; no other has one")
    if attempt == 0:
        raise _malformed(Header.ATTEMPT, "attempts count from 1")
    return Beside(
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
    kind = next((kind for kind in DRIVER_KINDS if kind == word), None)
    if kind is None:
        raise _malformed(Header.KIND, "the driver sends 'promoted' or 'harvested'")
    return kind


def _key(headers: Headers) -> str | None:
    key = headers.get(Header.IDEMPOTENCY)
    if key is not None and not re.fullmatch(rf"[!-~]{{1,{MAX_KEY}}}", key):
        raise _malformed(Header.IDEMPOTENCY, f"a key is 1 to {MAX_KEY} printable characters without spaces")
    return key


def _integer(headers: Headers, name: str) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > MAX_INTEGER:
        raise _malformed(name, f"it is a whole number from 0 on, not '{text[:40]}'")
    return int(text)


def _malformed(name: str, why: str) -> Refused:
    return Refused(400, "bad_header", f"header {name}: {why}")
