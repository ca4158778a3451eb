"""The seam between the driver and the programs that drive a model as an agent: one file a harness."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from agent.budget import BudgetMode
from agent.endpoint import Endpoint, Wire
from agent.tools.offered import Tool
from agent.usage import NOTHING, Usage
from bench.errors import ConfigError
from bench.judge.schemas import End, Language, SetupRecord
from bench.wording import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "kernelcourt.harnesses"
# `own`: a client that asks nobody but its vendor's service; `none`: one that needs no model.
WireFormat = Literal[Wire, "own", "none"]
# What no service of a job has to speak.
UNSERVED: frozenset[WireFormat] = frozenset({"own", "none"})


@dataclass(frozen=True)
class Launch:
    """What a harness knows of one attempt. `home` is its own folder for HOME and settings.

    `tools_file` is what the tools read, `mcp_file` how a client starts the server of them; `resume` is the session that
    is to go on, None for a new one.
    """

    kernel: str
    language: Language
    model: str
    attempt: int
    remaining_s: float
    folder: Path
    home: Path
    prompt_file: Path
    tools_file: Path
    mcp_file: Path
    tools: tuple[Tool, ...] = ()
    endpoint: Endpoint | None = None
    effort: str | None = None
    temperature: float | None = None
    resume: str | None = None


@dataclass(frozen=True)
class Command:
    """An argv and what it needs in the environment beyond the driver's allow-list.

    The client reads `stdin`, a file, to its end; without one its input is closed. A sealed client sees of itself the
    program `argv[0]`, with its package and what runs it, and the same of further `programs` that it starts; `needs` are
    more files and folders to show it, read-only.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    needs: tuple[Path, ...] = ()
    stdin: Path | None = None
    programs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Event:
    """What one line of a client's stream says; most lines say nothing.

    `tools` are those of our tools that the client says it has, `usage` what it used since the last event, `end` how it
    says itself that it ended, `session` what `Launch.resume` would name. A `partial` line is a piece of a later one,
    which the log leaves out.
    """

    tools: frozenset[str] | None = None
    usage: Usage = NOTHING
    model: str | None = None
    end: End | None = None
    session: str | None = None
    partial: bool = False


class Harness(Protocol):
    """One program that drives a model; `log_name` is the file of an attempt's evidence that keeps its stream."""

    name: str
    version: str
    log_name: str
    wire_format: WireFormat
    resumes: bool

    def __init__(self, options: Mapping[str, str]) -> None:
        """Made with the options of a setup; raises ConfigError for one that it does not know."""

    def check(self, setup: SetupRecord) -> None:
        """Raises ConfigError when the client cannot work as the setup says, its effort or its temperature."""

    def command(self, launch: Launch) -> Command:
        """How to start the client for one attempt, or one session of it; `read` then gets the lines of that session."""

    def read(self, line: bytes) -> Event:
        """The meaning of one line of the client's output; never raises, whatever the line holds."""


_PARTS = {name for name in (*vars(Harness), *Harness.__annotations__) if not name.startswith("_")}
_MEND = "mend the entry point in the package's pyproject.toml, then install the package again"


def load_harness(name: str, options: Mapping[str, str]) -> Harness:
    """The installed harness of that name, made with `options`.

    Raises:
        ConfigError: there is none, it cannot be loaded, it lacks a part of the seam, or it refuses the options.
    """
    made = harness_class(name)(options)
    if missing := sorted(_PARTS.difference(dir(made))):
        raise ConfigError(f"harness {name} lacks {', '.join(missing)}; docs/harnesses.md says what they do")
    return made


def installed_harnesses() -> dict[str, "EntryPoint"]:
    """Name → entry point of every harness that a package brings."""
    # Importing this takes long, and a client that plays a plan needs no registry.
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def harness_class(name: str) -> type[Harness]:
    """What the entry point of that name announces; raises ConfigError when there is none or it is no class."""
    known = installed_harnesses()
    if name not in known:
        raise ConfigError(
            f"unknown harness '{name}'; {did_you_mean(name, sorted(known))}; mend HARNESS, or install what brings it"
        )
    announced = f"harness {name} = {known[name].value}"
    try:
        found = known[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{announced}: cannot be loaded: {error}; {_MEND}") from error
    if not isinstance(found, type):
        raise ConfigError(f"{announced}: is no class; {_MEND}")
    return found


def check_budget_mode(harness: Harness | type[Harness], mode: BudgetMode) -> None:
    """Raises ConfigError for a budget of time and a harness whose sessions cannot go on."""
    if mode is BudgetMode.TIME and not harness.resumes:
        raise ConfigError(
            f"AGENT_BUDGET_MODE=time resumes a session that ends early, and harness {harness.name} cannot; "
            "choose a harness that does, or AGENT_BUDGET_MODE=iterations"
        )
