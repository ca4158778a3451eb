"""On what file system shards will lie, and what that means for them."""

import re
from pathlib import Path

from cluster.doctor.check import Check, State, Subject, nearest_there

MOUNTS = Path("/proc/self/mountinfo")
# File systems that several machines may have mounted; `fuse.<program>` are such ones too.
SHARED = frozenset(
    {
        *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "afs", "9p", "virtiofs", "cifs", "smb3"),
        *("panfs", "orangefs", "pvfs2", "ocfs2", "gfs2", "wekafs", "dvs", "fuse", "fuseblk"),
    }
)
IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def file_system(subject: Subject, mounts: Path = MOUNTS) -> Check:
    """The type of file system of the run directories.

    No database of ours is in WAL mode, which needs memory that all its readers share: any type keeps a shard whole.
    """
    name, there = "shard file system", nearest_there(subject.run_root).resolve()
    kind = type_of(there, mounts.read_text(encoding="utf-8", errors="surrogateescape"))
    if kind in IN_MEMORY:
        advice = "grades there are gone when the machine restarts; set RUN_ROOT to a folder on a disk"
        return Check(name, State.WARNING, f"{kind} at {there}", advice)
    if is_shared(kind):
        return Check(name, State.OK, f"{kind}: several machines may have it, and shards use no WAL, so it serves")
    if subject.on_slurm and not subject.nodes:
        advice = "set RUN_ROOT to a folder that every node sees; where this one is, `kcourt doctor --nodes` shows it"
        return Check(name, State.WARNING, f"{kind} at {there}: most likely this machine's own", advice)
    return Check(name, State.OK, f"{kind}: shards use no WAL, so any type serves")


def is_shared(kind: str) -> bool:
    return kind in SHARED or kind.startswith("fuse.")


def type_of(path: Path, mountinfo: str) -> str:
    """Type of the file system that an absolute path lies on, from the text of /proc/self/mountinfo."""
    best, found = -1, "unknown"
    for line in mountinfo.splitlines():
        # Optional fields end with a lone dash; of two mounts on one point the later one is seen.
        before, _, after = line.partition(" - ")
        point = Path(_unescaped(before.split()[4]))
        depth = len(point.parts)
        if depth >= best and path.is_relative_to(point):
            best, found = depth, after.split()[0]
    return found


def _unescaped(text: str) -> str:
    r"""A mount point as it is called: the kernel writes a blank as \040."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)
