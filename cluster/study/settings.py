"""Every KEY that a job understands: its type, unit, default, role and meaning; unknown keys are errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self, get_args

from pydantic import ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticUndefined

from agent.budget import Budget
from agent.tools.offered import Tool
from bench.errors import ConfigError, UsageError
from bench.evaluation import parse_plan
from bench.judge.schemas import SetupRecord
from bench.judge.search.config import KEY_VARIABLE
from bench.wording import did_you_mean, first_fault
from cluster.study.env_files import as_text, read_env
from cluster.study.keys import (
    AgentKeys,
    InferenceKeys,
    JobKeys,
    JudgeKeys,
    Key,
    Role,
    SearchKeys,
    SetupKeys,
    TreatmentKeys,
)

# Keys of these roles may differ between the setups of one job.
OF_A_SETUP: tuple[Role, ...] = ("setup", "treatment")


class JobSettings(SetupKeys, TreatmentKeys, JobKeys, InferenceKeys, AgentKeys, JudgeKeys, SearchKeys):
    """One env file, typed and frozen. A field's KEY is its name in capitals; `keys.py` declares them by role."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=str.upper, populate_by_name=True, protected_namespaces=()
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.problems_file is None and not self.kernels.strip() and not self.serves_only:
            raise ValueError("neither PROBLEMS_FILE nor KERNELS is set, so the job has nothing to do; set one of them")
        if self.agent_script_rule and self.harness != "scripted":
            raise ValueError(f"AGENT_SCRIPT_RULE is for HARNESS=scripted, not {self.harness}; set that, or take it out")
        if self.harness == "scripted" and (self.agent_script is None) == (self.agent_script_rule is None):
            raise ValueError("HARNESS=scripted replays one plan: set AGENT_SCRIPT (a JSON file) or AGENT_SCRIPT_RULE")
        if 0 < self.job_wall_seconds <= self.reserve_s:
            raise ValueError(
                f"JOB_WALL_SECONDS={self.job_wall_seconds} leaves agents no time: {self.reserve_s} s go "
                "to STEP_STOP_GRACE_SECONDS and JUDGE_DRAIN_RESERVE_SECONDS; lower them or raise it"
            )
        return self

    @model_validator(mode="after")
    def _tools_have_time(self) -> Self:
        try:
            parse_plan(self.judge_evaluation, self.judge_evaluation_timeout_seconds)
        except ConfigError as error:
            raise ValueError(f"JUDGE_EVALUATION: {error}") from None
        return self

    @model_validator(mode="after")
    def _agents_have_judges(self) -> Self:
        if bool(self.agent_nodes) != bool(self.judge_nodes):
            raise ValueError(
                f"AGENT_NODES={self.agent_nodes} and JUDGE_NODES={self.judge_nodes}: agents and judges need each "
                "other; give both nodes, or neither in a job that only serves a model"
            )
        if self.serves_only and not self.inference_nodes:
            raise ValueError(
                "AGENT_NODES, JUDGE_NODES and INFERENCE_NODES are all 0: the job does nothing; raise one of them"
            )
        return self

    @model_validator(mode="after")
    def _gateway_is_named(self) -> Self:
        if (self.agent_llm_mode == "gateway") != (self.agent_gateway_url is not None):
            raise ValueError("AGENT_LLM_MODE=gateway and AGENT_GATEWAY_URL go together; give both or neither")
        return self

    @model_validator(mode="after")
    def _one_source_of_tokens(self) -> Self:
        if self.inference_source != "service":
            return self
        needed = ("inference_service_base_url", "inference_service_model", "inference_service_key_env")
        if missing := [name.upper() for name in needed if not getattr(self, name)]:
            raise ValueError(f"INFERENCE_SOURCE=service needs {', '.join(missing)}; set what the provider documents")
        if self.inference_nodes:
            raise ValueError(
                f"INFERENCE_SOURCE=service serves no model here, and INFERENCE_NODES={self.inference_nodes} asks "
                "for nodes that do; set INFERENCE_NODES=0"
            )
        return self

    @property
    def budget(self) -> Budget:
        """What an episode may use, where its problem does not say otherwise."""
        seconds, tokens = self.agent_timeout_seconds, self.agent_max_tokens
        return Budget(seconds, tokens, self.agent_budget_mode, self.agent_max_iterations)

    @property
    def grades_on_gpu(self) -> bool:
        """Whether a GPU grades, and no CPU."""
        return self.device != "cpu"

    @property
    def serves_only(self) -> bool:
        """Whether the job has an engine alone, for clients elsewhere."""
        return self.agent_nodes == self.judge_nodes == 0

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """Names of the variables that hold the job's secrets, which travel by name alone."""
        service = (self.inference_service_key_env,) if self.inference_service_key_env else ()
        return (*(key for key, about in keys().items() if about.secret), *service)

    @property
    def needed_secrets(self) -> dict[str, str]:
        """Variable → what it holds, of the secrets without which the setup cannot work."""
        service = self.inference_service_key_env if self.inference_source == "service" else None
        hosted = {service: "the key of the hosted model"} if service else {}
        searches = Tool.SEARCH in self.agent_tools_on.split(",")
        return hosted | ({KEY_VARIABLE: f"the key of the tool '{Tool.SEARCH}'"} if searches else {})

    @property
    def trains_on_traffic(self) -> bool:
        """Whether the provider makes training data of every kernel and transcript."""
        return self.inference_source == "service" and self.inference_service_tier == "contributor"

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
        return {key: value for key, value in self.values.items() if keys()[key].role not in OF_A_SETUP}


@dataclass(frozen=True)
class SettingRow:
    """One row of the settings reference."""

    key: str
    role: Role
    type: str
    unit: str
    default: str
    meaning: str
    secret: bool


def reference_rows() -> list[SettingRow]:
    """Every KEY, the roles in the order of `Role`, for the settings reference."""
    whole = JobSettings.model_json_schema(by_alias=False)
    rows = [
        SettingRow(
            key,
            about.role,
            "secret" if about.secret else _type(whole["properties"][key.lower()], whole["$defs"]),
            about.unit,
            _default(key),
            about.meaning,
            about.secret,
        )
        for key, about in keys().items()
    ]
    return sorted(rows, key=lambda row: get_args(Role).index(row.role))


def _default(key: str) -> str:
    default = JobSettings.model_fields[key.lower()].default
    return "required" if default is PydanticUndefined else "" if default is None else as_text(default)


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


@cache
def keys() -> Mapping[str, Key]:
    """KEY → what is known of it."""
    return {
        name.upper(): next(item for item in field.metadata if isinstance(item, Key))
        for name, field in JobSettings.model_fields.items()
    }


def known_key(key: str) -> Key:
    """What is known of a KEY.

    Raises:
        UsageError: there is no such KEY; the nearest is named.
    """
    if key in keys():
        return keys()[key]
    raise UsageError(f"unknown key {key}; {did_you_mean(key.upper(), keys(), '`kcourt settings list` shows all keys')}")


def read_settings(path: Path, overrides: Mapping[str, str] = {}) -> JobSettings:
    """The settings in an env file; `overrides` (KEY → text) win over the file.

    Raises:
        ConfigError: naming file, line and key of the first fault.
    """
    values, lines = read_env(path)
    in_file = lines.keys() - overrides.keys()
    settings = checked({**values, **overrides}, lambda key: f"{path}:{lines[key]}" if key in in_file else str(path))
    return _absolute(settings, path.parent)


def checked(values: Mapping[str, str], where: Callable[[str], str]) -> JobSettings:
    """The settings that KEYs and their texts make; `where` says where a KEY was set, or, for "", they all.

    Raises:
        ConfigError: a KEY is unknown, a value is wrong, or values do not go together.
    """
    for key in values:
        try:
            known_key(key)
        except UsageError as error:
            raise ConfigError(f"{where(key)}: {error}") from error
    try:
        return JobSettings.model_validate(values)
    except ValidationError as error:
        key, message = _explain(error)
        raise ConfigError(f"{where(key)}: {message}") from error


def _explain(error: ValidationError) -> tuple[str, str]:
    """First fault of settings: its KEY (or nothing), and what is wrong with the meaning of the key."""
    given = error.errors(include_url=False)[0]
    fault = first_fault(error)
    key = str(given["loc"][0]) if given["loc"] else ""
    if not key:
        return key, fault.message
    about = keys()[key]
    # A value of the wrong form may be a secret, pasted where its name belongs.
    hidden = about.secret or fault.type in ("missing", "string_pattern_mismatch")
    shown = "" if hidden else f", not {given['input']!r}"
    return key, f"{key}: {fault.message}{shown}. {about.meaning}"


def _absolute(settings: JobSettings, folder: Path) -> JobSettings:
    """The same settings with the setup's own files resolved against the env file's folder."""
    paths = {name: getattr(settings, name) for name in ("problems_file", "agent_script")}
    return settings.model_copy(update={name: (folder / path).resolve() for name, path in paths.items() if path})
