"""Tool `syntax_check`: what a local compiler says about a file; nothing is linked or run."""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import process
from bench.judge.schemas import Language

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
