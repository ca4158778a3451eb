"""Everything that travels between an agent, the router and a judge: requests, answers, records, closed sets of words.

Needs pydantic only, because the agent container has nothing else.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

SUFFIXES = {"c": ".c", "cpp": ".cpp", "fortran": ".f90", "python": ".py"}


class Language(StrEnum):
    """A language that submissions are written in."""

    C = "c"
    CPP = "cpp"
    FORTRAN = "fortran"
    PYTHON = "python"

    @property
    def suffix(self) -> str:
        return SUFFIXES[self.value]


class Preset(StrEnum):
    """A named size."""

    S = "S"
    M = "M"
    L = "L"
    XL = "XL"


class Outcome(StrEnum):
    """What a grade found; being fast is not an outcome."""

    SOLVED = "solved"
    WRONG = "wrong"
    BUILD_FAILED = "build_failed"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    RESOURCE = "resource"
    POLICY = "policy"
    TAMPERED = "tampered"
    JUDGE_FAULT = "judge_fault"


class Kind(StrEnum):
    """Why a grade exists."""

    SCORE = "score"
    SUBMIT = "submit"
    PROMOTED = "promoted"
    HARVESTED = "harvested"
    FINAL = "final"
    REGRADE = "regrade"
    DECLARED = "declared"
    COLUMN = "column"
    CALIBRATION = "calibration"


# Kinds that answer an episode: the first of them ends a single-mode episode.
ANSWER_KINDS = frozenset({Kind.SUBMIT, Kind.PROMOTED, Kind.HARVESTED})


class SubmissionMode(StrEnum):
    """How often an episode may submit: many times, once, or once without previews."""

    MULTI = "multi"
    SINGLE = "single"
    BLIND = "blind"


class InputMode(StrEnum):
    """What a submission may be: see `JUDGE_INPUT_MODE`."""

    SOURCE = "source"
    PY_BINDING = "py-binding"
    LIBRARY = "library"
    ANY = "any"


class End(StrEnum):
    """How an episode ended."""

    SUBMITTED = "submitted"
    FINISHED = "finished"
    TIME = "time"
    TOKENS = "tokens"
    CONTEXT = "context"
    API = "api"
    CRASH = "crash"
    TOOLS_UNAVAILABLE = "tools_unavailable"
    START_FAILED = "start_failed"
    CANCELLED = "cancelled"


# Process codes of the predecessor, shown beside the word.
END_CODES = {End.SUBMITTED: 123, End.TIME: 124, End.TOKENS: 125, End.CONTEXT: 126, End.API: 127}

HEADER_ATTEMPT = "Kcourt-Attempt"
HEADER_TOKENS = "Kcourt-Tokens"
HEADER_KIND = "Kcourt-Kind"
HEADER_OF_GRADE = "Kcourt-Of-Grade"
HEADER_EPISODE = "Kcourt-Episode"
HEADER_HOME_RANK = "Kcourt-Home-Rank"
HEADER_IDEMPOTENCY = "Idempotency-Key"
HEADER_REQUEST_ID = "X-Request-Id"

DRIVER_LABEL = "driver"
ADHOC = "adhoc"


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="null")


class GradeRequest(Closed):
    """Body of `/score`, `/submit` and (with `tool`) `/profile`. Exactly one delivery; `workspace_bytes` in bytes."""

    kernel: str
    language: Language | None = None
    rank: Annotated[int, Field(ge=0, strict=True)] | None = None
    source: str | None = None
    source_file: str | None = None
    library: str | None = None
    workspace_bytes: Annotated[int, Field(ge=0, le=1 << 34, strict=True)] = 0

    @model_validator(mode="after")
    def _one_delivery(self) -> Self:
        given = [name for name in ("source", "source_file", "library") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"send exactly one of source, source_file and library; this request has {' and '.join(given) or 'none'}"
            )
        return self


class Answer(Closed):
    """What `/score`, `/submit` and `/grades/{id}` return for a graded request.

    `score` is the protocol's S; `interval` the 90 % interval of the raw ratio; both null unless solved.
    """

    grade_id: str
    kernel: str
    rank: int
    outcome: Outcome
    score: float | None = None
    interval: tuple[float, float] | None = None
    faster: bool | None = None
    suspect: str | None = None
    protocol: str
    detail: dict[str, Any] = {}


class HealthStatus(StrEnum):
    """Whether a judge grades: not yet, yes, or no with a reason."""

    STARTING = "starting"
    OK = "ok"
    UNFIT = "unfit"


class Health(Closed):
    """What `/health` returns. `self_grade` says how the judge's grades of its own references went."""

    status: HealthStatus
    rank: int
    run_id: str
    routes: tuple[str, ...]
    device: str
    sandbox: str | None
    queue_depth: int
    inflight_submits: int
    self_grade: str
    version: str


class ErrorDetail(Closed):
    code: str
    message: str
    request_id: str


class ErrorBody(Closed):
    error: ErrorDetail


class SetupRecord(Closed):
    """A setup's identity, as the judge and the results database need it."""

    setup: str
    study: str = ""
    experiment: str = ""
    hardware: str = ""
    model: str = ""
    language: Language = Language.C
    treatment: str = "none"
    harness: str = ""
    temperature: float | None = None
    effort: str | None = None
    preset: Preset = Preset.XL
    submission_mode: SubmissionMode = SubmissionMode.SINGLE


class Problem(Closed):
    """One line of a problems file: one kernel in one repeat slot of one setup."""

    setup: str
    kernel: str
    slot: Annotated[int, Field(ge=0)] = 0
    language: Language
    start: str = "none"
    text: str = ""
    budget: dict[str, float] = {}


class EpisodeRecord(Closed):
    """`tokens.json`: how one episode went. Times in seconds; a null is "not reported", never zero."""

    label: str
    setup: str
    kernel: str
    slot: int
    node: int
    problem: int
    worker: int
    end: End
    exit_code: int | None = None
    attempts: int
    turns: int | None = None
    tool_calls: int | None = None
    tokens_fresh: int | None = None
    tokens_cached: int | None = None
    tokens_output: int | None = None
    dollars: float | None = None
    wall_s: float
    api_s: float | None = None
    model: str | None = None
    harness: str
    harness_version: str
    started_at: str
    ended_at: str


_LABEL = re.compile(
    r"(?P<setup>[A-Za-z0-9][\w.+-]*?)\.n(?P<node>\d+)\.p(?P<problem>\d+)\.w(?P<worker>\d+)(\.s(?P<slot>\d+))?"
)


@dataclass(frozen=True)
class EpisodeLabel:
    """`<setup>.n<node>.p<problem>.w<worker>[.s<slot>]`, parsed from the right."""

    setup: str
    node: int
    problem: int
    worker: int
    slot: int = 0

    def __str__(self) -> str:
        tail = f".s{self.slot}" if self.slot else ""
        return f"{self.setup}.n{self.node}.p{self.problem}.w{self.worker}{tail}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError when `text` is not an episode label."""
        found = _LABEL.fullmatch(text)
        if not found:
            raise ValueError(f"'{text}' is not an episode label (<setup>.n<node>.p<problem>.w<worker>[.s<slot>])")
        numbers = {name: int(found[name] or 0) for name in ("node", "problem", "worker", "slot")}
        return cls(setup=found["setup"], **numbers)


def token_for(secret: bytes, label: str) -> str:
    """Bearer token of an episode (or of the driver): `<label>.<hex HMAC-SHA256(job secret, label)>`."""
    return f"{label}.{hmac.new(secret, label.encode(), hashlib.sha256).hexdigest()}"


def label_of(secret: bytes, token: str) -> str | None:
    """Label that a bearer token was made for, or None when the token is not genuine."""
    label, _, _ = token.rpartition(".")
    return label if label and hmac.compare_digest(token_for(secret, label).encode(), token.encode()) else None
