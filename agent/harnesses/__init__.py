"""The seam between the driver and the programs that drive a model as an agent: one file a harness."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from agent.budget import BudgetMode
from agent.endpoint import Endpoint
from agent.tools.offered import Tool
from agent.usage import NOTHING, Usage
from bench.errors import ConfigError
from bench.judge.schemas import End, Language, SetupRecord

GROUP = "kernelcourt.harnesses"
# `own`: a client that asks nobody but its vendor's service; `none`: one that needs no model.
WireFormat = Literal["messages", "chat", "responses", "own", "none"]
# What no service of a job has to speak.
UNSERVED: frozenset[WireFormat] = frozenset({"own", "none"})


@dataclass(frozen=True)
class Launch:
    """What a harness is told about one attempt. `home` is its own folder for HOME and settings.

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

    `tools` are the tools announced at the start, `usage` what was used since the last event, `end` how the
    client's own structured result says that it ended, `session` what a later attempt could resume. A `partial` line
    is a piece of a later one, and the log does without it.
    """

    tools: frozenset[str] | None = None
    usage: Usage = NOTHING
    model: str | None = None
    end: End | None = None
    session: str | None = None
    partial: bool = False


class Harness(Protocol):
    """One program that drives a model. It is made with the setup's options (names to texts).

    `announces` is the name by which the client's first event lists one of our tools, `log_name` the file of an
    attempt's evidence that keeps the client's stream.
    """

    name: str
    version: str
    log_name: str
    wire_format: WireFormat
    resumes: bool

    def announces(self, tool: Tool) -> str: ...

    def check(self, setup: SetupRecord) -> None:
        """Raises ConfigError when the client cannot work as the setup says, its effort or its temperature."""

    def command(self, launch: Launch) -> Command:
        """How to start the client for one attempt; its stream is read next."""

    def read(self, line: bytes) -> Event:
        """The meaning of one line of the client's output; never raises, whatever the line holds."""


def load_harness(name: str, options: Mapping[str, str]) -> Harness:
    """The installed harness of that name.

    Raises:
        ConfigError: no such harness, or it refuses the options.
    """
    made: Harness = _installed(name)(options)
    return made


def check_budget_mode(name: str, resumes: bool, mode: BudgetMode) -> None:
    """Raises ConfigError for a budget of time and a harness whose sessions cannot go on."""
    if mode is BudgetMode.TIME and not resumes:
        raise ConfigError(
            f"AGENT_BUDGET_MODE=time resumes a session that ends early, and harness {name} cannot; "
            "choose a harness that does, or AGENT_BUDGET_MODE=iterations"
        )


def can_resume(name: str) -> bool:
    """Whether sessions of the installed harness of that name can go on; raises ConfigError when there is none."""
    return bool(_installed(name).resumes)


def _installed(name: str) -> Any:
    """The class of a harness."""
    # Dear to import, and a client that plays a plan needs no registry.
    from importlib.metadata import entry_points

    known = {point.name: point for point in entry_points(group=GROUP)}
    if name not in known:
        installed = ", ".join(sorted(known)) or "none"
        raise ConfigError(f"unknown harness '{name}'; installed ones: {installed}")
    return known[name].load()
