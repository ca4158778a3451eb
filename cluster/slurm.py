"""Runs Slurm's commands: each has a time limit, and sees no variable of its caller that would set its options."""

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
    """What one of Slurm's commands printed, errors and all, and whether it succeeded."""

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


def shown_job(job_id: str, within_s: float = ANSWER_WITHIN_S) -> Answer:
    """What scontrol shows of a job, in one line; `facts` reads it."""
    return asked(["scontrol", "--oneliner", "show", "job", job_id], within_s)


def facts(text: str) -> dict[str, str]:
    """Key → value of one thing that scontrol shows.

    Of a key that stands there twice the first counts: what people wrote, a reason or a comment, comes last.
    """
    found: dict[str, str] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if equals:
            found.setdefault(key, value)
    return found


def slurm_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for Slurm's commands: without variables that describe another job or set options."""
    return {name: value for name, value in environ.items() if not _OF_THE_CALLER.match(name)}
