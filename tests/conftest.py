"""Fixtures that several test files share."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How fast examples are made and run says how busy the machine is, and nothing of what is tested.
settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")

pytest_plugins = ["slurm", "slurm_jobs"]
# Whatever started the tests may ignore signals that they send to their children: nohup, a shell in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Ran:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on standard output."""
        return json.loads(self.out)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root folder."""
    return REPOSITORY


@pytest.fixture
def kcourt(tmp_path: Path) -> Callable[..., Ran]:
    """Runs `kcourt` as a process in a folder of the test's own; `env` adds variables."""

    def run(*arguments: str, timeout_s: float = 600, env: dict[str, str] | None = None) -> Ran:
        done = subprocess.run(
            [Path(sys.executable).with_name("kcourt"), *arguments],
            cwd=tmp_path,
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run
