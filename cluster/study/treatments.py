"""Treatments: reads `experiments/treatments/<name>/treatment.yaml` and composes `a+b`; what conflicts is refused."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Annotated, Literal, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent.prompts.given import FILES, SKILL_PAGE, SKILLS
from agent.tools.offered import Tool
from bench.errors import ConfigError
from bench.start import STARTS
from bench.wording import did_you_mean
from cluster.study.identity import CONTROL
from cluster.study.places import folders_of
from cluster.study.yaml_files import read_yaml

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TRIGGER = re.compile(r"^Trigger: *(?P<text>\S.*?) *$", re.MULTILINE)
T = TypeVar("T")


class Switches(BaseModel):
    """Tools that clients have beyond the usual ones, and usual ones that they do not have."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    on: tuple[Tool, ...] = ()
    off: tuple[Tool, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _words(cls, given: object) -> object:
        """YAML 1.1 takes the bare words on and off for true and false."""
        if not isinstance(given, dict):
            return given
        return {{True: "on", False: "off"}.get(key, key): value for key, value in given.items()}


class TreatmentFile(BaseModel):
    """`treatment.yaml`. Files are named relative to its folder, skills by their folder under `skills/`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    summary: Annotated[str, Field(min_length=1)]
    hints: tuple[str, ...] = ()
    sections: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], str] = {}
    skills: tuple[str, ...] = ()
    tools: Switches = Switches()
    start: Literal["none", "reference", "baseline", "hip", "cuda", "torch", "triton"] | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """A text of a treatment and the file that holds it."""

    path: Path
    text: str


@dataclass(frozen=True)
class SkillPages:
    """A skill's folder, and when its SKILL.md says that it is to be read."""

    folder: Path
    trigger: str


@dataclass(frozen=True)
class Switch:
    """A tool switched on or off, and where that is written."""

    on: bool
    where: str

    def __str__(self) -> str:
        return f"{'on' if self.on else 'off'} ({self.where})"


@dataclass(frozen=True)
class Treatment:
    """What one setup changes in what its agents get; one treatment or several, composed from left to right.

    `path` is the file of the last of them.
    """

    name: str
    path: Path
    summary: str
    start: str | None = None
    hints: tuple[Text, ...] = ()
    sections: Mapping[str, Text] = field(default_factory=dict)
    skills: Mapping[str, SkillPages] = field(default_factory=dict)
    tools: Mapping[Tool, Switch] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """KEY → value of the settings that the treatment gives."""
        values = {"AGENT_START": STARTS[self.start].value if self.start else ""}
        for key, on in (("AGENT_TOOLS_ON", True), ("AGENT_TOOLS_OFF", False)):
            values[key] = ",".join(tool for tool, switch in self.tools.items() if switch.on is on)
        return {key: value for key, value in values.items() if value}

    def material(self) -> dict[str, bytes]:
        """Path → content of the read-only files that all agents of the setup have: skill pages and extra files."""
        pages = {
            f"{SKILLS}/{name}/{path.relative_to(skill.folder)}": path.read_bytes()
            for name, skill in self.skills.items()
            for path in sorted(skill.folder.rglob("*"))
            if path.is_file()
        }
        return pages | {f"{FILES}/{name}": path.read_bytes() for name, path in self.files.items()}


def known_treatments(folder: Path | None = None) -> list[str]:
    """Names of the treatments that can be composed, in order."""
    folders = [folder] if folder else folders_of("treatments")
    return sorted({path.parent.name for place in folders for path in place.glob("*/treatment.yaml")})


def read_treatment(name: str, folder: Path | None = None) -> Treatment:
    """The treatment of that name; `a+b` composes a and b.

    Raises:
        ConfigError: there is none (the nearest is named), a file is wrong (file and line are named), or two of
            them conflict (both are named).
    """
    parts = name.split("+")
    if len(set(parts)) < len(parts) or (CONTROL in parts and len(parts) > 1):
        raise ConfigError(f"treatment '{name}': name each treatment once, and '{CONTROL}', the control, alone")
    return reduce(_composed, (_read(part, folder) for part in parts))


def _read(name: str, folder: Path | None) -> Treatment:
    folders = [folder] if folder else folders_of("treatments")
    for place in folders:
        path = place / name / "treatment.yaml"
        if _NAME.fullmatch(name) and path.is_file():
            return _treatment(name, path)
    raise ConfigError(f"no treatment '{name}' in {folders[0]}; {did_you_mean(name, known_treatments(folder))}")


def _treatment(name: str, path: Path) -> Treatment:
    given, document = read_yaml(path, TreatmentFile)

    def line(*keys: str) -> int:
        return document.line(keys)

    def named(key: str, place: str, file: str) -> Path:
        return _inside(path.parent, file, f"{path}:{line(key, place)}")

    hints = [named("hints", str(place), file) for place, file in enumerate(given.hints)]
    sections = {section: named("sections", section, file) for section, file in given.sections.items()}
    pages = {
        skill: named("skills", str(place), f"{SKILLS}/{skill}/{SKILL_PAGE}") for place, skill in enumerate(given.skills)
    }
    return Treatment(
        name=name,
        path=path,
        summary=given.summary,
        start=given.start,
        hints=tuple(Text(hint, text_of(hint)) for hint in hints),
        sections={section: Text(file, text_of(file)) for section, file in sections.items()},
        skills={skill: SkillPages(page.parent, _trigger(page)) for skill, page in pages.items()},
        tools=_switches(given.tools, path, line),
        files={file: named("files", str(place), file) for place, file in enumerate(given.files)},
    )


def _switches(given: Switches, path: Path, line: Callable[..., int]) -> dict[Tool, Switch]:
    if twice := sorted({*given.on} & {*given.off}):
        raise ConfigError(f"{path}:{line('tools', 'off')}: tool '{twice[0]}' is both on and off; keep one")
    if Tool.SUBMIT in given.off:
        raise ConfigError(f"{path}:{line('tools', 'off')}: 'submit' cannot be off; an agent hands its answer in by it")
    on = {tool: Switch(True, f"{path}:{line('tools', 'on')}") for tool in given.on}
    return on | {tool: Switch(False, f"{path}:{line('tools', 'off')}") for tool in given.off}


def _inside(folder: Path, file: str, where: str) -> Path:
    path = folder / file
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{where}: {file} lies outside {folder}; a treatment's files lie in its own folder")
    if not path.is_file():
        raise ConfigError(f"{where}: {path} is not there; write it or leave it out")
    return path


def text_of(path: Path) -> str:
    """The text of a treatment's file; raises ConfigError when it is none."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def _trigger(page: Path) -> str:
    if trigger := _TRIGGER.search(text_of(page)):
        return trigger["text"]
    raise ConfigError(f"{page}:1: has no line 'Trigger: WHEN'; say there when an agent should read this page")


def _composed(one: Treatment, other: Treatment) -> Treatment:
    """Both together; raises ConfigError, naming both, when they do not agree."""

    def refuse(what: str) -> NoReturn:
        raise ConfigError(f"treatments '{one.name}' and '{other.name}' conflict: {what}; keep one of them")

    def joined(what: str, ours: Mapping[str, T], theirs: Mapping[str, T]) -> dict[str, T]:
        for name in theirs:
            if name in ours:
                refuse(f"both give the {what} '{name}'")
        return {**ours, **theirs}

    if one.start and other.start and one.start != other.start:
        refuse(f"one starts from {one.start}, the other from {other.start}")
    for tool in one.tools.keys() & other.tools.keys():
        ours, theirs = one.tools[tool], other.tools[tool]
        if ours.on != theirs.on:
            refuse(f"tool '{tool}' is {ours} and {theirs}")
    return Treatment(
        name=f"{one.name}+{other.name}",
        path=other.path,
        summary=f"{one.summary} {other.summary}",
        start=one.start or other.start,
        hints=one.hints + other.hints,
        sections=joined("section", one.sections, other.sections),
        skills=joined("skill", one.skills, other.skills),
        tools={**one.tools, **other.tools},
        files=joined("file", one.files, other.files),
    )
