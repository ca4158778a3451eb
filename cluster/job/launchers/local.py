"""Starts the steps of a job on this machine, which stands for every node of the allocation."""

import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bench import process
from bench.errors import EnvironmentFault
from bench.judge.schemas import Device
from cluster.environment import allowed
from cluster.job.allocation import DEFAULT_PORT, Host
from cluster.job.gpus import gpus_here
from cluster.job.launchers import Running, Step
from cluster.job.step import OUTER_MASKS

LOOPBACK = "127.0.0.1"
_PORTS = range(DEFAULT_PORT, 32000, 2)


class LocalLauncher:
    """Implements `Launcher`: `nodes` times this machine, for at most `wall_s` seconds (0: no limit)."""

    def __init__(self, nodes: int, wall_s: float = 0, device: str = "cpu") -> None:
        """Raises EnvironmentFault where judges are to grade on a device that is not here."""
        self.hosts: Sequence[Host] = [this_host(device)] * nodes
        self._end = time.monotonic() + wall_s if wall_s else None

    @property
    def seconds_left(self) -> float | None:
        return None if self._end is None else self._end - time.monotonic()

    def first_port(self, count: int) -> int:
        return free_ports(count)

    @property
    def kill_in_s(self) -> float | None:
        return None

    def start(self, step: Step) -> Running:
        """Start a step that ends with this process."""
        # A launcher that is killed must not leave judges behind on a laptop; each step cleans up on TERM.
        argv = ["setpriv", "--pdeathsig", "TERM", "--", *step.wrapped]
        step.log.parent.mkdir(parents=True, exist_ok=True)
        masks = OUTER_MASKS.values() if step.gpus else ()  # its GPUs are among those that the operator may use
        env = {**allowed(os.environ, (*step.keys, *masks)), **step.env}
        with step.log.open("ab") as log:
            return Running(step, process.spawn(argv, env=env, output=log))

    def stop(self, steps: Sequence[Running]) -> None:
        for running in steps:
            with suppress(ProcessLookupError):
                running.child.terminate()

    def kill(self, steps: Sequence[Running]) -> None:
        for running in steps:
            process.kill_tree(running.child)


def this_host(device: str = "cpu") -> Host:
    """This machine with the CPUs that this process may use, and its GPUs where `device` is one.

    Raises:
        EnvironmentFault: it has no such GPU, or no compiler for it.
    """
    cpus = sorted(
        (_topology(cpu, "physical_package_id"), _topology(cpu, "core_id"), cpu) for cpu in os.sched_getaffinity(0)
    )
    gpus = gpus_here(device, os.environ) if device != Device.CPU else 0
    return Host(LOOPBACK, tuple(cpu for _, _, cpu in cpus), len({package for package, _, _ in cpus}), gpus=gpus)


def _topology(cpu: int, what: str) -> int:
    """Socket or core of a CPU; machines that do not say are one socket."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/{what}")
    return int(path.read_text(encoding="ascii")) if path.exists() else 0


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
