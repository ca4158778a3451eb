"""YAML files of experiments: parsed and checked against a model, every fault with its file, line and key."""

from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from bench import yaml_lines
from bench.errors import ConfigError
from bench.wording import first_fault

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
        fault = first_fault(error, model)
        raise ConfigError(f"{path}:{document.line(fault.keys)}: {fault}") from error
