"""The files that a job writes and reads again: whole or not at all, and refused by name when damaged."""

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from agent.journal import write_whole
from bench.errors import ConfigError, EnvironmentFault
from bench.wording import read_model

Model = TypeVar("Model", bound=BaseModel)


def write_private(path: Path, text: str) -> None:
    """Write a text that its owner alone can read; raises EnvironmentFault when it cannot."""
    _write(path, text, 0o600)


def write_public(path: Path, text: str) -> None:
    """Write a text for all who may enter its folder; raises EnvironmentFault when it cannot."""
    _write(path, text, 0o644)


def _write(path: Path, text: str, mode: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text, mode)
    except OSError as error:
        raise EnvironmentFault(
            f"{path}: cannot be written ({error.strerror}); name a folder that you may write, or make room"
        ) from error


def write_json(path: Path, value: object) -> None:
    """Write a JSON document for everybody; a NaN is a ValueError."""
    write_public(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(model: type[Model], path: Path, advice: str) -> Model | None:
    """The content of a JSON file; None where it is not there.

    Raises:
        ConfigError: it is damaged or cannot be read; the message ends with the `advice`.
    """
    try:
        return read_model(path, model, advice)
    except ConfigError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise
