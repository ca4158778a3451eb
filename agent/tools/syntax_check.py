"""Tool `syntax_check`: what a local compiler says about a file; nothing is linked or run."""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.tools.shown import capped
from agent.tools.spec import FileInput, Spec
from bench import process
from bench.errors import UsageError
from bench.judge.schemas import Language

if TYPE_CHECKING:
    from agent.tools.toolbox import Toolbox

LIMITS = process.Limits(wall_s=30, cpu_s=20, memory_bytes=2 << 30)
_PARSE = "import ast, sys; ast.parse(open(sys.argv[1], 'rb').read(), sys.argv[1])"
# The language standards of the judge's own builds, whose table does not travel with an agent.
CHECKERS: dict[Language, tuple[str, ...]] = {
    Language.C: ("gcc", "-std=gnu17", "-fsyntax-only", "-Wall", "-fopenmp"),
    Language.CPP: ("g++", "-std=gnu++20", "-fsyntax-only", "-Wall", "-fopenmp"),
    Language.FORTRAN: ("gfortran", "-std=gnu", "-fsyntax-only", "-Wall", "-fopenmp", "-ffree-line-length-none"),
    Language.PYTHON: (sys.executable, "-I", "-c", _PARSE),
}


@dataclass(frozen=True)
class SyntaxReport:
    """`messages` is the compiler's output, capped; warnings alone leave `ok` true."""

    ok: bool
    messages: str


def syntax_check(path: Path, language: Language) -> SyntaxReport:
    """Check one source file.

    Raises:
        EnvironmentFault: the compiler is not installed here; the message names it.
    """
    # gfortran writes a file for each module that it meets, into the folder that it runs in.
    with tempfile.TemporaryDirectory() as scratch:
        done = process.run([*CHECKERS[language], str(path.resolve())], limits=LIMITS, cwd=Path(scratch))
    return SyntaxReport(done.ok, done.output)


def _checked(box: "Toolbox", given: FileInput) -> dict[str, Any]:
    settings, name = box.settings, box.file_of(given)
    if not (settings.folder / name).is_file():
        raise UsageError(f"{name}: no such file in your folder; write it first")
    report = syntax_check(settings.folder / name, settings.language)
    return {"ok": report.ok, "messages": capped(report.messages)}


SPEC = Spec("Say what a local compiler thinks of a file; nothing is linked or run.", FileInput, _checked)
