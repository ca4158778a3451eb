"""Finds the coding clients that `make setup-agents` installs, and asks their versions."""

import functools
import os
import re
import shutil
import tempfile
from pathlib import Path

from bench import process
from bench.errors import ConfigError

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
        raise ConfigError(f"the client '{program}' is not here; run `make setup-agents`, or put it on PATH")
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
        raise ConfigError(f"{client}: names no version ({said.output.strip()[-200:]}); run `make setup-agents` again")
    return version[0].rstrip(".")
