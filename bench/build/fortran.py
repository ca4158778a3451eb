"""Fortran submissions: one free-form file, one shared object; what its modules leave stays in the build's folder."""

from pathlib import Path

from bench.build.toolchain import Artifact, compile_shared
from bench.judge.schemas import Language
from bench.sandbox import Sandbox


def build(sandbox: Sandbox, folder: Path, source: Path) -> Artifact:
    return compile_shared(sandbox, folder, source, Language.FORTRAN)
