"""Harness `scripted`: replays a plan of candidate files and needs no model."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from agent.harnesses import Command, Event, Launch, WireFormat
from agent.harnesses.stream import read_line
from bench.errors import ConfigError
from bench.judge.schemas import Closed, SetupRecord
from bench.wording import first_fault


class CallStep(Closed):
    """Copy `file` over the kernel's file and call a tool on it; with `attempt`, in that attempt only."""

    tool: Literal["score", "submit"]
    file: Path
    attempt: int | None = None


class ExitStep(Closed):
    """Exit with `code` at once, as a client does that dies: without a result."""

    tool: Literal["exit"]
    code: int = 1
    attempt: int | None = None


class SleepStep(Closed):
    """Do nothing for `seconds`."""

    tool: Literal["sleep"]
    seconds: float
    attempt: int | None = None


Step = Annotated[CallStep | ExitStep | SleepStep, Field(discriminator="tool")]
_PLAN = TypeAdapter(dict[str, tuple[Step, ...]])


def read_plan(path: Path) -> dict[str, tuple[CallStep | ExitStep | SleepStep, ...]]:
    """A plan file: kernel → its steps.

    Raises:
        ConfigError: naming the file and its first fault.
    """
    try:
        return _PLAN.validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); write the plan there") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_fault(error)}") from error


class Scripted:
    """Option `plan`: the path of the plan file."""

    name, log_name = "scripted", "scripted.log"
    wire_format: WireFormat = "none"
    resumes = False

    def __init__(self, options: Mapping[str, str]) -> None:
        if set(options) != {"plan"}:
            given = ", ".join(sorted(options)) or "none"
            raise ConfigError(f"harness scripted takes one option, 'plan' (a JSON file); given: {given}")
        from importlib.metadata import version

        self.version = version("kernelcourt")
        self._plan = Path(options["plan"]).resolve()
        self._steps = read_plan(self._plan)

    def check(self, setup: SetupRecord) -> None:
        """A plan is played whatever the setup says of a model."""

    def command(self, launch: Launch) -> Command:
        # -P: the agent's folder, where it starts, must not shadow a module.
        player = (sys.executable, "-P", "-m", "agent.harnesses.scripted_player")
        files = {step.file for step in self._steps.get(launch.kernel, ()) if isinstance(step, CallStep)}
        return Command((*player, str(self._plan), str(launch.tools_file)), needs=(self._plan, *sorted(files)))

    def read(self, line: bytes) -> Event:
        return read_line(line)
