"""Starts the steps of a job on this machine, which stands for every node of the allocation."""

import os
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bench import process
from bench.errors import EnvironmentFault
from cluster.job.allocation import DEFAULT_PORT, Host
from cluster.job.launchers import Step

LOOPBACK = "127.0.0.1"
_PORTS = range(DEFAULT_PORT, 32000, 2)


class LocalStep:
    """One process tree of this machine."""

    def __init__(self, step: Step, child: "subprocess.Popen[bytes]") -> None:
        self.step = step
        self._child = child

    def poll(self) -> int | None:
        return self._child.poll()

    def terminate(self) -> None:
        with suppress(ProcessLookupError):
            self._child.terminate()

    def wait(self, timeout_s: float) -> int | None:
        try:
            return self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        process.kill_tree(self._child)


class LocalLauncher:
    """Implements `Launcher`: `nodes` times this machine, for at most `wall_s` seconds (0: no limit)."""

    def __init__(self, nodes: int, wall_s: float = 0) -> None:
        self.hosts: Sequence[Host] = [this_host()] * nodes
        self._end = time.monotonic() + wall_s if wall_s else None

    @property
    def seconds_left(self) -> float | None:
        return None if self._end is None else self._end - time.monotonic()

    def first_port(self, count: int) -> int:
        return free_ports(count)

    def start(self, step: Step) -> LocalStep:
        """Start a step that ends with this process, pinned to its CPUs, its output in its log."""
        # A launcher that is killed must not leave judges behind on a laptop; each step cleans up on TERM.
        argv = ["setpriv", "--pdeathsig", "TERM", "--", *_pinned(step)]
        step.log.parent.mkdir(parents=True, exist_ok=True)
        with step.log.open("ab") as log:
            return LocalStep(step, process.spawn(argv, env={**os.environ, **step.env}, output=log))


def _pinned(step: Step) -> list[str]:
    if not step.cpus:
        return list(step.argv)
    return ["taskset", "-c", ",".join(map(str, step.cpus)), *step.argv]


def this_host() -> Host:
    """This machine with the CPUs that this process may use."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    packages = {_package(cpu) for cpu in cpus}
    return Host(LOOPBACK, cpus, len(packages))


def _package(cpu: int) -> str:
    """Socket of a CPU; machines that do not say are one socket."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id")
    return path.read_text(encoding="ascii").strip() if path.exists() else "0"


def free_ports(count: int) -> int:
    """First of `count` consecutive ports that nobody on loopback listens on now.

    Raises:
        EnvironmentFault: there is no such block; the message says what to set.
    """
    for first in _PORTS:
        if all(_free(port) for port in range(first, first + count)):
            return first
    raise EnvironmentFault(f"no {count} consecutive free ports from {_PORTS.start} on; set JUDGE_PORT to a free block")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
