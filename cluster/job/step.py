"""Runs one step of a job on its node and writes how it began and how it ended, which no launcher is trusted to say.

`python -m cluster.job.step [--gpus 0,1] [--vendor cuda] RECORDS NAME ROLE COMMAND...`
"""

import argparse
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from agent.journal import utc_now, write_whole
from bench import process
from cluster.job.records import BeginRecord, EndRecord, StepState, begin_record, end_record

# Slurm sends a signal to every process of a step. By default all ignore this one, so that it reaches us alone: TERM
# to all would end runners and compilers in the middle of a grade.
STOP = signal.SIGURG
_STOPS = (STOP, signal.SIGTERM, signal.SIGINT)
# What Slurm and the vendors' runtimes read, by the device that they are for. AMD's runtime counts whatever else says
# which GPUs it may use, CUDA's variable too, within its own mask.
OUTER_MASKS = {"hip": "ROCR_VISIBLE_DEVICES", "cuda": "CUDA_VISIBLE_DEVICES"}
_MASKS = (*OUTER_MASKS.values(), "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")


def masks(environ: Mapping[str, str], gpus: Sequence[int], vendor: str = "") -> dict[str, str]:
    """Variables that show a step the given GPUs of those that it was allotted, and no others.

    Indices count the devices of the mask that the scheduler has set, else those of the node. That mask is the one of
    the vendor (hip, cuda), or, where he is not known, whichever is set.
    """
    if not gpus:
        return {}
    known = [OUTER_MASKS[vendor]] if vendor else list(OUTER_MASKS.values())
    outer = [name for name in known if environ.get(name)] or known
    allotted = environ.get(outer[0], "").split(",") if environ.get(outer[0]) else []
    chosen = [allotted[gpu] if gpu < len(allotted) else str(gpu) for gpu in gpus]
    return {name: ",".join(chosen) for name in outer}


def state_of(returncode: int, stopped: bool, out_of_memory: bool = False) -> StepState:
    """What the end of a step's command means; `returncode` is negative when a signal ended it."""
    if out_of_memory and returncode == -signal.SIGKILL:
        return StepState.OUT_OF_MEMORY
    if stopped:
        return StepState.STOPPED
    if returncode == 0:
        return StepState.SUCCEEDED
    return StepState.KILLED if returncode < 0 else StepState.FAILED


class StepRun:
    """One run of a step's command; the signals of `_STOPS` ask it to end."""

    def __init__(self, records: Path, name: str, role: str, gpus: Sequence[int], vendor: str) -> None:
        self._records, self._name, self._role = records, name, role
        self._masks = masks(os.environ, gpus, vendor)
        self._child: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self, argv: Sequence[str]) -> int:
        """Run the command to its end and leave nothing of it; returns its exit code as a shell would."""
        for number in _STOPS:
            signal.signal(number, self._stop)
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # they speak to the job as a whole
        process.adopt_orphans()
        self._write(begin_record(self._records, self._name), asdict(self._began()))
        started, kills = time.monotonic(), oom_kills()
        returncode = self._run_child(argv)
        process.sweep()
        self._write(end_record(self._records, self._name), asdict(self._ended(returncode, started, kills)))
        return returncode if returncode >= 0 else 128 - returncode

    def _began(self) -> BeginRecord:
        job, step = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_STEP_ID")
        slurm_step = f"{job}.{step}" if job and step else None
        devices = self._masks or {name: os.environ[name] for name in OUTER_MASKS.values() if name in os.environ}
        return BeginRecord(self._name, self._role, socket.gethostname(), os.getpid(), slurm_step, devices, utc_now())

    def _run_child(self, argv: Sequence[str]) -> int:
        if self._stopped:
            return -signal.SIGTERM
        env = {name: value for name, value in os.environ.items() if not self._masks or name not in _MASKS}
        command = ["setpriv", "--pdeathsig", "TERM", "--", *argv]
        self._child = process.spawn(command, env=env | self._masks, output=sys.stdout.fileno())
        if self._stopped:  # asked between the look above and the start
            self._child.terminate()
        return self._child.wait()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopped = True
        if self._child is not None and self._child.returncode is None:
            self._child.terminate()

    def _ended(self, returncode: int, started: float, kills: int) -> EndRecord:
        return EndRecord(
            name=self._name,
            role=self._role,
            host=socket.gethostname(),
            state=state_of(returncode, self._stopped, oom_kills() > kills),
            exit_code=returncode,
            stopped=self._stopped,
            seconds=round(time.monotonic() - started, 3),
            peak_memory_bytes=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        )

    @staticmethod
    def _write(path: Path, record: dict[str, object]) -> None:
        write_whole(path, json.dumps(record) + "\n", 0o644)


def oom_kills() -> int:
    """Processes of our cgroup that the kernel has ended for want of memory; 0 where that cannot be read."""
    counts = [_counted(file) for file in _memory_files(Path("/proc/self/cgroup").read_text(encoding="utf-8"))]
    return max(counts, default=0)


def _memory_files(cgroups: str) -> list[Path]:
    """Where the memory controllers of /proc/self/cgroup count; version 1 has a hierarchy of its own for them."""
    found = []
    for line in cgroups.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found.append(Path("/sys/fs/cgroup") / path.lstrip("/") / "memory.events")
        elif "memory" in controllers.split(","):
            found.append(Path("/sys/fs/cgroup/memory") / path.lstrip("/") / "memory.oom_control")
    return found


def _counted(file: Path) -> int:
    try:
        counts = dict(line.split() for line in file.read_text(encoding="ascii").splitlines())
    except (OSError, ValueError):
        return 0
    return int(counts.get("oom_kill", 0))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m cluster.job.step", description=__doc__)
    parser.add_argument("--gpus", default="", help="GPUs of the step, counted on its node: 0,1")
    parser.add_argument(
        "--vendor", default="", choices=("", *OUTER_MASKS), help="whose GPUs they are, if that is known"
    )
    parser.add_argument("records", type=Path, help="folder of the step's records")
    parser.add_argument("name")
    parser.add_argument("role")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    gpus = [int(gpu) for gpu in given.gpus.split(",") if gpu]
    return StepRun(given.records, given.name, given.role, gpus, given.vendor).run(given.command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
