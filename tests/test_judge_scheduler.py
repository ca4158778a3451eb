"""The queue in front of the measuring process: what hangs is ended, what dies is replaced, in order."""

import asyncio
import os
import sys
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import psutil
from judge_rank import wait_for
from living import family

from bench.judge.scheduler import Graded, Scheduler
from bench.judge.schemas import HealthStatus, Kind, Language
from bench.records import GradeOrder, WarmOrder
from bench.seeds import new_root

FAKE_WORKER = str(Path(__file__).with_name("fake_worker.py"))


def order(source: str = "// good") -> GradeOrder:
    return GradeOrder(
        grade_id=str(uuid.uuid4()),
        kind=Kind.SCORE,
        kernel="axpy",
        language=Language.C,
        source=source,
        protocol="mw2x5",
        seed=new_root().hex(),
    )


def scheduled(
    folder: Path, work: Callable[[Scheduler], Awaitable[None]], grade_limit_s: float = 60, to_warm: Sequence[str] = ()
) -> None:
    """Run `work` beside a scheduler of the fake measuring process."""

    async def main() -> None:
        argv = [sys.executable, FAKE_WORKER, str(folder)]
        cold = [WarmOrder(kernel=kernel) for kernel in to_warm]
        scheduler = Scheduler(argv, folder / "worker.log", 10, grade_limit_s, cold)
        running = asyncio.create_task(scheduler.run())
        try:
            await work(scheduler)
        finally:
            running.cancel()
            await asyncio.wait({running})

    asyncio.run(main())


def solved(graded: Graded) -> bool:
    return graded.report is not None and graded.report.outcome == "solved"


def worker() -> psutil.Process:
    (found,) = family(os.getpid(), FAKE_WORKER, recursive=False)
    return found


def test_a_grade_that_hangs_is_a_fault_of_the_judge(tmp_path: Path) -> None:
    async def work(scheduler: Scheduler) -> None:
        hanging = await scheduler.grade(order(f"// fake: wait {tmp_path / 'never'}"))
        assert hanging.report is None
        assert hanging.fault == "the grade took longer than 0.5 s and was ended"
        while not solved(graded := await scheduler.grade(order())):
            assert graded.fault == hanging.fault, "a busy machine may need longer for a good one too"

    scheduled(tmp_path, work, grade_limit_s=0.5)


def test_an_idle_process_that_dies_costs_no_grade(tmp_path: Path) -> None:
    async def work(scheduler: Scheduler) -> None:
        assert solved(await scheduler.grade(order()))
        first = worker()
        first.kill()
        while scheduler.status is HealthStatus.OK:
            await asyncio.sleep(0)
        assert solved(await scheduler.grade(order()))
        assert worker().pid != first.pid

    scheduled(tmp_path, work)


def test_orders_are_graded_as_they_came(tmp_path: Path) -> None:
    go = tmp_path / "go"

    async def work(scheduler: Scheduler) -> None:
        ended: list[int] = []

        async def graded(number: int, source: str) -> None:
            await scheduler.grade(order(source))
            ended.append(number)

        sources = [f"// fake: wait {go}", "// fake: fault", "// good", "// fake: die", "// good"]
        grading = [asyncio.create_task(graded(number, source)) for number, source in enumerate(sources)]
        await asyncio.to_thread(wait_for, Path(f"{go}.reached"))
        assert scheduler.depth == 4
        go.touch()
        await asyncio.gather(*grading)
        assert ended == [0, 1, 2, 3, 4]

    scheduled(tmp_path, work)


def test_a_program_that_is_missing_makes_the_judge_unfit(tmp_path: Path) -> None:
    async def main() -> None:
        scheduler = Scheduler(["no-such-program"], tmp_path / "worker.log", queue_limit=10)
        running = asyncio.create_task(scheduler.run())
        while scheduler.status is not HealthStatus.UNFIT:
            await asyncio.sleep(0)
        running.cancel()
        assert "no-such-program" in scheduler.reason

    asyncio.run(main())


def test_kernels_are_warmed_one_at_a_time_while_nothing_waits(tmp_path: Path) -> None:
    first, last = tmp_path / "first", tmp_path / "last"

    async def work(scheduler: Scheduler) -> None:
        await asyncio.to_thread(wait_for, Path(f"{first}.reached"))
        assert scheduler.status is HealthStatus.OK and scheduler.warmed == 0
        asked = asyncio.create_task(scheduler.grade(order()))
        await asyncio.sleep(0)
        first.touch()
        assert solved(await asked)
        assert scheduler.warmed == 1, "a request waits for the kernel that is being warmed, and for no other"
        last.touch()
        while scheduler.warmed < 2:
            await asyncio.sleep(0.01)
        assert solved(await scheduler.grade(order()))
        assert scheduler.warmed == 2, "one that cannot be warmed is left out"

    scheduled(tmp_path, work, to_warm=(str(first), "broken", str(last)))
