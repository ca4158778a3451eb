"""JudgeConfig: everything a router and its judge are told, frozen, in one JSON file."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from bench.errors import ConfigError
from bench.evaluation import LONGEST_S, USUAL, USUAL_TIMEOUT_S, Plan, parse_plan
from bench.judge.schemas import ADHOC, InputMode, JudgeTool, Preset, SetupRecord
from bench.judge.search.config import SearchConfig
from bench.measure.protocols import PROTOCOLS, ProtocolRole
from bench.wording import read_model

# What a setup's agents have where `tools` does not name the setup.
USUAL_TOOLS = (JudgeTool.SCORE, JudgeTool.PROFILE)
Port = Annotated[int, Field(ge=1, le=65535)]


def _stamp_of(role: ProtocolRole, stamp: str) -> str:
    known = [protocol.stamp for protocol in PROTOCOLS.values() if protocol.role is role]
    if stamp not in known:
        raise ValueError(f"'{stamp}' is no {role} protocol; those are {', '.join(known)}")
    return stamp


def tools_text(text: str) -> str:
    """`text`, if it is a plan of tools; raises ValueError otherwise."""
    try:
        parse_plan(text, LONGEST_S)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return text


EvaluationTools = Annotated[str, AfterValidator(tools_text)]
FinalProtocol = Annotated[str, AfterValidator(partial(_stamp_of, ProtocolRole.FINAL))]
PreviewProtocol = Annotated[str, AfterValidator(partial(_stamp_of, ProtocolRole.PREVIEW))]


class JudgeConfig(BaseModel):
    """Settings of one judge rank."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rank: Annotated[int, Field(ge=0, description="This judge's number in the job.")] = 0
    ranks: Annotated[int, Field(ge=1, description="How many ranks the job has.")] = 1
    run_id: Annotated[str, Field(description="Job id on every row; `adhoc` delivers nothing.")] = ADHOC
    router_host: Annotated[str, Field(description="Address that agents use.")] = "127.0.0.1"
    router_port: Annotated[Port, Field(description="Port of the router.")] = 8800
    judge_port: Annotated[Port, Field(description="Port of the judge behind it, on loopback.")] = 8801
    shard: Annotated[Path, Field(description="SQLite file of this rank.")]
    peer_shards: Annotated[
        dict[int, Path], Field(description="Shards of the job's other ranks, read when one of them is lost.")
    ] = {}
    log_dir: Annotated[Path, Field(description="Folder of router and judge logs.")]
    shared_dir: Annotated[Path | None, Field(description="Folder that `source_file` must lie in.")] = None
    cache_dir: Annotated[Path, Field(description="Built helpers, denominators and oracles, by content.")]
    secret_file: Annotated[
        Path | None,
        Field(description="Job secret for tokens and seeds; none makes an open judge (loopback only)."),
    ] = None
    setups: Annotated[dict[str, SetupRecord], Field(description="Setups this job serves, by name.")] = {}
    tools: Annotated[
        dict[str, tuple[JudgeTool, ...]],
        Field(description="Of score, profile and search, what a setup's agents have, by setup; else score, profile."),
    ] = {}
    problems: Annotated[
        tuple[str, ...],
        Field(description="Kernel of each of the job's problems, by global index: a token is good for that one."),
    ] = ()
    input_mode: Annotated[InputMode, Field(description="What a submission may be.")] = InputMode.SOURCE
    preset: Annotated[Preset, Field(description="Preset of an open judge; a setup names its own.")] = Preset.XL
    final_protocol: Annotated[FinalProtocol, Field(description="Protocol of `/submit`.")] = "mw4x5"
    preview_protocol: Annotated[PreviewProtocol, Field(description="Protocol of `/score`.")] = "mw2x5"
    failed_submit_step_s: Annotated[
        float,
        Field(ge=0, le=600, description="A failed `/submit` is answered after a multiple of this many seconds."),
    ] = 10
    evaluation: Annotated[
        EvaluationTools,
        Field(description="Tools that look at what `/submit` is about to credit: `name[:policy[:seconds]]` each."),
    ] = USUAL
    evaluation_timeout_s: Annotated[
        int, Field(ge=1, le=LONGEST_S, description="Seconds that all tools have together for one submission.")
    ] = USUAL_TIMEOUT_S
    allow_sandbox: Annotated[str, Field(description="Weakest sandbox level to serve with.")] = "user"
    device: Annotated[
        Literal["cpu", "cuda", "hip"],
        Field(description="Device that grades: this CPU, or the first GPU of NVIDIA or AMD that the judge may see."),
    ] = "cpu"
    timing_cores: Annotated[tuple[int, ...] | None, Field(description="Cores of timed code; none: planned.")] = None
    clock_core: Annotated[int | None, Field(description="Core of the judge's clock; none: planned.")] = None
    warm_up: Annotated[
        bool,
        Field(
            description="Build denominators of this rank's share of the kernels, and race them, while nothing waits."
        ),
    ] = True
    queue_limit: Annotated[int, Field(ge=1, description="Waiting requests beyond which 429 is answered.")] = 256
    max_body_bytes: Annotated[int, Field(ge=1024, description="Largest request body, bytes.")] = 8 << 20
    search: Annotated[SearchConfig, Field(description="Web search, where the judge's environment holds its key.")] = (
        SearchConfig()
    )

    @model_validator(mode="after")
    def _cores_together(self) -> Self:
        if (self.timing_cores is None) != (self.clock_core is None):
            raise ValueError("give timing_cores and clock_core both, or neither")
        if self.timing_cores is not None and (not self.timing_cores or self.clock_core in self.timing_cores):
            raise ValueError("timing_cores needs at least one core, and clock_core another one")
        return self

    @model_validator(mode="after")
    def _tools_have_time(self) -> Self:
        try:
            _ = self.plan
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def plan(self) -> Plan:
        """The evaluation tools of this judge."""
        return parse_plan(self.evaluation, self.evaluation_timeout_s)

    @property
    def to_warm(self) -> tuple[str, ...]:
        """This rank's share of the job's kernels, which it builds ahead."""
        return tuple(dict.fromkeys(self.problems))[self.rank :: self.ranks] if self.warm_up else ()

    def tools_of(self, setup: str) -> tuple[JudgeTool, ...]:
        """What the agents of a setup may ask for beside the grade that counts."""
        return self.tools.get(setup, USUAL_TOOLS)

    @classmethod
    def read(cls, path: Path) -> "JudgeConfig":
        """Load from a JSON file; raises ConfigError naming the file and the first wrong key."""
        return read_model(path, cls, "docs/reference/judge-config.md lists the keys")
