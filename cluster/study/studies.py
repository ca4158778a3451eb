"""Studies: reads `experiments/studies/<study>.yaml` and lists the setups that it asks for, and its control."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from bench import yaml_lines
from bench.errors import ConfigError
from bench.judge.schemas import Language
from bench.wording import FieldFault, did_you_mean
from cluster.study.env_files import as_text
from cluster.study.identity import CONTROL, USUAL_HARNESS, Identity, temperature_text
from cluster.study.origins import Layer
from cluster.study.places import folders_of
from cluster.study.scripts import ScriptRule
from cluster.study.yaml_files import read_yaml

Scalar = str | int | float | bool
Value = Scalar | None


class Axis(StrEnum):
    """What may vary between the setups of a study; a setup's KEY of that name holds its value."""

    MODEL = "model"
    LANGUAGE = "language"
    TREATMENT = "treatment"
    HARNESS = "harness"
    EFFORT = "effort"
    TEMPERATURE = "temperature"

    @property
    def plural(self) -> str:
        """The field of a study that lists the axis's values."""
        return f"{self.value}s" if self is not Axis.HARNESS else "harnesses"

    @property
    def key(self) -> str:
        return self.value.upper()


# KEYs that a study says in words of its own, so that one thing is written in one place.
OWN_KEYS = {"SETUP": "", "STUDY": "study", "PROBLEMS_FILE": "tag", "KERNELS": "tag"}
AXIS_KEYS = {axis.key: axis.plural for axis in Axis} | {"EXPERIMENT": "experiment", "HARDWARE": "hardware"}


class SetupCell(BaseModel):
    """A setup that is written out. `script`: a scripted agent's rule; `kernels`: only the first so many that fit it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    script: ScriptRule | None = None
    kernels: Annotated[int, Field(ge=1)] | None = None
    settings: dict[str, Scalar] = {}


class Study(BaseModel):
    """One question: kernels crossed with the values of its axes, or with setups written out; one is the control.

    `tag` is a tag or another selector of kernels, `kernels` a list of names in its place. `control` is an axis and
    the value that the others are compared with, or the name of a setup that is written out. `repeats` are the slots
    of each kernel, `feeds` says which experiment or figure the study is for; a `wave` has as few jobs as its setups
    can share. An axis of None is left to the layers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: str
    question: str
    feeds: str = ""
    experiment: str = ""
    tag: str = ""
    kernels: tuple[str, ...] = ()
    control: dict[str, Value] | str
    models: tuple[str, ...] = ()
    languages: Annotated[tuple[Language, ...], Field(min_length=1)] = (Language.C,)
    treatments: Annotated[tuple[str, ...], Field(min_length=1)] = (CONTROL,)
    harnesses: Annotated[tuple[str | None, ...], Field(min_length=1)] = (None,)
    efforts: Annotated[tuple[str | None, ...], Field(min_length=1)] = (None,)
    temperatures: Annotated[tuple[float | None, ...], Field(min_length=1)] = (None,)
    repeats: Annotated[int, Field(ge=1)] = 1
    hardware: str = ""
    wave: bool = False
    settings: dict[str, Scalar] = {}
    setups: dict[str, SetupCell] = {}

    _path: Path = PrivateAttr(Path("a study"))
    _document: yaml_lines.Document = PrivateAttr(yaml_lines.Document(None, None))

    @model_validator(mode="after")
    def _kernels_are_named_once(self) -> Self:
        if bool(self.tag) == bool(self.kernels):
            raise FieldFault("tag", "say which kernels: a tag, or a list of names as 'kernels', and not both")
        return self

    @model_validator(mode="after")
    def _setups_or_axes(self) -> Self:
        if bool(self.setups) == bool(self.models):
            raise FieldFault("models", "list the models to cross with, or write the setups out as 'setups', not both")
        if self.models and not self.experiment:
            raise FieldFault("experiment", "name the experiment whose layers the models are run under")
        for key in self.settings:
            if advice := self.said_elsewhere(key):
                raise FieldFault(f"settings.{key}", f"cannot be given in settings; {advice}")
        return self

    @model_validator(mode="after")
    def _values_are_listed_once(self) -> Self:
        for axis in Axis:
            values = self.values(axis)
            if len(set(values)) < len(values):
                raise FieldFault(axis.plural, "lists a value twice; keep one")
        return self

    @model_validator(mode="after")
    def _control_is_there(self) -> Self:
        if self.setups:
            if not isinstance(self.control, str) or self.control not in self.setups:
                raise FieldFault("control", f"'{self.control}' is none of the setups {', '.join(self.setups)}")
            return self
        if isinstance(self.control, str) or len(self.control) != 1:
            raise FieldFault("control", "name one axis that varies and the value of the control, as {treatment: none}")
        ((name, value),) = self.control.items()
        if name not in list(Axis):
            raise FieldFault(f"control.{name}", f"is no axis; {did_you_mean(name, Axis)}")
        listed = self.values(Axis(name))
        if value not in listed:
            shown = ", ".join(map(str, listed))
            raise FieldFault(f"control.{name}", f"'{value}' is none of the study's {Axis(name).plural}: {shown}")
        varied = [axis.value for axis in Axis if len(self.values(axis)) > 1]
        if varied and name not in varied:
            raise FieldFault(f"control.{name}", f"does not vary in this study; what varies is {' and '.join(varied)}")
        return self

    @property
    def path(self) -> Path:
        """The file that it was read from."""
        return self._path

    @property
    def selector(self) -> str:
        """Kernels, as `bench.task.select` takes them."""
        return self.tag or ",".join(self.kernels)

    def values(self, axis: Axis) -> tuple[Value, ...]:
        """The values of an axis, in the order of the file."""
        found: tuple[Value, ...] = getattr(self, axis.plural)
        return found

    def said_elsewhere(self, key: str) -> str:
        """Where a study says what this KEY holds, in words of its own; nothing for a KEY that settings may give."""
        named = OWN_KEYS | (AXIS_KEYS if self.models else {})
        if key not in named:
            return ""
        return f"say it as '{named[key]}' of the study" if named[key] else "each setup of the study has its own"

    def where(self, *keys: str) -> str:
        """File and line of a field."""
        return f"{self._path}:{self._document.line(keys)}"

    def layer(self, name: str, settings: Mapping[str, Scalar], *keys: str) -> Layer:
        """Settings of the study's file, below these keys, as one layer."""
        values = {key: as_text(value) for key, value in settings.items()}
        return Layer(name, self._path, values, {key: self._document.line([*keys, key]) for key in values})


@dataclass(frozen=True)
class Cell:
    """One setup that a study asks for. `point`: its value on each axis, none for a setup that is written out."""

    setup: str
    point: Mapping[Axis, Value]
    written: SetupCell

    @property
    def axis_values(self) -> dict[str, str]:
        """KEY → text of what the axes say."""
        given = {axis: value for axis, value in self.point.items() if value is not None}
        return {axis.key: _axis_text(axis, value) for axis, value in given.items()}


def _axis_text(axis: Axis, value: Scalar) -> str:
    return temperature_text(float(value)) if axis is Axis.TEMPERATURE else str(value)


def cells(study: Study, hardware: Mapping[str, str | None] = {}) -> list[Cell]:
    """Every setup of a study, in the order of its file, the last axis fastest.

    `hardware` is model → the hardware segment of a setup's name, where it has one.

    Raises:
        ConfigError: two setups would have one name.
    """
    if study.setups:
        return [Cell(name, {}, written) for name, written in study.setups.items()]
    crossed = product(*(study.values(axis) for axis in Axis))
    found = [_crossed(study, dict(zip(Axis, values, strict=True)), hardware) for values in crossed]
    names = Counter(cell.setup for cell in found)
    if twice := [name for name, number in names.items() if number > 1]:
        raise ConfigError(
            f"{study.path}: two setups would be called '{twice[0]}'; rename or leave out a value of an axis"
        )
    return found


def _crossed(study: Study, point: dict[Axis, Value], hardware: Mapping[str, str | None]) -> Cell:
    effort, temperature = point[Axis.EFFORT], point[Axis.TEMPERATURE]
    identity = Identity(
        experiment=study.experiment,
        hardware=hardware.get(str(point[Axis.MODEL])),
        model=str(point[Axis.MODEL]),
        language=str(point[Axis.LANGUAGE]),
        treatment=str(point[Axis.TREATMENT]),
        harness=str(point[Axis.HARNESS] or USUAL_HARNESS),
        effort=None if effort is None else str(effort),
        temperature=None if temperature is None else float(temperature),
    )
    return Cell(identity.name, point, SetupCell())


def compares_with(cell: Cell, study: Study, all_cells: Sequence[Cell]) -> str | None:
    """Name of the control that differs from a setup in the declared axis alone; None for a control itself."""
    if isinstance(study.control, str):
        return None if cell.setup == study.control else study.control
    wanted = {**cell.point, **{Axis(name): value for name, value in study.control.items()}}
    if wanted == cell.point:
        return None
    return next(other.setup for other in all_cells if other.point == wanted)


def known_studies(folder: Path | None = None) -> list[str]:
    """Names of the studies that can be read, in alphabetical order."""
    folders = [folder] if folder else folders_of("studies")
    return sorted({path.stem for place in folders for path in place.glob("*.yaml")})


def read_study(name: str, folder: Path | None = None) -> Study:
    """The study of that name.

    Raises:
        ConfigError: there is none (the nearest is named), or its file is wrong (file, line and key are named).
    """
    folders = [folder] if folder else folders_of("studies")
    path = next((path for place in folders if (path := place / f"{name}.yaml").is_file()), None)
    if path is None:
        raise ConfigError(f"no study '{name}' in {folders[0]}; {did_you_mean(name, known_studies(folder))}")
    study, document = read_yaml(path, Study)
    study._path, study._document = path, document
    if study.study != name:
        raise ConfigError(f"{study.where('study')}: study: '{study.study}' must be the file's name, '{name}'")
    return study
