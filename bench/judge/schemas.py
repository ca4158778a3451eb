"""Everything that travels between an agent, the router and a judge: requests, answers, records, closed sets of words.

Needs pydantic only, because the agent container has nothing else.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from bench.errors import ConfigError

# How the file of a language ends. Triton is Python, too, and told from it by the end of the name.
SUFFIXES = {
    "c": ".c",
    "cpp": ".cpp",
    "fortran": ".f90",
    "python": ".py",
    "hip": ".hip",
    "cuda": ".cu",
    "triton": "_triton.py",
}


class Language(StrEnum):
    """A language that submissions are written in."""

    C = "c"
    CPP = "cpp"
    FORTRAN = "fortran"
    PYTHON = "python"
    HIP = "hip"
    CUDA = "cuda"
    TRITON = "triton"

    @property
    def suffix(self) -> str:
        """What the name of a file ends in, behind the kernel's name: `.c`, `_triton.py`."""
        return SUFFIXES[self.value]

    @classmethod
    def of(cls, path: PurePath | str) -> Self:
        """The language of a file, by the longest suffix that fits; raises ValueError when it is no language's."""
        name = PurePath(path).name
        for language in sorted(cls, key=lambda one: len(one.suffix), reverse=True):
            if name.endswith(language.suffix) and name != language.suffix:
                return language
        known = ", ".join(f"{language.suffix} ({language})" for language in cls)
        raise ValueError(f"no language has the suffix '{PurePath(path).suffix}'; known: {known}")


# Languages whose submissions are called on device pointers; the others run on a CPU.
GPU_LANGUAGES = frozenset({Language.HIP, Language.CUDA, Language.TRITON})


class Device(StrEnum):
    """What a grade is made on: a CPU, a GPU of AMD (`hip`) or of NVIDIA (`cuda`).

    `emulated` is a GPU played by a CPU: it tells what is right, and times nothing.
    """

    CPU = "cpu"
    HIP = "hip"
    CUDA = "cuda"
    EMULATED = "emulated"

    @property
    def languages(self) -> tuple[Language, ...]:
        """What it grades."""
        if self is Device.CUDA:
            return (Language.HIP, Language.CUDA, Language.TRITON)
        if self is Device.HIP:
            return (Language.HIP, Language.TRITON)
        if self is Device.EMULATED:
            return (Language.HIP,)
        return tuple(language for language in Language if language not in GPU_LANGUAGES)


class GpuOrCpu(StrEnum):
    """The devices that can be asked for."""

    CPU = "cpu"
    CUDA = "cuda"
    HIP = "hip"


# What grades where there is no GPU.
WITHOUT_A_GPU = (Device.CPU, Device.EMULATED)


def graded_on(device: Device) -> tuple[Device, ...]:
    """What a judge of this device grades on: that GPU; without one this CPU, and the GPU that it plays."""
    return WITHOUT_A_GPU if device in WITHOUT_A_GPU else (device,)


def not_graded(language: Language, devices: Iterable[Device] = WITHOUT_A_GPU) -> str:
    """Why none of these devices grades this language; an empty text when one does."""
    devices = tuple(devices)
    if any(language in device.languages for device in devices):
        return ""
    if language not in GPU_LANGUAGES:
        takes = ", ".join(language for device in devices for language in device.languages)
        return f"{language} is not graded on {' and '.join(devices)}, which takes {takes}; grade it on a CPU"
    return (
        f"{language} needs a GPU, and is not graded on {' and '.join(devices)}; see with `kcourt build` whether it "
        "compiles, or grade it on a machine with a GPU, with `--device cuda`"
    )


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


class ProfileTool(StrEnum):
    """A profiler that `/profile` can run."""

    CALLGRIND = "callgrind"
    PERF = "perf"
    ISA = "isa"
    ROCPROFV3 = "rocprofv3"
    ROCPROF_COMPUTE = "rocprof-compute"
    NCU = "ncu"

    @property
    def languages(self) -> tuple[Language, ...]:
        """What it looks into."""
        if self in (ProfileTool.CALLGRIND, ProfileTool.PERF):
            return (Language.C, Language.CPP, Language.FORTRAN)
        return Device.CUDA.languages if self is ProfileTool.NCU else (Language.HIP,)


def not_profiled(language: Language, tool: ProfileTool | None = None) -> str:
    """Why a profiler, or each of them, does not take this language; an empty text when it does."""
    tools = [tool] if tool else list(ProfileTool)
    if any(language in one.languages for one in tools):
        return ""
    known = ", ".join(dict.fromkeys(name for one in tools for name in one.languages))
    return f"{language} is not profiled{f' by {tool}' if tool else ''}, only {known}; time it instead"


class JudgeTool(StrEnum):
    """What a judge does for agents beside the grade that counts; a treatment may withhold or add it."""

    SCORE = "score"
    PROFILE = "profile"
    SEARCH = "search"


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


class Header(StrEnum):
    """What travels beside a request."""

    ATTEMPT = "Kcourt-Attempt"
    TOKENS = "Kcourt-Tokens"
    KIND = "Kcourt-Kind"
    OF_GRADE = "Kcourt-Of-Grade"
    EPISODE = "Kcourt-Episode"
    HOME_RANK = "Kcourt-Home-Rank"
    IDEMPOTENCY = "Idempotency-Key"
    REQUEST_ID = "X-Request-Id"


DRIVER_LABEL = "driver"
ADHOC = "adhoc"


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="null")


class GradeRequest(Closed):
    """Body of `/score` and `/submit`. Exactly one delivery.

    With `workspace_bytes` above 0 the entry point gets two more arguments, a writable buffer of that many bytes (not
    cleared) and its size: `void *workspace, int64_t workspace_bytes`; in Python one array of bytes.
    """

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


class Queued(Closed):
    """What a grade that is still being made is answered with (202); its answer will be under `/grades/{grade_id}`."""

    grade_id: str
    status: Literal["queued"] = "queued"


class ProfileRequest(GradeRequest):
    """Body of `/profile`: that of `/score`, and which profiler is to run."""

    tool: ProfileTool


class FunctionCount(Closed):
    """What was counted in one function, called functions not included; `object` is the file that holds its code."""

    function: str
    object: str
    count: int


class LineCount(Closed):
    """What was counted at one line of the submission, and its text."""

    line: int
    count: int
    source: str


class Counters(Closed):
    """What a profiler counted, most first: `unit` is instructions (of one call) or samples (of `calls` calls).

    `functions` and `lines` are cut after the largest hundreds; `total` counts all. `sizes` are those of the preset.
    """

    unit: str
    total: int
    calls: int
    preset: Preset
    sizes: dict[str, int]
    functions: tuple[FunctionCount, ...]
    lines: tuple[LineCount, ...]


class KernelUse(Closed):
    """What one kernel takes of its GPU.

    `vgpr`, `agpr` and `sgpr` are registers (of a lane, of a lane's accumulators, of a wave; NVIDIA's compiler tells the
    first alone), `spills` registers that did not fit and go to memory, `lds` and `scratch` bytes (of a block, of a
    lane), `occupancy` the waves that share a SIMD, `matrix` instructions for its matrix units, `wave` lanes of a wave.
    """

    name: str
    vgpr: int
    agpr: int = 0
    sgpr: int = 0
    spills: int = 0
    lds: int = 0
    scratch: int = 0
    occupancy: int | None = None
    matrix: int = 0
    wave: int


class ProfileAnswer(Closed):
    """What `/profile` returns. `outcome` is of the one call that was checked; unless solved there are no counters.

    `isa` calls nothing: solved means that it compiles, and `kernels` says what each takes.
    """

    kernel: str
    rank: int
    tool: ProfileTool
    outcome: Outcome
    report: str = ""
    counters: Counters | None = None
    kernels: tuple[KernelUse, ...] = ()
    detail: dict[str, Any] = {}


class SearchRequest(Closed):
    """Body of `/search`."""

    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class Source(Closed):
    """A page that a search found. `text` is an excerpt of it or, where it was not read (`unread` says why not), the
    provider's own.
    """

    title: str
    url: str
    text: str
    unread: str | None = None


class SearchAnswer(Closed):
    """What `/search` returns. `answer` sums the sources up by their numbers, from 1; null where no model did, and
    `note` says why not.
    """

    query: str
    answer: str | None = None
    model: str | None = None
    note: str | None = None
    sources: tuple[Source, ...] = ()


class HealthStatus(StrEnum):
    """Whether a judge grades: not yet, yes, or no with a reason."""

    STARTING = "starting"
    OK = "ok"
    UNFIT = "unfit"


class CalibrationBrief(Closed):
    """The last calibration of a judge's machine in short; bench/measure/calibration.py has it whole.

    `false_credit` is the share of A/A inputs that were credited, `spread` the 95th percentile of |S - 1|,
    `resolves` the smallest ratio that nine grades of ten show as faster.
    """

    made_at: str
    quick: bool
    empty_call_ns: float
    inputs: int
    false_credit: float
    above_chance: bool
    spread: float
    resolves: float
    memory_gb_per_s: float


class Health(Closed):
    """What `/health` returns. `self_grade` says how the judge's grades of its own references went, `warmed` for how
    many of its kernels it has built ahead what grades need (`3/12`; 0/0 where it does not).
    """

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
    warmed: str = "0/0"
    calibration: CalibrationBrief | None = None


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
    """`tokens.json`: how one episode went. Times in seconds; a null is "not reported", never zero.

    `dollars` is what the tokens cost by version `prices` of the price table. `resumed` counts sessions that went on,
    `*_calls` what the tools asked the judge, refusals included; `outcome` is that of what was handed in.
    """

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
    resumed: int | None = None
    turns: int | None = None
    tool_calls: int | None = None
    tokens_fresh: int | None = None
    tokens_cached: int | None = None
    tokens_output: int | None = None
    dollars: float | None = None
    prices: str | None = None
    score_calls: int | None = None
    submit_calls: int | None = None
    profile_calls: int | None = None
    search_calls: int | None = None
    outcome: Outcome | None = None
    wall_s: float
    api_s: float | None = None
    model: str | None = None
    harness: str
    harness_version: str
    started_at: str
    ended_at: str


# Nine digits: such numbers fit every database and language, and no job counts further.
_NUMBER = "[0-9]{1,9}"
_LABEL = re.compile(
    rf"(?P<setup>[A-Za-z0-9][\w.+-]*?)\.n(?P<node>{_NUMBER})\.p(?P<problem>{_NUMBER})\.w(?P<worker>{_NUMBER})"
    rf"(\.s(?P<slot>{_NUMBER}))?"
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
            form = "<setup>.n<node>.p<problem>.w<worker>[.s<slot>], numbers of at most 9 digits"
            raise ValueError(f"'{text[:200]}' is not an episode label ({form})")
        numbers = {name: int(found[name] or 0) for name in ("node", "problem", "worker", "slot")}
        return cls(setup=found["setup"], **numbers)


SECRET_BYTES = 32


def read_secret(path: Path) -> bytes:
    """The job secret in `path` (hex text), from which tokens and seeds derive.

    Raises:
        ConfigError: the file is missing or does not hold a secret.
    """
    try:
        secret = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise ConfigError(f"{path}: no job secret there ({error.strerror})") from error
    except ValueError as error:
        raise ConfigError(f"{path}: no job secret there (not hexadecimal text)") from error
    if len(secret) < SECRET_BYTES:
        raise ConfigError(f"{path}: a job secret has at least {SECRET_BYTES} bytes, this one has {len(secret)}")
    return secret


def token_for(secret: bytes, label: str) -> str:
    """Bearer token of an episode (or of the driver): `<label>.<hex HMAC-SHA256(job secret, label)>`."""
    return f"{label}.{hmac.new(secret, label.encode(), hashlib.sha256).hexdigest()}"


def label_of(secret: bytes, token: str) -> str | None:
    """Label that a bearer token was made for, or None when the token is not genuine."""
    label, _, _ = token.rpartition(".")
    return label if label and hmac.compare_digest(token_for(secret, label).encode(), token.encode()) else None
