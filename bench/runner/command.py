"""The command line of a runner's process, and what it needs to see of the host, by the submission's language."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.build.gpu_library import Kit, own_library
from bench.build.toolchain import Artifact
from bench.cache import content_key
from bench.errors import JudgeFault
from bench.gates.imports import python_modules, runtime_libraries
from bench.judge.schemas import Language
from bench.native import helper
from bench.runner.buffers import Arena
from bench.task import Sizes

_HERE = Path(__file__).parent
_HOST, _DEVICE_HOST = _HERE / "host.py", _HERE / "device_host.py"


@dataclass(frozen=True)
class Command:
    """argv, and what it needs to see beside the toolchain.

    `code` names the libraries around a call (globs) that a submission could write to, because its interpreter can.
    """

    argv: tuple[str, ...]
    visible: tuple[Path, ...]
    code: tuple[str, ...] = ()


def runner_command(
    artifact: Artifact,
    shim: Path,
    arena: Arena,
    folder: Path,
    control: Sequence[str],
    sealed: bool,
    workspace: bool,
    checks: tuple[str, ...],
    kit: Kit | None,
    planned: Sequence[Sizes],
) -> Command:
    """`control` are the first arguments of all: the descriptor of the control page, and the cores."""
    if artifact.language is Language.TRITON:
        when = "trusted" if artifact.trusted else "last" if sealed else "never"
        runner = _triton(json.dumps(arena.rehearsals(workspace, planned)), folder, control, when, kit)
    elif artifact.language is Language.PYTHON:
        runner = _python(artifact, control, sealed)
    else:
        runner = _native(control, sealed, checks, kit)
    lent = (str(shim), str(artifact.path), arena.task.name, *arena.descriptions(workspace))
    return Command((*runner.argv, *lent), (*runner.visible, shim, artifact.path), runner.code)


def _native(control: Sequence[str], sealed: bool, checks: tuple[str, ...], kit: Kit | None) -> Command:
    program = helper.runner_program(checks)
    # What of the system it may call: 1 as little as there is, 2 reading files, 3 what a device's library calls.
    seal = 0 if not sealed else 3 if kit else 2 if checks else 1
    device = [own_library(kit, "borrow.hip"), *kit.runtime] if kit else []
    argv = (str(program), *control, str(seal), str(device[0]) if device else "-")
    return Command(argv, (program, *device))


def _python(artifact: Artifact, control: Sequence[str], sealed: bool) -> Command:
    when = ("last" if artifact.binding else "first") if sealed else "never"
    waiter = helper.python_waiter()
    argv = (sys.executable, "-I", str(_HOST), *control, when, str(waiter), ",".join(python_modules()))
    return Command(argv, (*_interpreter(), _HOST, waiter))


def _triton(rehearsals: str, folder: Path, control: Sequence[str], when: str, kit: Kit | None) -> Command:
    if kit is None:
        raise JudgeFault("Triton runs on a GPU; this judge has none")
    waiter, library = helper.python_waiter(), own_library(kit, "borrow.hip")
    planned = folder / f"rehearsals-{content_key(rehearsals)}.json"  # both sides of a grade have this folder
    planned.write_text(rehearsals, encoding="utf-8")
    pieces = (str(waiter), str(library), str(kit.dlpack), str(planned))
    argv = (sys.executable, "-I", str(_DEVICE_HOST), *control, when, *pieces)
    visible = (*_interpreter(), _DEVICE_HOST, waiter, library, *kit.runtime, *kit.visible)
    return Command(argv, visible, (waiter.name, library.name, *runtime_libraries(kit.device)))


def _interpreter() -> list[Path]:
    """Where the judge's Python and its packages lie."""
    return sorted({Path(sys.prefix), Path(sys.base_prefix)} - {Path("/usr")})
