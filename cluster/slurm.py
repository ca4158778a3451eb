"""Asks Slurm's commands: none decides by its caller's variables, and each has a time limit."""

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import process

ANSWER_WITHIN_S = 120.0
# Slurm's commands take options from these, and a job inherits what describes another one: where the caller runs.
_OF_THE_CALLER = re.compile(r"S(BATCH|LURM|QUEUE|CANCEL|CONTROL|INFO|ALLOC)_(?!CONF$|JWT$)")


@dataclass(frozen=True)
class Answer:
    """What one of Slurm's commands printed, errors and all, and whether it was content."""

    ok: bool
    output: str

    @property
    def said(self) -> str:
        return self.output.strip() or "it printed nothing"


def asked(argv: Sequence[str], within_s: float = ANSWER_WITHIN_S) -> Answer:
    """Run a command of Slurm to its end; a queue may be longer than what `process.run` keeps of an output.

    Raises:
        EnvironmentFault: there is no such command.
    """
    with tempfile.TemporaryFile() as sink:
        child = process.spawn(argv, env=slurm_environment(os.environ), output=sink)
        try:
            in_time = process.ends_within(child, within_s)
        finally:
            process.kill_tree(child)
        sink.seek(0)
        output = sink.read().decode(errors="replace")
    return Answer(in_time and child.returncode == 0, output if in_time else f"no answer within {within_s:g} s")


def slurm_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What Slurm's commands see: nothing that another job or the caller's own variables would have decide."""
    return {name: value for name, value in environ.items() if not _OF_THE_CALLER.match(name)}
