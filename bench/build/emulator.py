"""Builds HIP for the CPU: rewritten to C++, with headers that stand in for HIP's own."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from bench.build.hip_source import as_cpp
from bench.build.toolchain import Artifact, compile_shared
from bench.judge.schemas import Language
from bench.sandbox import Sandbox

# Copied beside a source: the build then names no folder of this machine.
HEADERS = Path(__file__).parents[1] / "native" / "hip_cpu"


def rewritten(source: Path) -> Path:
    """Where the C++ lies that a HIP source becomes."""
    return source.with_suffix(".cpp")


def read_by_compiler(text: str) -> str:
    """All that a build of the HIP source `text` depends on, but for the compiler: its C++, and the headers."""
    headers = sorted(path for path in HEADERS.rglob("*") if path.is_file())
    return "\n".join([as_cpp(text), *(path.read_text(encoding="utf-8") for path in headers)])


def build(sandbox: Sandbox, folder: Path, source: Path, flags: Sequence[str], entry: str | None) -> Artifact:
    """Build the HIP file `source` in `folder` to a library beside it, whose messages name the file's own lines.

    Without an `entry` the library shows all functions that the source exports.

    Raises:
        Rejected: outcome `build_failed`, with the compiler's log.
    """
    shutil.copytree(HEADERS, folder, dirs_exist_ok=True)
    text = as_cpp(source.read_text(encoding="utf-8"))
    rewritten(source).write_text(f'#line 1 "{source.name}"\n{text}', encoding="utf-8")
    return compile_shared(sandbox, folder, rewritten(source), Language.HIP, flags, entry)
