"""The router in front of a judge: passes requests on unread, and stays when the judge dies."""

import asyncio
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import process
from bench.config import JudgeConfig
from bench.errors import ConfigError
from bench.judge import serving
from bench.judge.downstream import Clients
from bench.judge.logs import log_to
from bench.judge.serving import DRAIN_S, FINISH_S, LOOPBACK
from bench.judge.supervisor import RestartPolicy, Supervisor
from bench.judge.upstream import Upstream

# How long a client may pause in the middle of a body.
STALL_S = 10.0
LOOPBACK_HOSTS = frozenset({LOOPBACK, "localhost", "::1"})


def run_router(
    config_path: Path,
    judge_argv: Sequence[str] | None = None,
    policy: RestartPolicy = RestartPolicy(),
    listening: Callable[[], None] = lambda: None,
    stall_s: float = STALL_S,
) -> int:
    """Serve a rank until SIGTERM or SIGINT: the router here, the judge as a child; the exit code.

    `listening` is called once the address is ours; `stall_s` is how long a body may stand still.

    Raises:
        ConfigError: the file is wrong, or a judge without a job secret would listen beyond this machine.
        EnvironmentFault: the router's address cannot be bound.
    """
    config = JudgeConfig.read(config_path)
    if config.secret_file is None and config.router_host not in LOOPBACK_HOSTS:
        raise ConfigError(
            f"{config_path}: router_host: an open judge serves {LOOPBACK} only, not {config.router_host};"
            " give it a secret_file"
        )
    process.adopt_orphans()
    log_to(config.log_dir / f"router-{config.rank}.log")
    argv = judge_argv or [sys.executable, "-m", "bench.judge.app", str(config_path)]
    output = config.log_dir / f"upstream-{config.rank}.log"
    listener = serving.listen(config.router_host, config.router_port)
    listening()
    return serving.run(_serve(config, listener, Supervisor(argv, output, policy), stall_s))


async def _serve(config: JudgeConfig, listener: socket.socket, supervisor: Supervisor, stall_s: float) -> int:
    asked = serving.ending()
    upstream = Upstream(LOOPBACK, config.judge_port)
    clients = Clients(upstream, supervisor, config.max_body_bytes, stall_s)
    server = await clients.listen(listener)
    watching = asyncio.create_task(supervisor.run())
    # It returns when the rank is lost, and the router stays to say so; a fault of its own ends the router.
    watching.add_done_callback(lambda task: asked.set() if task.exception() else None)
    await asked.wait()
    server.close()
    # A judge that is told to end may grade for DRAIN_S before its last answers come through here.
    await asyncio.gather(supervisor.stop(DRAIN_S + FINISH_S), clients.end(DRAIN_S + FINISH_S))
    await watching
    upstream.close()
    return 0
