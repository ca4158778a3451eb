"""Run configurations of AgentKernelArena, read as studies; what has no counterpart here is listed, never dropped."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from agent.harnesses import installed_harnesses
from bench.errors import ConfigError
from bench.judge.schemas import Language
from bench.start import Start
from bench.task import select
from bench.wording import did_you_mean
from cluster.study.first_use import as_yaml
from cluster.study.hardware import read_hardware
from cluster.study.identity import CONTROL
from cluster.study.places import experiments_root, layers_root
from cluster.study.setups import Setups, read_setups
from cluster.study.treatments import known_treatments
from cluster.study.yaml_files import read_yaml

# Their agents' names → our harnesses.
HARNESSES = {
    "claude_code": "claude_code",
    "codex": "codex",
    "cursor": "cursor",
    "geak_v3": "geak",
    "geak_v3_triton": "geak",
    "geak_v4": "geak",
    "mini_swe_triton": "mini_swe",
}
VALIDATOR = "task_validator"
# Kinds of tasks that ask for one kernel → what agents start from, and the language of what they write.
KINDS = {
    "hip2hip": (Start.HIP, Language.HIP),
    "cuda2hip": (Start.CUDA, Language.HIP),
    "torch2hip": (Start.TORCH, Language.HIP),
    "triton2triton": (Start.TRITON, Language.TRITON),
    "torch2triton": (Start.TORCH, Language.TRITON),
    "instruction2triton": (Start.NONE, Language.TRITON),
}
FOREIGN = {
    "torch2flydsl": "FlyDSL is no language here",
    "triton2flydsl": "FlyDSL is no language here",
    "flydsl2flydsl": "FlyDSL is no language here",
    "repository": "a kernel is one problem, never a whole repository",
}
# Settings of an agent → KEY of a study.
AGENT_KEYS = {
    "budget_mode": "AGENT_BUDGET_MODE",
    "max_iterations": "AGENT_MAX_ITERATIONS",
    "timeout_seconds": "AGENT_TIMEOUT_SECONDS",
}
# What a run configuration says that a study does not, and why.
ELSEWHERE = {
    "log_directory": "logs lie in the run directory of each job; RUN_ROOT says where those are",
    "workspace_directory_prefix": "an episode's folder is named by its setup, kernel and slot",
    "evaluation_tools": "which checks a grade goes through is the judge's affair, the same for every study",
}


class AgentPart(BaseModel):
    """`agent`: its template, and settings that win over the agent's own defaults."""

    model_config = ConfigDict(extra="allow", frozen=True)

    template: str
    model: str | None = None
    effort: str | None = None


class RunConfiguration(BaseModel):
    """A run configuration; keys that are unknown to us are kept, to be listed."""

    model_config = ConfigDict(extra="allow", frozen=True)

    agent: AgentPart
    tasks: Annotated[tuple[str, ...], Field(min_length=1)]
    target_gpu_model: str | None = None


@dataclass(frozen=True)
class _Chosen:
    """What task selectors come to: kernels by name (or `all`), the kinds that were named, what has no counterpart."""

    kernels: tuple[str, ...]
    kinds: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def languages(self) -> tuple[Language, ...]:
        return tuple(dict.fromkeys(KINDS[kind][1] for kind in self.kinds or KINDS))

    def start(self, language: Language | None) -> Start | None:
        """What the agents of a study start from, whose setups share it: as the first kind says that it fits."""
        fitting = (start for start, written in map(KINDS.__getitem__, self.kinds) if language in (None, written))
        return next(fitting, None)

    def elsewhere(self, start: Start | None) -> Iterator[str]:
        """A line for each kind whose agents start from something else in the study."""
        here = f"{start}, as all of this study; import it alone" if start else "AGENT_START"
        for kind in self.kinds:
            if KINDS[kind][0] != start:
                yield f"tasks: {kind}: agents start there from {KINDS[kind][0]}, here from {here}"
        if not self.kinds:
            yield "tasks: all: agents start there from what each kind says, here from AGENT_START"


def import_study(
    path: Path, name: str, language: Language | None = None, suffixes: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """The text of a study file, and a line for everything in the run configuration that has no counterpart.

    `language` is written in place of the tasks' own. `suffixes` are those of the runs to compare (`--run-suffix`);
    each is a treatment, and one that is called `baseline` is the control.

    Raises:
        ConfigError: it is no run configuration, it runs no agents, or none of its tasks has a counterpart.
    """
    run, _ = read_yaml(path, RunConfiguration)
    if run.agent.template == VALIDATOR:
        raise ConfigError(f"{path}: {VALIDATOR} runs no agents; here `kcourt task validate all` checks kernels")
    chosen = _tasks(run.tasks)
    if not chosen.kernels:
        raise ConfigError(f"{path}: none of its tasks has a counterpart here: {'; '.join(chosen.missing)}")
    start = chosen.start(language)
    warnings, setups = [*chosen.missing, *chosen.elsewhere(start)], read_setups(layers_root())
    languages = [str(language)] if language else _graded(chosen.languages, warnings)
    treatments = _treatments(suffixes, warnings)
    by_language = len(languages) > 1 and len(treatments) == 1
    study: dict[str, Any] = {
        "study": name,
        "question": f"What does {run.agent.template} make of these kernels?",
        "experiment": next(iter(setups.experiments)),
        **_kernels(chosen.kernels),
        "models": [_model(run, setups, warnings)],
        "languages": languages,
        "treatments": treatments,
        "control": {"language": languages[0]} if by_language else {"treatment": CONTROL},
        "harnesses": [_harness(run.agent.template, warnings)],
        **({"efforts": [run.agent.effort]} if run.agent.effort else {}),
        **_hardware(run.target_gpu_model, warnings),
        "settings": {
            **({"AGENT_START": str(start)} if start else {}),
            **{AGENT_KEYS[key]: value for key, value in _extra(run.agent) if key in AGENT_KEYS},
        },
    }
    warnings += _unknown(run)
    text = as_yaml({key: value for key, value in study.items() if value})
    return f"# From {path.name}, a run configuration of AgentKernelArena.\n{text}", warnings


def _extra(part: BaseModel) -> Iterator[tuple[str, Any]]:
    yield from (part.model_extra or {}).items()


def _unknown(run: RunConfiguration) -> Iterator[str]:
    for key, _ in _extra(run):
        yield f"{key}: {ELSEWHERE.get(key, 'unknown here')}"
    for key, _ in _extra(run.agent):
        if key not in AGENT_KEYS:
            yield f"agent.{key}: unknown here; a harness takes its settings from the KEYs of a setup"


def _tasks(selectors: Sequence[str]) -> _Chosen:
    ours = {_plain(task.name): task.name for task in select("all")}
    kernels: dict[str, None] = {}
    kinds: dict[str, None] = {}
    missing = []
    for selector in selectors:
        kind, *path = selector.strip("/").split("/")
        kernel = ours.get(_plain(path[-1])) if path else "all"
        if kind == "all":
            kernels["all"] = None
        elif kind in FOREIGN or kind not in KINDS:
            missing.append(f"tasks: {selector}: {FOREIGN.get(kind) or _nearest_kind(kind)}")
        elif kernel is None:
            missing.append(f"tasks: {selector}: no kernel of that name here; `kcourt task list` shows what there is")
        else:
            kernels[kernel] = kinds[kind] = None
    return _Chosen(("all",) if "all" in kernels else tuple(kernels), tuple(kinds), tuple(missing))


def _plain(name: str) -> str:
    """A kernel's name without what the two projects write differently: `triton_rms_norm` is rmsnorm."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"^(triton|hip|torch)_", "", name.lower()))


def _nearest_kind(kind: str) -> str:
    return f"no kind of task that is known here; {did_you_mean(kind, [*KINDS, *FOREIGN])}"


def _kernels(kernels: Sequence[str]) -> dict[str, Any]:
    return {"tag": "all"} if kernels == ("all",) else {"kernels": list(kernels)}


def _model(run: RunConfiguration, setups: Setups, warnings: list[str]) -> str:
    """The model that the run names, where it has a layer."""
    known = setups.models
    if run.agent.model in known:
        return str(run.agent.model)
    said = f"agent.model: '{run.agent.model}' has no layer" if run.agent.model else "agent.model: none is named"
    warnings.append(f"{said}; '{known[0]}' stands in its place, known are {', '.join(known)}")
    return known[0]


def _graded(languages: Sequence[str], warnings: list[str]) -> list[str]:
    if len(languages) > 1:
        warnings.append(f"tasks: every kernel is asked for in every language of the study: {', '.join(languages)}")
    return [*map(str, languages)]


def _treatments(suffixes: Sequence[str], warnings: list[str]) -> list[str]:
    """A suffix labels one side of a comparison, and a treatment is what that side changes."""
    names = [CONTROL, *(suffix for suffix in suffixes if suffix not in (CONTROL, "baseline"))]
    for name in names:
        if name not in known_treatments():
            warnings.append(
                f"--run-suffix {name}: what those runs changed stands in no file; "
                f"describe it in {experiments_root() / 'treatments' / name / 'treatment.yaml'}"
            )
    return names


def _harness(template: str, warnings: list[str]) -> str:
    if template not in HARNESSES:
        hint = did_you_mean(template, HARNESSES)
        warnings.append(f"agent.template: {template} is no agent that is known here; {hint}")
    harness = HARNESSES.get(template, template)
    if harness not in installed_harnesses():
        warnings.append(f"agent.template: harness '{harness}' is not installed here; a package can add it")
    return harness


def _hardware(gpu: str | None, warnings: list[str]) -> dict[str, Any]:
    """The profile of the target GPU; its models that end in A or X share one."""
    if gpu is None:
        return {}
    profiles = read_hardware(layers_root())
    name = gpu.lower()
    family = name.rstrip("ax")
    if name not in profiles and family in profiles:
        warnings.append(f"target_gpu_model: {gpu} is taken as {family}; grades say which device it was")
    if found := next((known for known in (name, family) if known in profiles), None):
        return {"hardware": found}
    warnings.append(f"target_gpu_model: {gpu} has no profile in hardware.yaml; known are {', '.join(profiles)}")
    return {}
