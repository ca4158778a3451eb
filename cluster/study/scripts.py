"""Scripts by rule: what the scripted harness sends for a kernel follows from the kernel's own controls."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench.abi import declaration
from bench.errors import ConfigError
from bench.judge.schemas import Language
from bench.task import Task

ScriptStep = dict[str, str]


class ScriptRule(StrEnum):
    """gold sends the fast control, noop the unchanged baseline, stumbler three failures before the fast one."""

    GOLD = "gold"
    NOOP = "noop"
    STUMBLER = "stumbler"

    def fits(self, task: Task, language: Language) -> bool:
        """Whether the kernel has the control that only this rule needs."""
        return self is not ScriptRule.STUMBLER or _control(task, language, "wrong") is not None


@dataclass(frozen=True)
class Script:
    """A plan of the scripted harness: kernel → steps, and the candidates that no file of a kernel holds."""

    steps: dict[str, list[ScriptStep]]
    candidates: dict[Path, str]

    @property
    def text(self) -> str:
        """The plan as the JSON file that the harness reads."""
        return json.dumps(self.steps, indent=2) + "\n"


def make_script(rule: ScriptRule, tasks: Sequence[Task], language: Language, folder: Path) -> Script:
    """The plan for these kernels; the paths of generated candidates lie in `folder`, where nothing is written.

    Raises:
        ConfigError: a kernel lacks a control that the rule needs, or the language cannot be broken by it.
    """
    candidates: dict[Path, str] = {}
    steps = {task.name: _steps(rule, task, language, folder, candidates) for task in tasks}
    return Script(steps, candidates)


def _steps(
    rule: ScriptRule, task: Task, language: Language, folder: Path, candidates: dict[Path, str]
) -> list[ScriptStep]:
    """The steps of one episode: which tool is called with which file, in order."""
    match rule:
        case ScriptRule.GOLD:
            best = _best(task, language)
            return [_step("score", best), _step("submit", best)]
        case ScriptRule.NOOP:
            return [_step("submit", _start(task, language))]
        case ScriptRule.STUMBLER:
            generated = _failing(task, language, folder)
            candidates |= generated
            wrong = _needed(task, language, "wrong")
            previews = [_step("score", path) for path in (wrong, *generated)]
            return [*previews, _step("submit", _best(task, language))]


def _failing(task: Task, language: Language, folder: Path) -> dict[Path, str]:
    """A candidate that does not compile, then one that crashes."""
    if language not in (Language.C, Language.CPP):
        raise ConfigError(
            f"script '{ScriptRule.STUMBLER}' fails in C and C++ alone, and LANGUAGE is {language}; "
            "set it to c or cpp, or take another script"
        )
    head = "#include <stdint.h>\n" + declaration(task, language).rstrip().rstrip(";")
    return {
        folder / f"{task.name}-broken{language.suffix}": f"{head} {{\n    this line is not {language};\n}}\n",
        folder / f"{task.name}-crashing{language.suffix}": f"{head} {{\n    *(volatile int *)0 = 1;\n}}\n",
    }


def _step(tool: str, path: Path) -> ScriptStep:
    return {"tool": tool, "file": str(path.resolve())}


def _best(task: Task, language: Language) -> Path:
    return _control(task, language, "fast") or _needed(task, language, "honest")


def _needed(task: Task, language: Language, kind: str) -> Path:
    found = _control(task, language, kind)
    if found is None:
        raise ConfigError(
            f"{task.folder}/controls: no {kind}_*{language.suffix}, which a scripted setup in {language} sends; "
            "write one, or leave the kernel out of the study"
        )
    return found


def _control(task: Task, language: Language, kind: str) -> Path | None:
    return next((path for path in task.controls(kind) if Language.of(path) is language), None)


def _start(task: Task, language: Language) -> Path:
    """The start material that can be sent back unchanged."""
    for path in (*task.baselines, *task.gpu_baselines):
        if Language.of(path) is language:
            return path
    raise ConfigError(
        f"{task.folder}: no baseline in {language}, which script '{ScriptRule.NOOP}' submits unchanged; "
        "write one, or leave the kernel out of the study"
    )
