"""Fixtures that several test files share, how a command line is run, and which tests share a worker."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from kernels import only_built

from bench.cli import main
from bench.errors import EnvironmentFault

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


@pytest.fixture
def ungated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Submissions run whatever they are made of: for tests of the walls that stand behind the gates."""
    monkeypatch.setattr("bench.gates.artifacts.make", only_built)


@pytest.fixture
def emulated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """HIP is built for the emulator and for no GPU, which is two thirds of what its grade costs."""
    monkeypatch.setattr("bench.gates.artifacts.compiled_for_a_gpu", for_no_gpu)


def for_no_gpu(*_: object) -> NoReturn:
    """Stands in for the compiler of a GPU, where something else is tested."""
    raise EnvironmentFault("no compiler here")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root folder."""
    return REPOSITORY


def run_program(*argv: str | Path, cwd: Path = REPOSITORY, env: Mapping[str, str] = {}, timeout_s: float = 600) -> Ran:
    """A program as a process, run to its end with nothing on its standard input; `env` adds variables."""
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def kcourt_process(tmp_path: Path) -> Callable[..., Ran]:
    """Runs `kcourt` as a process in a folder of the test's own; `env` adds variables."""
    return partial(run_program, Path(sys.executable).with_name("kcourt"), cwd=tmp_path)


@pytest.fixture
def kcourt(tmp_path: Path) -> Callable[..., Ran]:
    """Runs `kcourt` in this process, which saves a second, in a folder of the test's own; `env` adds variables."""
    return partial(kcourt_here, tmp_path)


def kcourt_here(folder: Path, *arguments: str | Path, env: Mapping[str, str] = {}) -> Ran:
    """A command line of `kcourt` run in this process; an error that it does not word is raised."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["kcourt", *map(str, arguments)])
        for name, value in env.items():
            patch.setenv(name, value)
        main()
    return Ran(int(ended.value.code or 0), *(stream.buffer.getvalue().decode() for stream in (out, err)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a fixture of their module stay on one worker, which makes it once."""
    for item in items:
        fixtures = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
        if any(found[-1].scope == "module" for found in fixtures) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
