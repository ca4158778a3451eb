"""What the worker is told to do (orders) and what it answers (reports): closed records that travel as JSON."""

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from bench.judge.schemas import (
    Answer,
    Closed,
    Counters,
    Device,
    KernelUse,
    Kind,
    Language,
    Outcome,
    Preset,
    ProfileAnswer,
    ProfileTool,
)
from bench.verdict import BY_MAKE


class SubmissionOrder(Closed):
    """A submission, and the seed (hex) of the inputs that it is to be called on.

    A `binding` is a Python module that may bring native code of its own: it is loaded outside the system call filter.
    """

    kernel: str
    language: Language
    source: str | None = None
    library: str | None = None
    binding: bool = False
    workspace_bytes: int = 0
    seed: Annotated[str, Field(pattern=r"^([0-9a-f]{2})+$")]

    @model_validator(mode="after")
    def _has_one_delivery(self) -> Self:
        if (self.source is None) == (self.library is None):
            raise ValueError("an order holds either a source or a library")
        return self


class GradeOrder(SubmissionOrder):
    """One grade to be made. `disclose` lets values leave in `detail`."""

    grade_id: str
    kind: Kind
    preset: Preset = Preset.XL
    protocol: str
    disclose: bool = False


class ProfileOrder(SubmissionOrder):
    """One profile to be made, on inputs that no grade shares."""

    tool: ProfileTool


class WarmOrder(Closed):
    """A kernel whose denominators are to be built ahead, for submissions in these languages at these presets."""

    kernel: str
    languages: tuple[Language, ...] = ()
    presets: tuple[Preset, ...] = ()


class Cell(Closed):
    """One timed input: its sizes and n paired times a side (ns), in the order they were paired.

    `ratio` is the protocol's r (1 where the test does not credit), `raw` the ratio of medians,
    `p` the test's p-value, `repeated` how many pairs were measured again because the clock was disturbed,
    `order` one letter a pair: c when the candidate ran first, d when the denominator did.
    """

    index: int
    sizes: dict[str, int]
    ratio: float
    raw: float
    p: float
    credited: bool
    candidate_ns: tuple[int, ...]
    denominator_ns: tuple[int, ...]
    order: str
    repeated: int = 0


class SourceFile(Closed):
    """One text that defines a grade, by role: submission, manifest, reference, baseline:<file>, toolchains."""

    role: str
    name: str
    content: bytes

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_bytes="base64", val_json_bytes="base64")


class GradeReport(Closed):
    """The whole finding of one grade.

    `property` names what failed (values, memory, build, ...) and `detail` describes it as the answer may show
    it; `log` is the build's or the run's output. `provenance` holds what a reader needs to trust or repeat the
    number (build commands, compiler, sandbox, cores, clock figures, host). `stages_ms` is where the time went
    and `overhead_ms` the judge's own part of it.
    """

    grade_id: str
    outcome: Outcome
    property: str | None = None
    detail: dict[str, Any] = Field(default_factory=dict)
    log: str = ""
    score: float | None = None
    raw_ratio: float | None = None
    interval: tuple[float, float] | None = None
    faster: bool | None = None
    suspect: str | None = None
    protocol: str
    preset: Preset
    cells: tuple[Cell, ...] = ()
    denominator: str | None = None
    task_hash: str | None = None
    policy_stamp: str | None = None
    seed_commitment: str
    sandbox: str
    device: Device = Device.CPU
    provenance: dict[str, Any] = Field(default_factory=dict)
    sources: tuple[SourceFile, ...] = ()
    stages_ms: dict[str, float] = Field(default_factory=dict)
    overhead_ms: float = 0.0

    def met_hidden_inputs(self) -> bool:
        """Whether the submission failed on inputs that nobody may know."""
        never_ran = self.outcome is Outcome.POLICY and self.property in BY_MAKE
        return not never_ran and self.outcome not in (Outcome.SOLVED, Outcome.BUILD_FAILED, Outcome.JUDGE_FAULT)

    def answer(self, kernel: str, rank: int, disclose: bool) -> Answer:
        """What the client gets: with `disclose` all that was found, else only the property that failed.

        What tells of no hidden input is always in it: why a gate refused it, the log of a failed build or of a judge
        that failed.
        """
        fields = self.model_dump(include=set(Answer.model_fields) - {"kernel", "rank", "detail"})
        detail: dict[str, Any] = {"property": self.property}
        if disclose or self.outcome in (Outcome.BUILD_FAILED, Outcome.JUDGE_FAULT):
            detail["log"] = self.log
        if disclose or (self.outcome is Outcome.POLICY and self.property in BY_MAKE):
            detail = {**self.detail, **detail}
        if self.device is Device.EMULATED:
            detail["device"] = self.device
        return Answer(kernel=kernel, rank=rank, detail=detail, **fields)


class ProfileReport(Closed):
    """The finding of one profile; `property`, `detail` and `log` are as in a GradeReport."""

    tool: ProfileTool
    outcome: Outcome
    property: str | None = None
    detail: dict[str, Any] = Field(default_factory=dict)
    log: str = ""
    report: str = ""
    counters: Counters | None = None
    kernels: tuple[KernelUse, ...] = ()

    def answer(self, kernel: str, rank: int) -> ProfileAnswer:
        """What the client gets: all that was found, because no grade uses these inputs."""
        detail = {**self.detail, "property": self.property, "log": self.log}
        return ProfileAnswer(
            kernel=kernel,
            rank=rank,
            tool=self.tool,
            outcome=self.outcome,
            report=self.report,
            counters=self.counters,
            kernels=self.kernels,
            detail=detail,
        )


class Lacking(Closed):
    """Nothing was profiled, because this machine lacks something; `why` says what, and what to install."""

    why: str
