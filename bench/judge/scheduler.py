"""The queue in front of the measuring process: one grade or profile at a time, and a new process when one dies."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog

from bench import process
from bench.errors import EnvironmentFault, JudgeFault
from bench.judge.measuring import MeasuringProcess, Ready
from bench.judge.refusal import Refused
from bench.judge.schemas import HealthStatus
from bench.records import GradeOrder, GradeReport, Lacking, ProfileOrder, ProfileReport, WarmOrder

log = structlog.get_logger()
R = TypeVar("R")

# A grade that takes longer hangs: every run and build inside it has a limit of its own.
GRADE_LIMIT_S = 3600.0
RETRY_FIRST_S, RETRY_MAX_S = 1.0, 60.0


@dataclass(frozen=True)
class Turn(Generic[R]):
    """A report, or the judge's `fault`, and how long it waited and took, in milliseconds."""

    report: R | None
    fault: str | None
    queue_ms: float
    grade_ms: float


Graded = Turn[GradeReport]
Profiled = Turn[ProfileReport | Lacking]


@dataclass(frozen=True, eq=False)
class _Waiting(Generic[R]):
    """An order in the queue: what it is `about` (for the log), and how a process is asked for it.

    `done` is cancelled when the client that waits for it leaves.
    """

    about: dict[str, str]
    ask: Callable[[MeasuringProcess], Awaitable[R]]
    since: float
    done: "asyncio.Future[Turn[R]]"


class Scheduler:
    """Hands orders to the measuring process in the order they came. `run` is the loop that serves the queue.

    While none waits, the kernels of `to_warm` are warmed, one at a time; `warmed` counts those that are.
    """

    def __init__(
        self,
        worker_argv: Sequence[str],
        errors: Path,
        queue_limit: int,
        grade_limit_s: float = GRADE_LIMIT_S,
        to_warm: Sequence[WarmOrder] = (),
    ) -> None:
        self.status = HealthStatus.STARTING
        self.reason = "grading its own references"
        self.ready: Ready | None = None
        self._argv, self._errors = worker_argv, errors
        self._queue_limit, self._grade_limit_s = queue_limit, grade_limit_s
        self._queue: deque[_Waiting[Any]] = deque()
        self._cold = deque(to_warm)
        self.warmed = 0
        self._arrived = asyncio.Event()
        self._failures = 0

    @property
    def depth(self) -> int:
        """Orders that wait; the one being graded is not among them."""
        return len(self._queue)

    def check(self) -> None:
        """Raises Refused when another order cannot be taken now."""
        if len(self._queue) >= self._queue_limit:
            message = f"{len(self._queue)} requests wait already; send this one again in a minute, with its key"
            raise Refused(429, "queue_full", message)
        if self.status is HealthStatus.UNFIT:
            raise self._unfit()

    async def grade(self, order: GradeOrder) -> Graded:
        """Wait for an order's turn and its report.

        Raises:
            Refused: the judge became unfit before its turn came.
        """
        about = {"grade_id": order.grade_id, "kernel": order.kernel}
        return await self._turn(about, lambda worker: worker.grade(order))

    async def profile(self, order: ProfileOrder) -> Profiled:
        """Wait for an order's turn and its profile; cancelled, it loses its place. Raises Refused, as `grade` does."""
        return await self._turn({"kernel": order.kernel}, lambda worker: worker.profile(order))

    async def _turn(self, about: dict[str, str], ask: Callable[[MeasuringProcess], Awaitable[R]]) -> Turn[R]:
        waiting = _Waiting(about, ask, time.monotonic(), asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._arrived.set()
        try:
            return await waiting.done
        except asyncio.CancelledError:
            with contextlib.suppress(ValueError):  # its turn may have come
                self._queue.remove(waiting)
            raise

    async def run(self) -> None:
        """Start the measuring process and feed it, for ever; a process that ends is replaced."""
        while True:
            try:
                await self._serve_one_process()
            except EnvironmentFault as error:
                self._declare_unfit(str(error))
                pause_s = min(RETRY_FIRST_S * 2**self._failures, RETRY_MAX_S)
                self._failures += 1
                await asyncio.sleep(pause_s)

    async def _serve_one_process(self) -> None:
        worker = MeasuringProcess(self._argv, self._errors)
        try:
            self.ready = await worker.ready()
            self.status, self.reason, self._failures = HealthStatus.OK, "passed", 0
            log.info("measuring", sandbox=self.ready.sandbox, device=self.ready.device, cores=self.ready.cores)
            ended: asyncio.Future[Any] = asyncio.ensure_future(worker.ended())
            try:
                while worker.alive:
                    await self._next(worker, ended)
            finally:
                ended.cancel()
        finally:
            worker.kill()
            process.sweep()  # a killed one could not end what it had started, and it was our only child
        log.warning("measuring_process_ended", see=str(self._errors))
        self.status, self.reason = HealthStatus.STARTING, "the measuring process ended; a new one starts"

    async def _next(self, worker: MeasuringProcess, ended: "asyncio.Future[Any]") -> None:
        """Grade the next order or, while there is none, warm a kernel; return when the idle process has ended."""
        if not self._queue:
            await (self._warm_one(worker) if self._cold else self._idle(ended))
            return
        waiting = self._queue.popleft()
        if waiting.done.cancelled():
            return
        began = time.monotonic()
        report, fault = await self._asked(worker, waiting.ask, waiting.about)
        finished = time.monotonic()
        queue_ms, grade_ms = (began - waiting.since) * 1e3, (finished - began) * 1e3
        if not waiting.done.cancelled():
            waiting.done.set_result(Turn(report, fault, queue_ms, grade_ms))

    async def _idle(self, ended: "asyncio.Future[Any]") -> None:
        self._arrived.clear()
        arrival: asyncio.Future[Any] = asyncio.ensure_future(self._arrived.wait())
        await asyncio.wait({arrival, ended}, return_when=asyncio.FIRST_COMPLETED)
        arrival.cancel()

    async def _warm_one(self, worker: MeasuringProcess) -> None:
        """Warm the next kernel; one that cannot be warmed is left to be built on demand."""
        order = self._cold.popleft()
        _, fault = await self._asked(worker, lambda asked: asked.warm(order), {"warming": order.kernel})
        self.warmed += fault is None

    async def _asked(
        self, worker: MeasuringProcess, ask: Callable[[MeasuringProcess], Awaitable[R]], about: dict[str, str]
    ) -> tuple[R | None, str | None]:
        try:
            async with asyncio.timeout(self._grade_limit_s):
                return await ask(worker), None
        except TimeoutError:
            worker.kill()
            fault = f"the grade took longer than {self._grade_limit_s:g} s and was ended"
        except JudgeFault as error:
            fault = str(error)
        log.error("judge_fault", fault=fault, **about)
        return None, fault

    def _declare_unfit(self, reason: str) -> None:
        log.error("unfit", reason=reason)
        self.status, self.reason = HealthStatus.UNFIT, reason
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.done.cancelled():
                waiting.done.set_exception(self._unfit())

    def _unfit(self) -> Refused:
        return Refused(503, "unfit", f"this judge cannot grade: {self.reason}; tell the operator")
