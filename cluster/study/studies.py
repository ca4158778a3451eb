"""Studies: reads `experiments/studies/<study>.yaml` and renders the files of each of its setups."""

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bench import yaml_lines
from bench.abi import declaration
from bench.errors import ConfigError
from bench.judge.schemas import Language
from bench.places import checkout
from bench.task import Task, select
from bench.wording import first_fault
from cluster.job.layout import write_private
from cluster.study.env_files import render_env
from cluster.study.problems import make_problem, render_problems
from cluster.study.settings import JobSettings, explain

Scalar = str | int | float | bool
ScriptStep = dict[str, str]


class ScriptRule(StrEnum):
    """How the scripted harness's steps follow from a kernel's controls."""

    GOLD = "gold"
    NOOP = "noop"
    STUMBLER = "stumbler"


class SetupCell(BaseModel):
    """One setup of a study. `kernels`: take only the first so many of the tag that the rule fits."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    script: ScriptRule
    kernels: Annotated[int, Field(ge=1)] | None = None
    settings: dict[str, Scalar] = {}


class Study(BaseModel):
    """One question: a tag of kernels crossed with setups, one of which is the declared control."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: str
    question: str
    tag: str
    control: str
    settings: dict[str, Scalar]
    setups: Annotated[dict[str, SetupCell], Field(min_length=1)]

    @model_validator(mode="after")
    def _control_is_a_setup(self) -> Self:
        if self.control not in self.setups:
            raise ValueError(f"control '{self.control}' is none of the setups {', '.join(self.setups)}")
        return self


def studies_folder() -> Path:
    return checkout() / "experiments" / "studies"


def read_study(name: str, folder: Path | None = None) -> Study:
    """The study of that name.

    Raises:
        ConfigError: there is none (the nearest is named), or its file is wrong (file and key are named).
    """
    folder = folder or studies_folder()
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = sorted(found.stem for found in folder.glob("*.yaml"))
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known studies: {', '.join(known) or 'none'}"
        raise ConfigError(f"no study '{name}' in {folder}; {hint}")
    try:
        study = Study.model_validate(yaml_lines.parse(path.read_text(encoding="utf-8")).value)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except yaml_lines.YamlFault as error:
        raise ConfigError(f"{path}:{error.line}: {error}") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_fault(error, Study.model_fields)}") from error
    if study.study != name:
        raise ConfigError(f"{path}: study: '{study.study}' must be the file's name, '{name}'")
    return study


@dataclass(frozen=True)
class Rendered:
    """Where the files of one setup go, under the folder of what an operator generates."""

    folder: Path
    setup: str

    @property
    def env(self) -> Path:
        return self.folder / f".env.{self.setup}"

    @property
    def problems(self) -> Path:
        return self.folder / f"problems-{self.setup}.jsonl"

    @property
    def script(self) -> Path:
        return self.folder / ".rendered" / f"script-{self.setup}.json"

    @property
    def candidates(self) -> Path:
        """Generated candidates: those that do not compile or that crash."""
        return self.folder / ".rendered" / self.setup


def render_study(study: Study, folder: Path, overrides: Mapping[str, Scalar] = {}) -> list[Path]:
    """Write every setup's files into `folder` and return the env files; `overrides` (KEY → value) win.

    Raises:
        ConfigError: a key is unknown, or a kernel has no control that a script needs.
    """
    return [_render_setup(study, name, Rendered(folder, name), overrides) for name in study.setups]


def _render_setup(study: Study, name: str, files: Rendered, overrides: Mapping[str, Scalar]) -> Path:
    cell = study.setups[name]
    values: dict[str, object] = {
        "STUDY": study.study,
        "SETUP": name,
        **study.settings,
        **cell.settings,
        "PROBLEMS_FILE": files.problems.relative_to(files.folder),
        "AGENT_SCRIPT": files.script.relative_to(files.folder),
        **overrides,
    }
    try:
        settings = JobSettings.model_validate({key: str(value) for key, value in values.items()})
    except ValidationError as error:
        raise ConfigError(f"study '{study.study}', setup '{name}': {explain(error)[1]}") from error
    tasks = _kernels(study, cell, settings.language)
    problems = [make_problem(settings, task) for task in tasks]
    script = {task.name: _script(cell.script, task, settings.language, files.candidates) for task in tasks}
    write_private(files.problems, render_problems(problems))
    write_private(files.script, json.dumps(script, indent=2) + "\n")
    write_private(files.env, render_env(values))
    return files.env


def _kernels(study: Study, cell: SetupCell, language: Language) -> Sequence[Task]:
    tasks = [task for task in select(study.tag) if language in task.manifest.languages]
    if cell.script is ScriptRule.STUMBLER:
        tasks = [task for task in tasks if _control(task, language, "wrong")]
    if cell.kernels and len(tasks) < cell.kernels:
        raise ConfigError(
            f"study '{study.study}': {len(tasks)} kernels of tag '{study.tag}' fit script '{cell.script}', "
            f"{cell.kernels} are asked for; lower 'kernels' or add controls"
        )
    return tasks[: cell.kernels]


def _script(rule: ScriptRule, task: Task, language: Language, candidates: Path) -> list[ScriptStep]:
    """The steps of one episode: which tool is called with which file, in order."""
    rules: dict[ScriptRule, Callable[[], list[ScriptStep]]] = {
        ScriptRule.GOLD: lambda: _gold(task, language),
        ScriptRule.NOOP: lambda: [_step("submit", _start(task, language))],
        ScriptRule.STUMBLER: lambda: _stumbler(task, language, candidates),
    }
    return rules[rule]()


def _gold(task: Task, language: Language) -> list[ScriptStep]:
    best = _best(task, language)
    return [_step("score", best), _step("submit", best)]


def _stumbler(task: Task, language: Language, candidates: Path) -> list[ScriptStep]:
    """Wrong, then not compiling, then crashing, then right; only the last is submitted."""
    if language not in (Language.C, Language.CPP):
        raise ConfigError(f"the script '{ScriptRule.STUMBLER}' writes files that do not compile; give it LANGUAGE=c")
    broken = candidates / f"{task.name}-broken{language.suffix}"
    crashing = candidates / f"{task.name}-crashing{language.suffix}"
    head = "#include <stdint.h>\n" + declaration(task, language).rstrip().rstrip(";")
    write_private(broken, f"{head} {{\n    this line is not {language};\n}}\n")
    write_private(crashing, f"{head} {{\n    *(volatile int *)0 = 1;\n}}\n")
    wrong = _needed(task, language, "wrong")
    return [
        *(_step("score", path) for path in (wrong, broken, crashing)),
        _step("submit", _best(task, language)),
    ]


def _step(tool: str, path: Path) -> ScriptStep:
    return {"tool": tool, "file": str(path.resolve())}


def _best(task: Task, language: Language) -> Path:
    return _control(task, language, "fast") or _needed(task, language, "honest")


def _needed(task: Task, language: Language, kind: str) -> Path:
    found = _control(task, language, kind)
    if found is None:
        raise ConfigError(
            f"{task.folder}/controls: no {kind}_*{language.suffix}; a scripted setup in {language} needs one"
        )
    return found


def _control(task: Task, language: Language, kind: str) -> Path | None:
    return next((path for path in task.controls(kind) if path.suffix == language.suffix), None)


def _start(task: Task, language: Language) -> Path:
    """The start material that can be sent back unchanged."""
    for path in task.baselines:
        if path.suffix == language.suffix:
            return path
    raise ConfigError(f"{task.folder}: no baseline in {language}; the script 'noop' submits it unchanged")
