"""Where untrusted builds and runs live: the limits they get, and the level of isolation that was reached."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import IO

from bench import process
from bench.errors import EnvironmentFault, UsageError
from bench.process import Completed, Limits

GIB = 1 << 30
BUILD_LIMITS = Limits(wall_s=60, cpu_s=60, memory_bytes=4 * GIB, processes=64, file_bytes=256 << 20)
RUN_OUTPUT_BYTES = 16 << 20


class Level(IntEnum):
    """How far a submission is shut in; higher is stronger. `limits` is resource limits alone."""

    LIMITS = 1
    USER = 2
    FULL = 3

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def parse(cls, text: str) -> "Level":
        """Raises UsageError when `text` names no level."""
        try:
            return cls[text.upper()]
        except KeyError:
            names = ", ".join(str(level) for level in cls)
            raise UsageError(f"'{text}' is no sandbox level; the levels are {names}") from None


@dataclass(frozen=True)
class Sandbox:
    """A level, and how commands run at it."""

    level: Level
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, argv: Sequence[str], limits: Limits, folder: Path) -> Completed:
        """Run an untrusted command in `folder` to its end, limited, and leave nothing of it behind."""
        return process.run(argv, limits=limits, cwd=folder, env=self.environment(folder))

    def spawn(
        self, argv: Sequence[str], limits: Limits, folder: Path, output: IO[bytes], pass_fds: Sequence[int]
    ) -> "subprocess.Popen[bytes]":
        """Start an untrusted command in `folder`; what it prints goes to `output`, for the log alone."""
        environment = self.environment(folder)
        return process.spawn(argv, limits=limits, cwd=folder, env=environment, output=output, pass_fds=pass_fds)

    def environment(self, folder: Path) -> dict[str, str]:
        """The whole environment of what runs inside: nothing of the judge's own."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "LC_ALL": "C.UTF-8",
            "OMP_WAIT_POLICY": "passive",
            **self.variables,
        }


def reach(allowed: str, threads: int = 1) -> Sandbox:
    """The strongest sandbox that this machine and this version offer.

    Raises:
        EnvironmentFault: it is weaker than `allowed`; the message says how to accept that.
    """
    wanted, reached = Level.parse(allowed), Level.LIMITS
    if shutil.which("prlimit") is None:
        raise EnvironmentFault(
            "'prlimit' is not here; install util-linux, the judge limits every build and run with it"
        )
    if reached < wanted:
        raise EnvironmentFault(
            f"the sandbox reaches level '{reached}' here, '{wanted}' is asked for; "
            f"say --allow-sandbox {reached} to grade with less isolation (the level is on every row)"
        )
    return Sandbox(reached, {"OMP_NUM_THREADS": str(threads)})


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder for one grade, gone afterwards."""
    base = os.environ.get("KCOURT_TMPDIR")
    with tempfile.TemporaryDirectory(prefix="kcourt-", dir=base) as folder:
        yield Path(folder)


def run_limits(buffer_bytes: int, cpu_s: int) -> Limits:
    """Limits of a runner that borrows `buffer_bytes` of the judge's memory."""
    return Limits(cpu_s=cpu_s, memory_bytes=buffer_bytes + 4 * GIB, processes=64, file_bytes=RUN_OUTPUT_BYTES)
