"""Systems: what the package and the site know of machines, and which of them this is."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, ValidationError

from bench.errors import ConfigError
from bench.wording import did_you_mean, first_fault
from bench.yaml_lines import Document
from cluster.study.wall_time import parse_wall
from cluster.study.yaml_files import read_yaml

PACKAGED = Path(__file__).with_name("systems.yaml")
SITE_VARIABLE = "KCOURT_SYSTEMS_FILE"
Runtime = Literal["ce", "apptainer", "podman", "docker", "none"]
Fact = Annotated[str, Field(min_length=1)] | None


class Source(StrEnum):
    """Where a value comes from, the strongest first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    SITE = "site"
    SYSTEM = "system"
    SETUP = "setup"


class Node(BaseModel):
    """One node: CPUs as Slurm counts them, sockets, and GPUs as its jobs see them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cpus: Annotated[int, Field(ge=1)] | None = None
    sockets: Annotated[int, Field(ge=1)] | None = None
    gpus: Annotated[int, Field(ge=0)] | None = None


class Facts(BaseModel):
    """One entry of a systems file; `sbatch` holds further long options of sbatch, empty for those without a value."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    summary: str = ""
    clusters: tuple[str, ...] = ()
    launcher: Literal["slurm", "local"] = "slurm"
    hardware: Fact = None
    container_runtime: Runtime | None = None
    partition: Fact = None
    account: Fact = None
    qos: Fact = None
    reservation: Fact = None
    constraint: Fact = None
    longest_wall: Annotated[int | None, BeforeValidator(lambda text: None if text is None else parse_wall(text))] = None
    nodes: Node = Node()
    sbatch: dict[str, str] = {}


@dataclass(frozen=True)
class Place:
    """Where a fact stands: in which of the two files, and in which line."""

    source: Source
    path: Path
    line: int

    def __str__(self) -> str:
        shown = self.path.name if self.source is Source.SYSTEM else self.path
        return f"{shown}:{self.line}"


@dataclass(frozen=True)
class System:
    """A machine: its facts, the place of each by its dotted key (`nodes.gpus`), and whether the site file has it."""

    name: str
    facts: Facts
    places: Mapping[str, Place]
    of_site: bool

    def place(self, key: str) -> Place:
        return self.places[key]


def read_systems(environ: Mapping[str, str]) -> dict[str, System]:
    """Every system by name: the package's, each fact of which the site file may replace, then the site's own.

    Raises:
        ConfigError: a file cannot be read, or naming file, line and key of the first fault.
    """
    packaged = _read(PACKAGED, Source.SYSTEM)
    # Spelt out, because docs/generate.py lists the variables that the source names.
    site_file = environ.get("KCOURT_SYSTEMS_FILE")
    if not site_file:
        return {name: _merged(name, entry, None) for name, entry in packaged.items()}
    if not Path(site_file).is_file():
        raise ConfigError(f"{SITE_VARIABLE}={site_file}: there is no such file; `kcourt init` writes one")
    site = _read(Path(site_file), Source.SITE)
    return {name: _merged(name, packaged.get(name, {}), site.get(name)) for name in dict.fromkeys(packaged | site)}


_Given = dict[str, tuple[Any, Place]]  # dotted key → value, and where it stands
_File = RootModel[dict[str, dict[str, Any]]]


def _read(path: Path, source: Source) -> dict[str, _Given]:
    """System → what one file says of it, checked on its own, so that a fault names its line."""
    entries, document = read_yaml(path, _File)
    found: dict[str, _Given] = {}
    for name, entry in entries.root.items():
        _check(entry, path, name, document)
        found[name] = {
            ".".join(keys): (value, Place(source, path, document.line([name, *keys]))) for keys, value in _flat(entry)
        }
    return found


def _flat(entry: Mapping[str, Any]) -> list[tuple[list[str], Any]]:
    """Every fact by its keys: those of `nodes` and `sbatch` one by one."""
    facts: list[tuple[list[str], Any]] = []
    for key, value in entry.items():
        if key in ("nodes", "sbatch"):
            facts += [([key, inner], given) for inner, given in (value or {}).items()]
        else:
            facts.append(([key], value))
    return facts


def _check(entry: Mapping[str, Any], path: Path, name: str, document: Document) -> None:
    try:
        Facts.model_validate(entry)
    except ValidationError as error:
        fault = first_fault(error, Facts)
        raise ConfigError(f"{path}:{document.line([name, *fault.keys])}: {name}.{fault}") from error


def _merged(name: str, packaged: _Given, site: _Given | None) -> System:
    """One system of what the two files say of it, the site's winning fact by fact."""
    given = packaged | (site or {})
    entry: dict[str, Any] = {}
    for key, (value, _) in given.items():
        outer, _, inner = key.partition(".")
        if inner:
            entry.setdefault(outer, {})[inner] = value
        else:
            entry[key] = value
    places = {key: place for key, (_, place) in given.items()}
    return System(name, Facts.model_validate(entry), places, site is not None)


def choose_system(environ: Mapping[str, str], flag: str | None = None) -> System:
    """The system that is named, else this cluster's, else the site file's only one, else `local`.

    Raises:
        ConfigError: no system has that name, or none is for this cluster (SLURM_CLUSTER_NAME).
    """
    systems = read_systems(environ)
    for named, where in ((flag, "--system"), (environ.get("KCOURT_SYSTEM"), "KCOURT_SYSTEM")):
        if named:
            return _named(systems, named, where)
    if cluster := environ.get("SLURM_CLUSTER_NAME"):
        return _of_cluster(systems, cluster)
    own = [system for system in systems.values() if system.of_site]
    return own[0] if len(own) == 1 else systems["local"]


def _named(systems: Mapping[str, System], name: str, where: str) -> System:
    if name in systems:
        return systems[name]
    raise ConfigError(
        f"{where}: no system '{name}'; a site file ({SITE_VARIABLE}) adds one, and `kcourt init` writes it; "
        f"{did_you_mean(name, systems)}"
    )


def _of_cluster(systems: Mapping[str, System], cluster: str) -> System:
    """The site's systems are asked before the package's."""
    for system in sorted(systems.values(), key=lambda system: not system.of_site):
        if cluster in system.facts.clusters:
            return system
    raise ConfigError(
        f"SLURM_CLUSTER_NAME={cluster}: no system is for this cluster; name one with --system or KCOURT_SYSTEM "
        f"({', '.join(systems)}), or describe this one in a site file: `kcourt init` writes it"
    )
