"""A real Slurm cluster for the tests of one session, and what they do with its jobs and nodes."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import psutil
import pytest

from bench.errors import EnvironmentFault
from cluster import devcluster
from cluster.devcluster_files import DevCluster, folder_of
from cluster.devcluster_nodes import on_node, processes_in

SHAPE = devcluster.Shape(nodes=6)
LOOK_EVERY_S = 0.2
_NOT_ENDED = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"}
_ENDED = re.compile(r"JobState=(\w+).* ExitCode=(\d+):(\d+)")
_OF_A_TEST = re.compile(r"[tu](\d+)")


@dataclass(frozen=True)
class JobEnd:
    """How a job ended, in Slurm's word, with the exit code and signal of its batch script."""

    state: str
    exit_code: int
    signal: int


@dataclass
class Slurm:
    """The cluster of this session. Nodes that a test loses are healed after it."""

    cluster: DevCluster
    lost: set[str] = field(default_factory=set)

    @property
    def env(self) -> dict[str, str]:
        """Variables to add: Slurm's commands and Kernelcourt's then use this cluster."""
        return self.cluster.variables

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.cluster.members)

    def address(self, node: str) -> str:
        return devcluster.node_of(self.cluster, node).address

    def exec(self, node: str, argv: Sequence[str], timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command on a node."""
        return self._run(on_node(devcluster.node_of(self.cluster, node), argv), timeout_s)

    def cut(self, node: str) -> None:
        self.lost.add(node)
        devcluster.cut(devcluster.node_of(self.cluster, node))

    def kill(self, node: str) -> None:
        self.lost.add(node)
        devcluster.kill(devcluster.node_of(self.cluster, node))

    def heal(self, node: str) -> None:
        devcluster.heal(self.cluster, devcluster.node_of(self.cluster, node))
        self.lost.discard(node)

    def heal_all(self) -> None:
        for node in sorted(self.lost):
            self.heal(node)

    def settle(self, timeout_s: float = 120) -> None:
        """Wait until nothing but Slurm runs on the nodes: it ends what ran on while nobody reached a node."""
        deadline = time.monotonic() + timeout_s
        while strays := [line for node in self.cluster.members for line in _command_lines(node.namespace)]:
            assert time.monotonic() < deadline, f"{strays} run after {timeout_s} s"
            time.sleep(LOOK_EVERY_S)

    def command(self, *argv: str, timeout_s: float = 120) -> str:
        """What one of Slurm's commands prints; it must succeed."""
        done = self._run(argv, timeout_s)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout

    def sbatch(self, *argv: str) -> str:
        """Submit a job; its id."""
        return self.command("sbatch", "--parsable", *argv).strip()

    def scancel(self, *argv: str) -> None:
        """Cancel or signal a job. Of steps, scancel says that it failed when it did not."""
        self._run(["scancel", *argv], 120)

    def job(self, job_id: str) -> JobEnd:
        """A job as it is now."""
        printed = self.command("scontrol", "--oneliner", "show", "job", job_id)
        found = _ENDED.search(printed)
        assert found, printed
        return JobEnd(found[1], int(found[2]), int(found[3]))

    def job_state(self, job_id: str) -> str:
        return self.job(job_id).state

    def wait(self, job_id: str, timeout_s: float = 300) -> JobEnd:
        """Wait until a job has ended and its nodes are free; fails the test when that takes longer."""
        deadline = time.monotonic() + timeout_s
        while (now := self.job(job_id)).state in _NOT_ENDED:
            assert time.monotonic() < deadline, f"job {job_id} is {now.state} after {timeout_s} s"
            time.sleep(LOOK_EVERY_S)
        return now

    def node_states(self) -> dict[str, str]:
        """Slurm's word for the state of each node; a `*` behind it is a node that does not answer."""
        return {found.node.name: found.state for found in devcluster.status(self.cluster).nodes}

    def wait_for_node(self, node: str, *states: str, timeout_s: float = 120) -> None:
        deadline = time.monotonic() + timeout_s
        while (state := self.node_states()[node]) not in states:
            assert time.monotonic() < deadline, f"{node} is {state} after {timeout_s} s, not {' or '.join(states)}"
            time.sleep(LOOK_EVERY_S)

    def _run(self, argv: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        environ = devcluster.environment(self.cluster)
        return subprocess.run(
            argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s
        )


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """A cluster of six nodes, each with two CPUs and four GPUs that do nothing; ends with the session."""
    try:
        devcluster.require_means()
    except EnvironmentFault as fault:
        pytest.skip(str(fault))
    end_leftovers()
    name = f"t{os.getpid()}"
    try:
        yield Slurm(devcluster.start(name, SHAPE)[0])
    finally:
        devcluster.end(name)


@pytest.fixture(autouse=True)
def _healed(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    used = request.node.funcargs.get("slurm")  # nothing when it was skipped
    if used is not None:
        used.heal_all()
        used.settle()


def _command_lines(namespace: str) -> list[str]:
    """What runs in a network beside Slurm's own processes."""
    found = []
    for pid in processes_in(namespace):
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if not process.name().startswith("slurm") and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
    return found


def end_leftovers() -> None:
    """End the clusters of test processes that were killed before they could."""
    for folder in folder_of("t0").parent.glob("[tu]*"):
        found = _OF_A_TEST.fullmatch(folder.name)
        if found and not psutil.pid_exists(int(found[1])):
            devcluster.end(folder.name)
