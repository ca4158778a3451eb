"""Submissions in Python and in Triton: nothing to compile here, but a file that does not parse has not been built."""

import ast
from pathlib import Path

from bench.build.toolchain import Artifact
from bench.judge.schemas import Language, Outcome
from bench.verdict import Rejected


def check(source: Path, language: Language) -> Artifact:
    """Check the syntax; the runner alone loads the module.

    Raises:
        Rejected: outcome `build_failed`; the log is the parser's message.
    """
    try:
        ast.parse(source.read_bytes(), filename=source.name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Rejected(
            Outcome.BUILD_FAILED,
            "build",
            {"message": "the file does not parse; mend the line that the log names"},
            str(error),
        ) from error
    return Artifact(source, language)
