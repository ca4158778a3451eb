"""What every profiler has in common: what it needs, how it is started, and what it counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench import process
from bench.errors import JudgeFault
from bench.judge.schemas import Preset
from bench.process import Limits
from bench.sandbox import Sandbox, scratch_folder

# More of a profiler's file is not read: a submission can write into it.
RECORDING_BYTES = 16 << 20
READ_LIMITS = Limits(wall_s=60, cpu_s=60, memory_bytes=4 << 30, processes=64, file_bytes=RECORDING_BYTES)


@dataclass(frozen=True)
class Place:
    """Where something was counted: a function in an object (its file name), a line of a source file (its name)."""

    function: str
    object: str
    file: str
    line: int


Counts = dict[Place, int]


@dataclass(frozen=True)
class Recording:
    """What a profiler left: its file, and what is needed to read that in the sandbox."""

    file: IO[bytes]
    library: Path
    sandbox: Sandbox
    folder: Path

    @property
    def path(self) -> str:
        """The file's name for a process that inherits it."""
        return f"/proc/self/fd/{self.file.fileno()}"

    def text(self) -> str:
        self.file.seek(0)
        return self.file.read(RECORDING_BYTES).decode(errors="replace")

    def asked(self, argv: Sequence[str], output: IO[bytes]) -> str:
        """What a command says of the recording; shut in, because a submission can write into what it reads.

        Raises:
            JudgeFault: the command failed; the message holds the end of its output.
        """
        inherited = [self.file.fileno()]
        child = self.sandbox.spawn(argv, READ_LIMITS, self.folder, output, inherited, [self.library])
        try:
            ended = process.ends_within(child, READ_LIMITS.wall_s)
        finally:
            process.kill_tree(child)
        output.seek(0)
        said = output.read(RECORDING_BYTES).decode(errors="replace")
        if not ended or child.returncode:
            raise JudgeFault(f"{argv[0]} could not read the profile (exit code {child.returncode}): {said[-500:]}")
        return said


@dataclass(frozen=True)
class Profiler:
    """One profiler.

    `unit` is what it counts, `preset` the size that it can bear, `replay_ms` for how much CPU time calls are repeated
    (0: one call), `sealed` whether the submission can have its system call filter, `variables` go into its
    environment. `flags()` are added to those of the build, `lacking(sandbox)` says why it cannot be used here, or
    nothing, and `command(path)` is what stands before the watched command and writes to `path`.
    """

    unit: str
    preset: Preset
    replay_ms: int
    sealed: bool
    variables: dict[str, str]
    flags: Callable[[], tuple[str, ...]]
    lacking: Callable[[Sandbox], str]
    command: Callable[[str], list[str]]
    read: Callable[[Recording], Counts]


def works(sandbox: Sandbox, argv: Sequence[str]) -> bool:
    """Whether a command is here and succeeds in the sandbox."""
    with scratch_folder() as folder:
        return sandbox.run(argv, READ_LIMITS, folder).ok
