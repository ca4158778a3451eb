"""The judge as a process: `python -m bench.judge.app <config.json>`, started and watched by its router."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog

from bench import process
from bench.config import JudgeConfig
from bench.errors import KernelcourtError
from bench.judge import serving
from bench.judge.logs import log_to
from bench.judge.metrics import Metrics
from bench.judge.routes import create_app
from bench.judge.scheduler import Scheduler
from bench.judge.search.config import KEY_VARIABLE
from bench.judge.search.searches import Searches
from bench.judge.service import GradeService
from bench.records import WarmOrder
from bench.results.shard import Shard
from bench.seeds import read_root

log = structlog.get_logger()


def run_judge(config_path: Path, worker_argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM; the exit code. The process ends with the router that started it."""
    process.die_with_parent()
    process.adopt_orphans()
    try:
        config = JudgeConfig.read(config_path)
        log_to(config.log_dir / f"upstream-{config.rank}.log")
        argv = worker_argv or [sys.executable, "-m", "bench.worker", str(config_path)]
        return serving.run(_serve(config, argv))
    except KernelcourtError as error:
        log.critical("judge_ends", error=str(error))
        return int(error.exit_code)


async def _serve(config: JudgeConfig, worker_argv: Sequence[str]) -> int:
    secret = read_root(config.secret_file) if config.secret_file else None
    asked = serving.ending()
    with Shard.open(config.shard, config.run_id, config.rank, config.setups) as shard:
        errors = config.log_dir / f"worker-{config.rank}.log"
        scheduler = Scheduler(worker_argv, errors, config.queue_limit, to_warm=_warm_orders(config))
        metrics = Metrics(lambda: scheduler.depth)
        service = GradeService(config, secret, shard, scheduler, metrics)
        searches = _searches(config, scheduler, metrics)
        server = serving.server(create_app(service, metrics, searches), service.health_json)
        listener = serving.listen(serving.LOOPBACK, config.judge_port)
        # It ends only by a fault of its own, and the judge with it: the supervisor starts a fresh one.
        measuring = asyncio.create_task(scheduler.run())
        answering = asyncio.create_task(server.serve(sockets=[listener]))
        leaving = asyncio.create_task(asked.wait())
        await asyncio.wait({measuring, answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not measuring.done():
            await service.drain(serving.DRAIN_S)
        server.should_exit = True
        await answering
        if searches:
            await searches.close()
        return await _end(measuring)


def _searches(config: JudgeConfig, scheduler: Scheduler, metrics: Metrics) -> Searches | None:
    """The web search, where the environment holds its key; what is started from here on does not inherit that."""
    key = os.environ.pop(KEY_VARIABLE, "")
    if not key:
        return None
    return Searches(config.search, key, lambda: scheduler.ready.timing if scheduler.ready else (), metrics.searched)


def _warm_orders(config: JudgeConfig) -> list[WarmOrder]:
    languages = tuple({setup.language for setup in config.setups.values()})
    presets = tuple({setup.preset for setup in config.setups.values()})
    return [WarmOrder(kernel=kernel, languages=languages, presets=presets) for kernel in config.to_warm]


async def _end(measuring: "asyncio.Task[None]") -> int:
    """End the measuring process; raises what it ended with, if it ended first."""
    measuring.cancel()
    await asyncio.wait({measuring})
    if not measuring.cancelled():
        measuring.result()
    return 0


if __name__ == "__main__":
    sys.exit(run_judge(Path(sys.argv[1])))
