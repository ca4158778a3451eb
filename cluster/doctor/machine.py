"""Checks of this machine: Python, packages, compilers, sandbox, cores, folders, variables, ports."""

import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from bench.cli import JUDGE_PACKAGES
from bench.errors import EnvironmentFault, UsageError
from bench.wording import did_you_mean
from cluster.doctor.check import Check, State, Subject, halves, is_there, nearest_there
from cluster.doctor.storage import file_system
from cluster.job.hosts import EPHEMERAL

GIB = 1 << 30
# Under the first a job may end for want of space, under the second a small study may.
ROOMY_BYTES, LEAST_BYTES = 20 * GIB, GIB
OLDEST_PYTHON = (3, 11)
# Every variable of ours; docs/generate.py holds their meanings, and a test keeps the two equal.
VARIABLES = (
    "KCOURT_CACHE",
    "KCOURT_EXPERIMENTS_DIR",
    "KCOURT_LEASE_DIR",
    "KCOURT_SANDBOX",
    "KCOURT_SCRATCH",
    "KCOURT_SYSTEM",
    "KCOURT_SYSTEMS_FILE",
    "KCOURT_TASKS_DIR",
    "KCOURT_TMPDIR",
    "KCOURT_TOOLS",
)


def machine_checks(subject: Subject) -> Iterator[Check]:
    """What grading needs, where it is done, and what is written where."""
    yield _python()
    yield _packages()
    yield from (of_judges(check, subject) for check in (*_compilers(), _sandbox(), _cores()))
    yield from (_folder(name, path, grows) for name, path, grows in _folders(subject))
    yield file_system(subject)
    yield _variables(subject.environ)
    yield ports(subject)


def _python() -> Check:
    found = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro} ({sys.executable})"
    if sys.version_info < OLDEST_PYTHON:
        return Check("python", State.BLOCKS, found, "install Python 3.11 or newer and set the environment up again")
    return Check("python", State.OK, found)


def _packages() -> Check:
    """Grading needs the extra `judge`; a login node that only submits does without."""
    lacking = [name for name in JUDGE_PACKAGES if find_spec(name) is None]
    if lacking:
        advice = "this machine cannot grade; pip install 'kernelcourt[judge]'"
        return Check("packages", State.WARNING, f"missing: {', '.join(lacking)}", advice)
    return Check("packages", State.OK, "those of the extra judge")


def of_judges(check: Check, subject: Subject) -> Check:
    """What judges lack does not block a machine that only submits: there they run on other nodes."""
    if check.state is State.BLOCKS and subject.on_slurm:
        return replace(check, state=State.WARNING, advice=f"{check.advice}; jobs grade on compute nodes, ask there too")
    return check


def _compilers() -> Iterator[Check]:
    """Without C there is no denominator; another language is missed by its own submissions alone."""
    from bench.build.toolchain import toolchains

    for language, chain in toolchains().items():
        name = f"compiler {language}"
        try:
            yield Check(name, State.OK, chain.version)
        except EnvironmentFault as fault:
            what, advice = halves(fault)
            needed = language == "c"
            loss = "no kernel can be graded without it" if needed else f"submissions in {language} are not graded here"
            yield Check(name, State.BLOCKS if needed else State.WARNING, what, f"{advice}; {loss}")


def _sandbox() -> Check:
    from bench.sandbox import Level, reach

    try:
        reached = reach(str(Level.LIMITS))
    except (EnvironmentFault, UsageError) as fault:
        return Check("sandbox", State.BLOCKS, *halves(fault))
    found = f"level {reached.level} by {reached.by}"
    if reached.level is Level.LIMITS:
        return Check("sandbox", State.WARNING, found, _why_no_more())
    return Check("sandbox", State.OK, found)


def _why_no_more() -> str:
    """What a judge says that is asked for more than resource limits."""
    from bench.sandbox import Level, reach

    try:
        reach(str(Level.USER))
    except EnvironmentFault as fault:
        return str(fault)
    return ""


def _cores() -> Check:
    from bench.measure.cores import available_cores, plan_cores

    cores = available_cores()
    found = f"{len(cores)} of {os.cpu_count()} usable"
    try:
        plan = plan_cores(cores)
    except EnvironmentFault as fault:
        return Check("cores", State.BLOCKS, found, f"{fault}; give it another core")
    if not plan.spare:
        return Check("cores", State.WARNING, found, "builds wait while a grade is timed; a third core would do them")
    return Check("cores", State.OK, found)


def _folders(subject: Subject) -> Iterator[tuple[str, Path, bool]]:
    """Where something is written: its name, the folder, and whether it grows with every job."""
    import tempfile

    from bench.cache import default_cache
    from cluster.study.places import experiments_root

    yield "run directories", subject.run_root, True
    yield "cache", default_cache(), False
    yield "scratch", Path(os.environ.get("KCOURT_TMPDIR") or tempfile.gettempdir()), False
    yield "experiments", experiments_root(), False


def _folder(name: str, path: Path, grows: bool) -> Check:
    """Whether the folder, or the nearest one above it that exists, can be written to and has room."""
    there = nearest_there(path)
    if not os.access(there, os.W_OK | os.X_OK):
        return Check(name, State.BLOCKS, f"{path} cannot be written to", "give yourself the right, or name another")
    free = shutil.disk_usage(there).free
    found = f"{path}, {free / GIB:.0f} GiB free"
    if free < LEAST_BYTES:
        return Check(name, State.BLOCKS, found, "make room, or name a folder on another disk")
    if grows and free < ROOMY_BYTES:
        return Check(name, State.WARNING, found, "enough for small studies; RUN_ROOT names a folder on another disk")
    return Check(name, State.OK, found)


def _variables(environ: Mapping[str, str]) -> Check:
    ours = sorted(name for name in environ if name.startswith("KCOURT_"))
    if unknown := [name for name in ours if name not in VARIABLES]:
        advice = f"nothing reads {unknown[0]}; {did_you_mean(unknown[0], VARIABLES)}"
        return Check("variables", State.WARNING, f"unknown: {', '.join(unknown)}", advice)
    missing = [
        name for name in ours if name.endswith(("_DIR", "_FILE", "_TMPDIR")) and not is_there(Path(environ[name]))
    ]
    if missing:
        where = ", ".join(f"{name}={environ[name]}" for name in missing)
        return Check("variables", State.BLOCKS, f"{where} is not there", "make it, or correct the variable")
    shown = " ".join(f"{name}={environ[name]}" for name in ours)
    return Check("variables", State.OK, shown or "none set: every default holds")


def ports(subject: Subject, range_file: Path = EPHEMERAL) -> Check:
    """The judges' block lies below what the system hands out to connections, and, on this machine, nobody has it."""
    block = subject.ports
    found = f"{block.start}-{block.stop - 1}"
    below = int(range_file.read_text(encoding="ascii").split()[0])
    if block.stop > below:
        advice = f"set JUDGE_PORT so that the block ends below {below}"
        return Check("ports", State.WARNING, f"{found}: any connection may take a port from {below} on", advice)
    if taken := [port for port in block if _taken(port)]:
        advice = "a local job takes the next free block, unless JUDGE_PORT names one; so does a job on shared nodes"
        return Check("ports", State.WARNING, f"{found}: {', '.join(map(str, taken))} is taken here", advice)
    return Check("ports", State.OK, f"{found} are free here")


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
