"""The judge's end of the measuring process: start it, hand it an order, read the report, end it."""

import asyncio
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from pydantic import Field, ValidationError

from bench import process
from bench.errors import EnvironmentFault, JudgeFault
from bench.judge.children import exited
from bench.judge.schemas import Closed
from bench.records import GradeOrder, GradeReport, Lacking, ProfileOrder, ProfileReport, WarmOrder
from bench.wording import first_fault


class Ready(Closed):
    """What the measuring process found when it graded its own references."""

    sandbox: str
    device: str = "cpu"
    device_name: str = ""
    cores: dict[str, Any] = Field(default_factory=dict)

    @property
    def timing(self) -> tuple[int, ...]:
        """Cores that timed code runs on."""
        return tuple(self.cores.get("timing", ()))


class _Line(Closed):
    """One line of the measuring process: exactly one of these is there."""

    ready: Ready | None = None
    unfit: str | None = None
    report: GradeReport | None = None
    profiled: ProfileReport | None = None
    lacking: Lacking | None = None
    warmed: str | None = None
    fault: str | None = Field(default=None, description="Why this order was not graded; the process goes on.")


class MeasuringProcess:
    """One run of the measuring process, apart from the web server so that neither disturbs the other.

    Its pipes are read by a thread of its own: a report may be megabytes, and a thread has no line limit.
    """

    def __init__(self, argv: Sequence[str], errors: Path) -> None:
        self._thread = ThreadPoolExecutor(1, "measuring")
        try:
            with errors.open("ab") as sink:
                # Started here and not in that thread: it dies with the thread that starts it.
                pipe = subprocess.PIPE
                self._child = process.spawn(argv, output=pipe, errors=sink, stdin=pipe, holds_stops=True)
        except OSError as error:
            raise EnvironmentFault(f"{errors}: cannot be written ({error.strerror})") from error
        self._errors = errors

    async def ready(self) -> Ready:
        """Wait until the process has graded itself.

        Raises:
            EnvironmentFault: it is unfit, or ended before it was ready; the message says why.
        """
        try:
            line = await self._in_thread(self._next_line)
        except JudgeFault as error:
            raise EnvironmentFault(str(error)) from error
        if line.ready is None:
            raise EnvironmentFault(
                line.unfit or f"the measuring process began with something else than a record; see {self._errors}"
            )
        return line.ready

    async def grade(self, order: GradeOrder) -> GradeReport:
        """Have one order graded.

        Raises:
            JudgeFault: the process reported a fault of its own, or ended (then it is not alive).
        """
        line = await self._asked(b'{"order":%s}\n' % order.model_dump_json().encode())
        if line.report is None:
            raise self._unexpected(line)
        if line.report.grade_id != order.grade_id:
            self.kill()
            raise JudgeFault(f"the measuring process reported grade {line.report.grade_id} instead")
        return line.report

    async def profile(self, order: ProfileOrder) -> ProfileReport | Lacking:
        """Have one profile made. Raises JudgeFault, as `grade` does."""
        line = await self._asked(b'{"profile":%s}\n' % order.model_dump_json().encode())
        found = line.profiled or line.lacking
        if found is None:
            raise self._unexpected(line)
        return found

    async def warm(self, order: WarmOrder) -> None:
        """Have one kernel's denominators built. Raises JudgeFault, as `grade` does."""
        line = await self._asked(b'{"warm":%s}\n' % order.model_dump_json().encode())
        if line.warmed != order.kernel:
            raise self._unexpected(line)

    async def _asked(self, line: bytes) -> _Line:
        try:
            return await self._in_thread(self._exchange, line)
        except JudgeFault:
            self.kill()
            raise

    def _unexpected(self, line: _Line) -> JudgeFault:
        return JudgeFault(line.fault or f"the measuring process answered something else; see {self._errors}")

    async def ended(self) -> int:
        """Return code of the process, once it has ended."""
        return await exited(self._child)

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def kill(self) -> None:
        """End the process and whatever it started; a grade under way raises JudgeFault."""
        process.kill_tree(self._child)
        self._thread.shutdown(wait=False)

    async def _in_thread(self, call: Any, *arguments: bytes) -> _Line:
        found: _Line = await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
        return found

    def _exchange(self, order: bytes) -> _Line:
        try:
            stdin = _opened(self._child.stdin)
            stdin.write(order)
            stdin.flush()
        except (OSError, ValueError) as error:
            raise JudgeFault(f"the measuring process is gone ({error}); see {self._errors}") from error
        return self._next_line()

    def _next_line(self) -> _Line:
        text = _opened(self._child.stdout).readline()
        if not text.endswith(b"\n"):
            raise JudgeFault(f"the measuring process ended in the middle of its work; see {self._errors}")
        try:
            return _Line.model_validate_json(text)
        except ValidationError as error:
            raise JudgeFault(f"the measuring process wrote no record: {first_fault(error)}") from error


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
