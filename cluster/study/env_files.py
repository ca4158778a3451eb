"""Env files: `KEY=value` lines that are parsed, never sourced; what is written reads back as it was."""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from dotenv.parser import parse_stream

from bench.errors import ConfigError


def read_env(path: Path) -> tuple[dict[str, str], dict[str, int]]:
    """KEY → text and KEY → line of an env file; nothing in it is expanded or run.

    Raises:
        ConfigError: the file cannot be read, a line is no assignment, or a key is given twice.
    """
    try:
        stream = StringIO(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: this env file cannot be read ({error.strerror}); name an env file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is no env file: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    for binding in parse_stream(stream):
        text = binding.original.string
        line = binding.original.line + text[: len(text) - len(text.lstrip())].count("\n")
        if binding.error or (binding.key and binding.value is None):
            raise ConfigError(f"{path}:{line}: '{text.strip()}' is no KEY=value line; quote values that hold quotes")
        if binding.key is None or binding.value is None:
            continue
        if binding.key in values:
            raise ConfigError(f"{path}:{line}: {binding.key} was given in line {lines[binding.key]}; keep one")
        values[binding.key], lines[binding.key] = binding.value, line
    return values, lines


def render_env(values: Mapping[str, object]) -> str:
    """Text of an env file that `read_env` reads back to the same values; None is left out.

    Raises:
        ConfigError: a value holds a control character, which one line of text cannot carry.
    """
    given = {key: as_text(value) for key, value in values.items() if value is not None}
    return "".join(f"{key}={_quoted(key, text)}\n" for key, text in given.items())


def as_text(value: object) -> str:
    """A value as an env file holds it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(key: str, text: str) -> str:
    if not text.isprintable():
        raise ConfigError(f"{key}: {text!r} holds a control character; an env value is one line of text")
    if text.replace("_", "").replace("/", "").replace(".", "").replace("-", "").replace(",", "").isalnum():
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
