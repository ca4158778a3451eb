"""Words for what somebody wrote wrongly: the first fault that pydantic found, the known name that was meant."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from bench.errors import ConfigError

M = TypeVar("M", bound=BaseModel)

_SHOWN_CHARS = 80


class FieldFault(ValueError):
    """A fault that several fields make together, with the one that has to change (dotted)."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.keys = tuple(field.split("."))


@dataclass(frozen=True)
class Fault:
    """One fault: its keys, outermost first (none: the whole), pydantic's word for its type, and what is wrong."""

    keys: tuple[str, ...]
    type: str
    message: str

    @property
    def where(self) -> str:
        return ".".join(self.keys)

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.keys else self.message


def first_fault(error: ValidationError, model: type[BaseModel] | None = None) -> Fault:
    """The fault to name first: an unknown key before a missing one, because it is often that one misspelt.

    With the `model` that was asked for, an unknown key is answered with the known ones.
    """
    faults = [fault_of(found) for found in error.errors(include_url=False, include_input=False)]
    fault = next((fault for fault in faults if fault.type == "extra_forbidden"), faults[0])
    if fault.type == "extra_forbidden" and model:
        known = _innermost(model, fault.keys).model_fields
        return Fault(fault.keys, fault.type, f"unknown key; {did_you_mean(fault.keys[-1], known)}")
    return fault


def fault_of(found: Mapping[str, Any]) -> Fault:
    """One entry of pydantic's `errors()`; a key that somebody invented is shown cut."""
    cause = found.get("ctx", {}).get("error")
    keys = tuple(str(part)[:_SHOWN_CHARS] for part in found["loc"] if part != "[key]")
    message = str(found["msg"]).removeprefix("Value error, ")
    if found["type"] == "model_type":  # pydantic's own words name a class of ours
        message = "a mapping of keys to values is needed"
    return Fault(cause.keys if isinstance(cause, FieldFault) else keys, found["type"], message)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """What to say to a name that is none of the known ones: the most similar, else all of them or `otherwise`."""
    names = list(known)
    if near := difflib.get_close_matches(name, names, n=1):
        return f"did you mean '{near[0]}'?"
    return otherwise or f"known: {', '.join(names) or 'none'}"


def read_model(path: Path, model: type[M], advice: str) -> M:
    """The JSON document that somebody prepared in a file.

    Raises:
        ConfigError: it is not there or does not fit; names the file and the first fault, and gives the `advice`.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); {advice}") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_fault(error, model)}; {advice}") from error


def _innermost(model: type[BaseModel], keys: Sequence[str]) -> type[BaseModel]:
    """The model that the last of `keys` should be a field of."""
    for key in keys[:-1]:
        if field := model.model_fields.get(key):
            model = next(_models(field.annotation), model)
    return model


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def counted(number: int, noun: str) -> str:
    """`1 judge`, `2 judges`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
