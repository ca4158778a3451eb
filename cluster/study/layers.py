"""Layer files, `experiments/layers/*.env`: reads them, and the ones that they extend."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.errors import ConfigError, UsageError
from cluster.study.env_files import read_env
from cluster.study.origins import Layer
from cluster.study.settings import known_key

_EXTENDS = re.compile(r"#\s*extends:\s*(.*)")


@dataclass(frozen=True)
class LayerFile:
    """One layer file: what it sets, and the layers that it extends, each with its line."""

    layer: Layer
    parents: tuple[tuple[str, int], ...]


def read_layer(path: Path) -> Layer:
    """One layer file, without those that it extends; its name is the file's.

    Raises:
        ConfigError: it is no env file, or a KEY is unknown or a secret; file, line and key are named.
    """
    return _read(path).layer


def _read(path: Path) -> LayerFile:
    # Hundreds of setups share a layer; a file that changed is read again.
    return _parsed(path, path.stat().st_mtime_ns if path.exists() else 0)


@cache
def _parsed(path: Path, _changed_ns: int) -> LayerFile:
    values, lines = read_env(path)
    layer = Layer(path.stem, path, values, lines)
    check_keys(layer)
    return LayerFile(layer, tuple(_parents(path)))


def _parents(path: Path) -> Iterator[tuple[str, int]]:
    """What `# extends: a, b` names above the first key."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            return
        if match := _EXTENDS.fullmatch(line.strip()):
            yield from ((name.strip(), number) for name in match[1].split(",") if name.strip())


def check_keys(layer: Layer) -> None:
    """Refuse a KEY that is unknown, and one that must not be written down; raises ConfigError."""
    for key in layer.values:
        try:
            about = known_key(key)
        except UsageError as error:
            raise ConfigError(f"{layer.where(key)}: {error}") from error
        if about.secret:
            raise ConfigError(
                f"{layer.where(key)}: {key} is a secret, and files are read by many; take it out, "
                "change it where it is valid, and export it in the shell that submits"
            )


def chain(name: str, folder: Path) -> list[Layer]:
    """A layer with all that it extends, parents before their children, each once, weakest first.

    Raises:
        ConfigError: a file is wrong, extends one that is not there, or extends itself in the end.
    """
    found: dict[str, Layer] = {}
    _collect(name, folder, (), found)
    return list(found.values())


def known_layers(folder: Path) -> list[str]:
    """Names of the layers in a folder, in alphabetical order."""
    return sorted(path.stem for path in folder.glob("*.env"))


def _collect(name: str, folder: Path, children: tuple[str, ...], found: dict[str, Layer]) -> None:
    if name in found:
        return
    path = folder / f"{name}.env"
    file = _read(path)
    for parent, line in file.parents:
        where = f"{path}:{line}: extends: {parent}"
        if parent in (*children, name):
            round_trip = " → ".join((*children, name, parent))
            raise ConfigError(f"{where} comes back to itself ({round_trip}); take one step out")
        if not (folder / f"{parent}.env").is_file():
            raise ConfigError(f"{where}: there is no such layer; known: {', '.join(known_layers(folder))}")
        _collect(parent, folder, (*children, name), found)
    found[name] = file.layer
