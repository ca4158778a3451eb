"""C++ submissions: one file, one shared object."""

from pathlib import Path

from bench.build.toolchain import Artifact, compile_shared
from bench.judge.schemas import Language
from bench.sandbox import Sandbox


def build(sandbox: Sandbox, folder: Path, source: Path) -> Artifact:
    return compile_shared(sandbox, folder, source, Language.CPP)
