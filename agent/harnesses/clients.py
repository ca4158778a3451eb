"""Clients that are installed beside us: where they are, their versions, and what their harnesses have in common."""

import functools
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agent.harnesses.checks import known_effort, no_options, no_temperature
from bench import process
from bench.errors import ConfigError
from bench.judge.schemas import SetupRecord

# Where the checkout that this package runs from keeps the clients.
INSTALLED = Path(__file__).resolve().parents[2] / ".agents" / "node_modules" / ".bin"
_VERSION = re.compile(r"\d+(\.\d+)+\S*")
_ASKED_S = 60.0


@functools.cache
def find_client(program: str) -> Path:
    """The checkout's own client, else the one on PATH.

    Raises:
        ConfigError: it is in neither place.
    """
    found = installed_client(program)
    if found is None:
        raise ConfigError(
            f"the client '{program}' was not found; run `make setup-agents` (Claude Code, Codex), or put it on PATH"
        )
    return found


def installed_client(program: str) -> Path | None:
    """The checkout's own client, else the one on PATH, else None."""
    here = INSTALLED / program
    found = str(here) if os.access(here, os.X_OK) else shutil.which(program)
    return Path(found) if found else None


@functools.cache
def client_version(client: Path, question: str = "--version") -> str:
    """The version that a client names when it is asked, which it is once.

    Raises:
        ConfigError: it does not run, or names no version.
    """
    with tempfile.TemporaryDirectory() as home:
        env = {"HOME": home, "PATH": os.environ.get("PATH", os.defpath)}
        said = process.run([str(client), question], limits=process.Limits(wall_s=_ASKED_S), env=env)
    version = _VERSION.search(said.output) if said.ok else None
    if version is None:
        told = said.output.strip()[-200:]
        raise ConfigError(f"`{client} {question}` prints no version, but {told!r}; install the client again")
    return version[0].rstrip(".")


class ClientHarness:
    """The base of a harness whose client is an installed program.

    `program` is found by `find_client` and tells its version when it is called with `version_option`; `efforts` are
    those that it knows.
    """

    name: str
    program: str
    version_option = "--version"
    efforts: tuple[str, ...] = ()
    takes_temperature = True

    def __init__(self, options: Mapping[str, str]) -> None:
        no_options(self.name, options)

    @property
    def version(self) -> str:
        return client_version(find_client(self.program), self.version_option)

    def check(self, setup: SetupRecord) -> None:
        known_effort(self.name, setup, self.efforts)
        if not self.takes_temperature:
            no_temperature(self.name, setup)
        client_version(find_client(self.program), self.version_option)
