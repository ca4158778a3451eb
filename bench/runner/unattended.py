"""A runner that makes one call by itself and ends: what a profiler of GPUs starts and watches, again and again."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import process
from bench.build.gpu_library import Kit
from bench.build.toolchain import Artifact
from bench.native import helper
from bench.native.helper import State, What
from bench.process import Completed, Limits
from bench.runner.buffers import Arena
from bench.runner.command import runner_command
from bench.runner.runner import CPU_S, REPORT_BYTES, tail
from bench.sandbox import Sandbox

# A profiler has threads and files of its own; a device's library maps more memory than there is.
LIMITS = Limits(cpu_s=CPU_S, processes=1024, file_bytes=256 << 20)


class Unattended:
    """The command line of a runner on borrowed buffers of a GPU, and the page that tells it what to call.

    Its system calls are not filtered: a profiler's library, which is in its process, connects to the profiler, starts
    threads and reads files. The sandbox's other walls stand, the gates have looked at the submission, and nothing that
    it does here is credited.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        folder: Path,
        artifact: Artifact,
        shim: Path,
        arena: Arena,
        cores: Sequence[int],
        workspace: bool,
        kit: Kit | None,
    ) -> None:
        """`folder` is where the profiler may write; nothing of the judge's is in there."""
        self._sandbox, self._folder = sandbox, folder
        self._fd, self._control = helper.control_page()
        control = (str(self._fd), ",".join(map(str, cores)))
        command = runner_command(artifact, shim, arena, folder, control, False, workspace, (), kit, arena.planned)
        self.argv, self._visible = command.argv, command.visible
        self._fds = [self._fd, *(buffer.fd for buffer in arena.lent(workspace))]

    def run(self, argv: Sequence[str], limit_s: float, visible: Sequence[Path], slots: Sequence[int]) -> Completed:
        """Run a command that starts the runner, or something else; `slots` are the words of the runner's call."""
        control = self._control
        control.slot[: len(slots)] = slots
        control.state, control.message = State.STARTING, b""
        # It is let in from the start, and asked already.
        control.admitted, control.go, control.what = 1, 1, What.WATCHED
        with tempfile.TemporaryFile() as log:
            seen = [*self._visible, *visible]
            child = self._sandbox.spawn(argv, LIMITS, self._folder, log, self._fds, seen, writes=True)
            try:
                in_time = process.ends_within(child, limit_s)
            finally:
                process.kill_tree(child)
            said = tail(log, REPORT_BYTES) + bytes(control.message).decode(errors="replace")
        return Completed(child.returncode, said, not in_time)

    @property
    def in_call(self) -> bool:
        """Whether the last runner was loading or calling the submission, and did not come back."""
        return self._control.state not in (State.STARTING, State.ENDED)

    def close(self) -> None:
        """Give back the control page."""
        del self._control
        os.close(self._fd)
