"""Every KEY that a job understands: its type, unit, default, role and meaning; unknown keys are errors."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticUndefined

from bench.config import FinalProtocol, PreviewProtocol
from bench.errors import ConfigError
from bench.judge.schemas import InputMode, Language, Preset, SetupRecord, SubmissionMode
from bench.places import RUN_ROOT
from bench.wording import first_fault
from cluster.study.env_files import as_text, read_env

Role = Literal["setup", "job", "inference", "agent", "judge"]
Start = Literal["none", "numpy", "c"]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Key:
    """What a reader needs to know of a KEY; keys of role `setup` may differ between the setups of a wave."""

    role: Role
    meaning: str
    unit: str = ""


class JobSettings(BaseModel):
    """One env file, typed and frozen. A field's KEY is its name in capitals."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=str.upper, populate_by_name=True, protected_namespaces=()
    )

    setup: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*$"), Key("setup", "Name of the setup, on every row.")]
    study: Annotated[str, Key("setup", "Study that the setup is a cell of.")] = ""
    experiment: Annotated[str, Key("setup", "Experiment: what all setups of the study share.")] = ""
    hardware: Annotated[str, Key("setup", "Hardware that grades are for.")] = ""
    model: Annotated[str, Key("setup", "Model that drives the agent.")] = ""
    language: Annotated[Language, Key("setup", "Language that submissions are written in.")] = Language.C
    treatment: Annotated[str, Key("setup", "What this setup changes in what the agent gets.")] = "none"
    harness: Annotated[str, Key("setup", "Program that drives the model as an agent.")] = "claude_code"
    temperature: Annotated[float | None, Key("setup", "Sampling temperature; unset: the model's own.")] = None
    effort: Annotated[str | None, Key("setup", "Reasoning effort; unset: the model's own.")] = None
    preset: Annotated[Preset, Key("setup", "Preset that grades are timed at.")] = Preset.XL
    agent_submission_mode: Annotated[
        SubmissionMode,
        Key("setup", "single: the first submit ends the episode; multi: the last one counts; blind."),
    ] = SubmissionMode.SINGLE
    problems_file: Annotated[
        Path | None, Key("setup", "JSONL file of problems; wins over KERNELS; relative to the env file.")
    ] = None
    kernels: Annotated[str, Key("setup", "Comma list of kernels, suites or tags, each one problem of slot 0.")] = ""
    agent_start: Annotated[
        Start,
        Key("setup", "Start material of a problem made from KERNELS: none, numpy (the reference), c (both)."),
    ] = "c"
    agent_script: Annotated[
        Path | None, Key("setup", "JSON plan that the scripted harness replays; relative to the env file.")
    ] = None

    run_root: Annotated[
        Path,
        Key("job", "Folder of run directories; relative to the checkout, or to where you call outside of it."),
    ] = RUN_ROOT
    cache_dir: Annotated[
        Path | None,
        Key("judge", "Built helpers, denominators and oracles, by content; unset: where every command has them."),
    ] = None
    container_runtime: Annotated[Literal["none"], Key("job", "How roles are containerised; none: on the host.")] = (
        "none"
    )
    job_wall_seconds: Annotated[Count, Key("job", "Wall clock of a local job; 0: no limit.", "s")] = 0
    step_stop_grace_seconds: Annotated[
        Positive, Key("job", "How long a step may take to end after TERM before it is killed.", "s")
    ] = 120
    agent_stall_abort_seconds: Annotated[
        Count,
        Key("job", "The job is torn down after so long without an episode or grade event; 0: never.", "s"),
    ] = 3600

    inference_nodes: Annotated[Count, Key("inference", "Nodes that serve the model.")] = 2

    agent_nodes: Annotated[Positive, Key("agent", "Nodes that run agents.")] = 1
    agents_per_node: Annotated[Positive, Key("agent", "Concurrent workers on an agent node.")] = 4
    agent_timeout_seconds: Annotated[Positive, Key("agent", "Wall clock of an episode, all attempts.", "s")] = 72000
    agent_max_tokens: Annotated[Positive, Key("agent", "Token cap of an episode, all attempts.", "tokens")] = (
        120_000_000
    )
    agent_crash_attempts: Annotated[Positive, Key("agent", "Launches of an episode at most.")] = 3
    agent_start_stagger_seconds: Annotated[
        float, Field(ge=0), Key("agent", "Pause between the first starts of a node's workers.", "s")
    ] = 1.0
    agent_failover: Annotated[bool, Key("agent", "Turn to a surviving judge when the home rank is lost.")] = True

    judge_nodes: Annotated[Positive, Key("judge", "Nodes that grade.")] = 1
    judges_per_node: Annotated[Positive | None, Key("judge", "Judge slots of a node; unset: one a socket.")] = None
    judge_port: Annotated[
        int | None,
        Field(ge=1, le=65534),
        Key("judge", "First port of a judge node; unset: 8800, or a free block where nodes are shared."),
    ] = None
    judge_input_mode: Annotated[InputMode, Key("judge", "What a submission may be.")] = InputMode.SOURCE
    judge_ready_seconds: Annotated[Positive, Key("judge", "How long a judge may take to become healthy.", "s")] = 600
    judge_drain_reserve_seconds: Annotated[
        Positive, Key("judge", "Part of the allocation kept for merge and extraction; bounds the drain.", "s")
    ] = 900
    final_protocol: Annotated[FinalProtocol, Key("judge", "Protocol of /submit.")] = "mw4x5"
    preview_protocol: Annotated[PreviewProtocol, Key("judge", "Protocol of /score.")] = "mw2x5"
    sandbox_allow: Annotated[
        Literal["full", "user", "limits"], Key("judge", "Weakest sandbox level that a judge may serve with.")
    ] = "user"

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.problems_file is None and not self.kernels.strip():
            raise ValueError("set PROBLEMS_FILE or KERNELS; with neither the job has nothing to do")
        if self.harness == "scripted" and self.agent_script is None:
            raise ValueError("HARNESS=scripted replays a plan; set AGENT_SCRIPT to its JSON file")
        if 0 < self.job_wall_seconds <= self.reserve_s:
            raise ValueError(
                f"JOB_WALL_SECONDS={self.job_wall_seconds} leaves agents no time: {self.reserve_s} s go "
                "to STEP_STOP_GRACE_SECONDS and JUDGE_DRAIN_RESERVE_SECONDS; lower them or raise it"
            )
        return self

    @property
    def reserve_s(self) -> int:
        """Seconds at the end of the allocation that stopping, merge and extraction need."""
        return self.step_stop_grace_seconds + self.judge_drain_reserve_seconds

    @property
    def nodes(self) -> int:
        """Nodes that the roles need together."""
        return self.inference_nodes + self.agent_nodes + self.judge_nodes

    @property
    def record(self) -> SetupRecord:
        """The setup's identity as judges and the results database keep it."""
        shared = {name: getattr(self, name) for name in SetupRecord.model_fields if name in type(self).model_fields}
        return SetupRecord(**shared, submission_mode=self.agent_submission_mode)

    @property
    def values(self) -> dict[str, object]:
        """KEY → value, as `render_env` takes it."""
        return {name.upper(): getattr(self, name) for name in type(self).model_fields}

    @property
    def job_values(self) -> dict[str, Any]:
        """KEY → value of what all setups of a wave share."""
        return {key: value for key, value in self.values.items() if _keys()[key.lower()].role != "setup"}


@dataclass(frozen=True)
class SettingRow:
    """One row of the settings reference."""

    key: str
    role: Role
    type: str
    unit: str
    default: str
    meaning: str


def reference_rows() -> list[SettingRow]:
    """Every KEY in the order of its declaration, for the settings reference."""
    rows = []
    whole = JobSettings.model_json_schema(by_alias=False)
    for name, key in _keys().items():
        default = JobSettings.model_fields[name].default
        text = "required" if default is PydanticUndefined else "" if default is None else as_text(default)
        rows.append(
            SettingRow(
                name.upper(),
                key.role,
                _type(whole["properties"][name], whole["$defs"]),
                key.unit,
                text,
                key.meaning,
            )
        )
    return rows


def _type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """A JSON schema of one value in few words: `integer`, `one of none, numpy, c`."""
    if "anyOf" in schema:
        return next(_type(one, definitions) for one in schema["anyOf"] if one.get("type") != "null")
    if "$ref" in schema:
        return _type(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    return "path" if schema.get("format") == "path" else str(schema["type"])


def _keys() -> dict[str, Key]:
    """Field name → its Key."""
    return {
        name: next(item for item in field.metadata if isinstance(item, Key))
        for name, field in JobSettings.model_fields.items()
    }


def read_settings(path: Path, overrides: Mapping[str, str] = {}) -> JobSettings:
    """The settings in an env file; `overrides` (KEY → text) win over the file.

    Raises:
        ConfigError: naming file, line and key of the first fault.
    """
    values, lines = read_env(path)
    try:
        return _absolute(JobSettings.model_validate({**values, **overrides}), path.parent)
    except ValidationError as error:
        key, message = explain(error)
        where = f"{path}:{lines[key]}" if key in lines and key not in overrides else str(path)
        raise ConfigError(f"{where}: {message}") from error


def explain(error: ValidationError) -> tuple[str, str]:
    """First fault of settings: its KEY (or nothing), and what is wrong with the meaning of the key."""
    given = error.errors(include_url=False)[0]
    fault = first_fault(error)
    key = str(given["loc"][0]) if given["loc"] else ""
    if not key:
        return key, fault.message
    if fault.type == "extra_forbidden":
        known = [name.upper() for name in JobSettings.model_fields]
        near = difflib.get_close_matches(key.upper(), known, n=1, cutoff=0)[0]
        return key, f"unknown key {key}; the nearest known key is {near}"
    shown = "" if fault.type == "missing" else f", not {given['input']!r}"
    return key, f"{key}: {fault.message}{shown}. {_keys()[key.lower()].meaning}"


def _absolute(settings: JobSettings, folder: Path) -> JobSettings:
    """The same settings with the setup's own files resolved against the env file's folder."""
    paths = {name: getattr(settings, name) for name in ("problems_file", "agent_script")}
    return settings.model_copy(update={name: (folder / path).resolve() for name, path in paths.items() if path})
