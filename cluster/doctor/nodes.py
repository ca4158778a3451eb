"""Whether every node sees what a job needs at the same paths: one short srun over the idle nodes of the partition."""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.places import checkout
from cluster.doctor.check import Check, State, Subject, nearest_there
from cluster.doctor.site import default_of, partitions
from cluster.slurm import asked
from cluster.study.places import experiments_root

NAME = "paths on nodes"
# How long nodes that were idle a moment ago may be waited for, and how long the look may take then.
START_S, LOOK_S = 60, 120.0
SHOWN = 4
# One line a path: who looked, the file's number there (- where there is none), the path.
_LOOK = 'for path; do echo "seen $SLURMD_NODENAME $(stat -Lc %i "$path" 2>/dev/null || echo -) $path"; done'
_SEEN = re.compile(r"^seen (\S+) (\d+|-) (/.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Sight:
    """What one node sees at a path: the file's number there, None where there is no such file."""

    node: str
    path: str
    inode: int | None


def parse_sights(output: str) -> list[Sight]:
    """What the nodes printed; a line of Slurm's own is left out."""
    return [Sight(node, path, None if inode == "-" else int(inode)) for node, inode, path in _SEEN.findall(output)]


def paths_of(subject: Subject) -> list[Path]:
    """What every node must see: run directories, experiments, checkout, Python."""
    found = [nearest_there(subject.run_root), nearest_there(experiments_root()), checkout(), Path(sys.executable)]
    return list(dict.fromkeys(path.absolute() for path in found))


def nodes_check(subject: Subject) -> Check:
    """Ask every idle node of the partition with one srun."""
    if not subject.on_slurm:
        return Check(NAME, State.OK, "not needed: jobs run on this machine")
    if not subject.nodes:
        return Check(NAME, State.OK, "not checked: `kcourt doctor --nodes` asks the idle nodes with one short srun")
    known, _ = partitions()
    wanted = subject.options.get("partition") or default_of(known)
    idle = known[wanted].idle if wanted in known else 0
    if not idle:
        return Check(NAME, State.WARNING, f"no node of {wanted} is idle", "call again when some are; sinfo shows them")
    paths = paths_of(subject)
    answer = asked(srun_argv(idle, subject.options, paths), START_S + LOOK_S)
    sights = parse_sights(answer.output)
    if not sights:
        advice = "mend that, or name another partition or account; the nodes were not seen"
        return Check(NAME, State.BLOCKS, f"srun failed: {answer.said.splitlines()[0]}", advice)
    return judge(sights, paths, idle)


def srun_argv(nodes: int, options: Mapping[str, str], paths: Iterable[Path]) -> list[str]:
    """The command line that looks at some paths on so many nodes; `options` are those of the job, but its shape."""
    asked_for = [f"--{name}={value}" for name, value in options.items()]
    return [
        *("srun", f"--nodes={nodes}", "--ntasks-per-node=1", *asked_for, "--time=2", f"--immediate={START_S}"),
        *("--job-name=kcourt-doctor", "--input=none", "--kill-on-bad-exit=0", "--chdir=/", "--export=PATH"),
        *("/bin/sh", "-c", _LOOK, "sh", *map(str, paths)),
    ]


def judge(sights: Iterable[Sight], paths: Iterable[Path], idle: int) -> Check:
    """What came of the look: a path that a node lacks blocks, another file there most likely does."""
    here = {str(path): os.stat(path).st_ino for path in paths}  # noqa: PTH116 - follows links, as `stat -L` there
    sights = list(sights)
    looked = {sight.node for sight in sights}
    if lacking := [sight for sight in sights if sight.inode is None]:
        advice = "a job needs it at the same path on every node: name a folder on a file system that all of them have"
        return Check(NAME, State.BLOCKS, f"not there: {_shown(lacking)}", advice)
    if other := [sight for sight in sights if sight.inode != here.get(sight.path)]:
        advice = "a folder of that name is there, but another one: name one on a file system that all nodes share"
        return Check(NAME, State.WARNING, f"not the same as here: {_shown(other)}", advice)
    if len(looked) < idle:
        advice = "look into those with sinfo; a job may get them"
        return Check(NAME, State.WARNING, f"{len(looked)} of {idle} idle nodes answered, and see all", advice)
    return Check(NAME, State.OK, f"all {len(looked)} idle nodes see {', '.join(here)}")


def _shown(sights: list[Sight]) -> str:
    """The first few sights in words."""
    words = [f"{sight.path} on {sight.node}" for sight in sights[:SHOWN]]
    return ", ".join(words) + (f" and {len(sights) - SHOWN} more" if len(sights) > SHOWN else "")
