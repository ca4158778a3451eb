"""What this machine has of what grading and launching need: one check a thing, each with what to do about it."""

import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from bench.cli import EXTRAS
from bench.errors import ConfigError, EnvironmentFault, KernelcourtError, UsageError
from bench.process import Limits, run
from bench.wording import nearest
from cluster.study.systems import System, choose_system

GIB = 1 << 30
# Under the first a job may end for want of space, under the second a small study may.
ROOMY_BYTES, LEAST_BYTES = 20 * GIB, GIB
OLDEST_PYTHON = (3, 11)
SLURM = ("sbatch", "squeue", "srun", "scontrol", "scancel")
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
)


class State(StrEnum):
    """`blocks`: the work that the check names cannot be done here; `warning`: it can, with less."""

    OK = "ok"
    WARNING = "warning"
    BLOCKS = "blocks"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: its state, what was found, and what to do where it is not ok."""

    name: str
    state: State
    found: str
    advice: str = ""


def examine(environ: Mapping[str, str]) -> list[Check]:
    """Every check of this machine; none changes it, but for helpers that are built into the cache."""
    system, chosen = _system(environ)
    checks = [_python(), _packages(), *(_of_judges(check, system) for check in (*_compilers(), _sandbox(), _cores()))]
    checks += [_folder(name, path, needed) for name, path, needed in _folders()]
    return [*checks, chosen, *_slurm(system), _runtime(system), _variables(environ), _ports()]


def blocks(checks: list[Check]) -> bool:
    return any(check.state is State.BLOCKS for check in checks)


def _halves(error: KernelcourtError) -> tuple[str, str]:
    """What happened, and what to do: an error says both, in this order."""
    what, _, advice = str(error).partition("; ")
    return what, advice


def _python() -> Check:
    found = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro} ({sys.executable})"
    if sys.version_info < OLDEST_PYTHON:
        return Check("python", State.BLOCKS, found, "install Python 3.11 or newer and set the environment up again")
    return Check("python", State.OK, found)


def _packages() -> Check:
    """Grading needs the extra `judge`; a login node that only submits does without."""
    lacking = sorted(name for name in EXTRAS["judge"] if find_spec(name) is None)
    if lacking:
        advice = "this machine cannot grade; pip install 'kernelcourt[judge]'"
        return Check("packages", State.WARNING, f"missing: {', '.join(lacking)}", advice)
    return Check("packages", State.OK, "those of the extra judge")


def _of_judges(check: Check, system: System | None) -> Check:
    """What judges lack does not block a machine that only submits: there they run on other nodes."""
    if check.state is State.BLOCKS and system is not None and system.facts.launcher == "slurm":
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
            what, advice = _halves(fault)
            needed = language == "c"
            loss = "no kernel can be graded without it" if needed else f"submissions in {language} are not graded here"
            yield Check(name, State.BLOCKS if needed else State.WARNING, what, f"{advice}; {loss}")


def _sandbox() -> Check:
    from bench.sandbox import Level, reach

    try:
        reached = reach(str(Level.LIMITS))
    except (EnvironmentFault, UsageError) as fault:
        return Check("sandbox", State.BLOCKS, *_halves(fault))
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


def _folders() -> Iterator[tuple[str, Path, bool]]:
    """Where something is written: its name, the folder, and whether it grows with every job."""
    import tempfile

    from bench.cache import default_cache
    from bench.places import run_root
    from cluster.study.places import experiments_root

    yield "run directories", run_root(), True
    yield "cache", default_cache(), False
    yield "scratch", Path(os.environ.get("KCOURT_TMPDIR") or tempfile.gettempdir()), False
    yield "experiments", experiments_root(), False


def _is_there(path: Path) -> bool:
    """Whether we can see something there; `Path.exists` raises below a folder that we may not search."""
    return os.path.exists(path)  # noqa: PTH110


def _folder(name: str, path: Path, grows: bool) -> Check:
    """Whether the folder, or the nearest one above it that exists, can be written to and has room."""
    there = next(folder for folder in (path, *path.absolute().parents) if _is_there(folder))
    if not os.access(there, os.W_OK | os.X_OK):
        return Check(name, State.BLOCKS, f"{path} cannot be written to", "give yourself the right, or name another")
    free = shutil.disk_usage(there).free
    found = f"{path}, {free / GIB:.0f} GiB free"
    if free < LEAST_BYTES:
        return Check(name, State.BLOCKS, found, "make room, or name a folder on another disk")
    if grows and free < ROOMY_BYTES:
        return Check(name, State.WARNING, found, "enough for small studies; RUN_ROOT names a folder on another disk")
    return Check(name, State.OK, found)


def _system(environ: Mapping[str, str]) -> tuple[System | None, Check]:
    try:
        system = choose_system(environ)
    except ConfigError as error:
        return None, Check("system", State.BLOCKS, *_halves(error))
    return system, Check("system", State.OK, f"{system.name}: {system.facts.summary or 'of the site file'}")


def _slurm(system: System | None) -> Iterator[Check]:
    """Slurm is missed only where the system says that jobs go through it."""
    lacking = [name for name in SLURM if shutil.which(name) is None]
    if not lacking:
        yield Check("slurm", State.OK, shutil.which(SLURM[0]) or "")
    elif system is not None and system.facts.launcher == "slurm":
        advice = f"system '{system.name}' submits through Slurm; call from a login node, or load its module"
        yield Check("slurm", State.BLOCKS, f"missing: {', '.join(lacking)}", advice)
    else:
        yield Check("slurm", State.OK, "not here, and not needed: jobs run on this machine")


def _runtime(system: System | None) -> Check:
    runtime = system.facts.container_runtime if system else None
    if system is None or runtime in (None, "none"):
        return Check("container runtime", State.OK, "none: roles run on the host")
    if runtime == "ce":
        return _container_engine()
    if path := shutil.which(runtime or ""):
        return Check("container runtime", State.OK, f"{runtime} ({path})")
    advice = f"install it, or set CONTAINER_RUNTIME; where compute nodes alone have it: srun which {runtime}"
    return Check("container runtime", State.WARNING, f"'{runtime}' is not here", advice)


def _container_engine() -> Check:
    """The Container Engine is no program: it adds an option to srun."""
    if shutil.which("srun") and "--environment" in run(["srun", "--help"], limits=Limits(wall_s=30)).output:
        return Check("container runtime", State.OK, "ce: srun takes --environment")
    advice = "call from a login node of a system that has it, or set CONTAINER_RUNTIME to another"
    return Check("container runtime", State.WARNING, "ce: no srun here that takes --environment", advice)


def _variables(environ: Mapping[str, str]) -> Check:
    ours = sorted(name for name in environ if name.startswith("KCOURT_"))
    if unknown := [name for name in ours if name not in VARIABLES]:
        advice = f"nothing reads {unknown[0]}; did you mean {nearest(unknown[0], VARIABLES)}?"
        return Check("variables", State.WARNING, f"unknown: {', '.join(unknown)}", advice)
    missing = [
        name for name in ours if name.endswith(("_DIR", "_FILE", "_TMPDIR")) and not _is_there(Path(environ[name]))
    ]
    if missing:
        where = ", ".join(f"{name}={environ[name]}" for name in missing)
        return Check("variables", State.BLOCKS, f"{where} is not there", "make it, or correct the variable")
    shown = " ".join(f"{name}={environ[name]}" for name in ours)
    return Check("variables", State.OK, shown or "none set: every default holds")


def _ports() -> Check:
    from cluster.job.allocation import DEFAULT_PORT

    if not _taken(DEFAULT_PORT):
        return Check("ports", State.OK, f"{DEFAULT_PORT} is free")
    advice = "a local job takes the next free block; a Slurm job on shared nodes wants JUDGE_PORT"
    return Check("ports", State.WARNING, f"{DEFAULT_PORT} is taken", advice)


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
