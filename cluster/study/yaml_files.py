"""YAML files of experiments: parsed and checked against a model, every fault with its file, line and key."""

from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from bench import yaml_lines
from bench.errors import ConfigError
from bench.task import FieldFault
from bench.wording import first_fault, nearest

Model = TypeVar("Model", bound=BaseModel)


def read_yaml(path: Path, model: type[Model]) -> tuple[Model, yaml_lines.Document]:
    """What the file says as a `model`, and the document that knows the lines.

    Raises:
        ConfigError: it cannot be read, is not YAML, or does not fit the model.
    """
    try:
        # Hundreds of setups share a file, and parsing YAML is dear; a file that changed is read again.
        return _read(path, path.stat().st_mtime_ns, model)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error


@cache
def _read(path: Path, _changed_ns: int, model: type[Model]) -> tuple[Model, yaml_lines.Document]:
    try:
        document = yaml_lines.parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except yaml_lines.YamlFault as error:
        raise ConfigError(f"{path}:{error.line}: {error}") from error
    try:
        return model.model_validate(document.value), document
    except ValidationError as error:
        keys, message = _worded(error, model)
        where = f"{path}:{document.line(keys)}"
        raise ConfigError(f"{where}: {'.'.join(keys)}: {message}" if keys else f"{where}: {message}") from error


def _worded(error: ValidationError, model: type[BaseModel]) -> tuple[list[str], str]:
    """The keys of the first fault, and what is wrong there."""
    found = error.errors(include_url=False)[0]
    cause = found.get("ctx", {}).get("error")
    if isinstance(cause, FieldFault):
        return cause.where, str(cause)
    keys = [str(part) for part in found["loc"]]
    if found["type"] == "extra_forbidden" and len(keys) == 1:
        near = nearest(keys[0], model.model_fields)
        return keys, f"unknown key; the nearest known key is {near}"
    return keys, first_fault(error).message
