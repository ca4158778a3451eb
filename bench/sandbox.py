"""Where untrusted builds and runs live: the limits they get, and the level of isolation that was reached."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import IO

from bench import process
from bench.errors import EnvironmentFault, UsageError
from bench.process import Completed, Limits, limited

GIB = 1 << 30
BUILD_LIMITS = Limits(wall_s=60, cpu_s=60, memory_bytes=4 * GIB, processes=64, file_bytes=256 << 20)
RUN_OUTPUT_BYTES = 16 << 20


class Level(IntEnum):
    """How far a submission is shut in; higher is stronger. `limits` is resource limits alone."""

    LIMITS = 1
    USER = 2
    FULL = 3

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def parse(cls, text: str) -> "Level":
        """Raises UsageError when `text` names no level."""
        try:
            return cls[text.upper()]
        except KeyError:
            names = ", ".join(str(level) for level in cls)
            raise UsageError(f"'{text}' is no sandbox level; the levels are {names}") from None


# What a compiler or a runtime needs of the host, read-only; the rest of the file system is not there.
_TOOLCHAIN = ("/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_USR_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# Untrusted code of a `full` sandbox runs as one of these users, which own nothing; one a timing core.
FIRST_UID = 61184
_NOBODY = 65534
_TMP_BYTES = 256 << 20


_ALONE = (
    *("--die-with-parent", "--hostname", "sandbox", "--unshare-pid", "--unshare-net", "--unshare-ipc"),
    *("--unshare-uts", "--unshare-cgroup-try"),
)
_PRIVATE = (
    *("--proc", "/proc", "--dev", "/dev", "--size", str(_TMP_BYTES), "--perms", "1777", "--tmpfs", "/tmp"),
    *("--size", str(_TMP_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm"),
)


def _mount(option: str, path: Path) -> list[str]:
    """bubblewrap's options that show one file or folder at its own path, below folders that anybody may pass."""
    above = [folder for folder in reversed(path.parents) if folder not in (Path("/"), Path("/tmp"))]
    words = [word for folder in above for word in ("--perms", "0755", "--dir", str(folder))]
    return [*words, option, str(path), str(path)]


@lru_cache(maxsize=1)
def _host_mounts() -> tuple[str, ...]:
    """bubblewrap's options for what is visible of the host: the toolchain, read-only."""
    words = [word for path in _TOOLCHAIN for word in ("--ro-bind-try", path, path)]
    for link in (Path("/", name) for name in _USR_LINKS):
        if link.is_symlink():
            words += ["--symlink", str(link.readlink()), str(link)]
        elif link.is_dir():
            words += ["--ro-bind", str(link), str(link)]
    return tuple(words)


@dataclass(frozen=True)
class Sandbox:
    """A level, and how commands run at it. `uid` is the user of level `full`; `variables` go into the environment."""

    level: Level
    variables: Mapping[str, str] = field(default_factory=dict)
    uid: int = FIRST_UID

    def run(self, argv: Sequence[str], limits: Limits, folder: Path) -> Completed:
        """Run an untrusted command in `folder`, which it may write, to its end; nothing of it is left behind."""
        self._hand_over(folder)
        shut_in = self._shut_in(argv, limits, _mount("--bind", folder), folder)
        return process.run(shut_in, limits=Limits(wall_s=limits.wall_s), cwd=folder, env=self.environment(folder))

    def spawn(
        self,
        argv: Sequence[str],
        limits: Limits,
        folder: Path,
        output: IO[bytes],
        pass_fds: Sequence[int],
        visible: Sequence[Path] = (),
    ) -> "subprocess.Popen[bytes]":
        """Start an untrusted command in `folder`; what it prints goes to `output`, for the log alone.

        It sees, beside the toolchain and `folder`, the files and folders of `visible`, all of these read-only.
        """
        self._hand_over(folder)
        mounts = [word for path in (*visible, folder) for word in _mount("--ro-bind-try", path)]
        shut_in = self._shut_in(argv, limits, mounts, folder)
        environment = self.environment(folder)
        return process.spawn(shut_in, output=output, pass_fds=pass_fds, cwd=folder, env=environment)

    def inner_pid(self, child: "subprocess.Popen[bytes]") -> int:
        """Process id, as seen from here, of the command that a spawned child wraps; 0 while there is none.

        bubblewrap stays outside as the namespace's monitor and inside as its init; the init has one child.
        """
        pid = child.pid
        for _ in range(0 if self.level is Level.LIMITS else 2):
            below = process.children(pid)
            if not below:
                return 0
            pid = below[0]
        return pid

    def _hand_over(self, folder: Path) -> None:
        """Let the user of level `full` into a folder that is private to ours."""
        if self.level is Level.FULL:
            os.chown(folder, self.uid, self.uid)

    def _shut_in(self, argv: Sequence[str], limits: Limits, mounts: Sequence[str], folder: Path) -> list[str]:
        """`argv` behind bubblewrap, the user's change and prlimit, as the level asks."""
        command = limited(argv, limits)
        if self.level is Level.LIMITS:
            return command
        wrap = ["bwrap", *_ALONE, *_host_mounts(), *_PRIVATE, *mounts, "--chdir", str(folder), "--remount-ro", "/"]
        if self.level is Level.USER:
            return [*wrap, "--unshare-user", "--uid", str(_NOBODY), "--gid", str(_NOBODY), "--", *command]
        user = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--inh-caps=-all", "--"]
        return [*wrap, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--", *user, *command]

    def environment(self, folder: Path) -> dict[str, str]:
        """The whole environment of what runs inside: nothing of the judge's own."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "TMPDIR": str(folder) if self.level is Level.LIMITS else "/tmp",
            "LC_ALL": "C.UTF-8",
            "OMP_WAIT_POLICY": "passive",
            "OPENBLAS_NUM_THREADS": "1",
            **self.variables,
        }


def reach(allowed: str, threads: int = 1, seat: int = 0) -> Sandbox:
    """The strongest sandbox that this machine offers; `seat` tells apart the users of slots that grade at once.

    Raises:
        EnvironmentFault: it is weaker than `allowed`; the message says why, and how to accept that.
    """
    wanted = Level.parse(allowed)
    if shutil.which("prlimit") is None:
        raise EnvironmentFault(
            "'prlimit' is not here; install util-linux, the judge limits every build and run with it"
        )
    if os.environ.get("KCOURT_SANDBOX") == str(Level.LIMITS):
        reached, why = Level.LIMITS, "KCOURT_SANDBOX=limits is set"
    else:
        reached, why = _reached()
    if reached < wanted:
        raise EnvironmentFault(
            f"the sandbox reaches level '{reached}' here, '{wanted}' is asked for ({why}); "
            f"say --allow-sandbox {reached} to grade with less isolation (the level is on every row)"
        )
    return Sandbox(reached, {"OMP_NUM_THREADS": str(threads)}, FIRST_UID + seat)


@lru_cache(maxsize=1)
def _reached() -> tuple[Level, str]:
    """The strongest level that works here, found by trying; and what kept the next one from working."""
    if shutil.which("bwrap") is None:
        return Level.LIMITS, "bwrap is not here; on Debian: apt-get install bubblewrap"
    why = ""
    for level in [Level.FULL, Level.USER] if os.getuid() == 0 else [Level.USER]:
        with scratch_folder() as folder:
            tried = Sandbox(level).run(["true"], Limits(wall_s=10), folder)
        if tried.ok:
            return level, why or "only root can give untrusted code a user of its own"
        why = f"level '{level}' fails: {tried.output.strip()[-200:]}"
    return Level.LIMITS, why


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder for one grade, gone afterwards."""
    base = os.environ.get("KCOURT_TMPDIR")
    try:
        made = tempfile.TemporaryDirectory(prefix="kcourt-", dir=base)
    except OSError as error:
        raise EnvironmentFault(
            f"{base or tempfile.gettempdir()}: no scratch folder there ({error.strerror}); set KCOURT_TMPDIR to another"
        ) from error
    with made as folder:
        yield Path(folder)


def run_limits(buffer_bytes: int, cpu_s: int) -> Limits:
    """Limits of a runner that borrows `buffer_bytes` of the judge's memory."""
    return Limits(cpu_s=cpu_s, memory_bytes=buffer_bytes + 4 * GIB, processes=64, file_bytes=RUN_OUTPUT_BYTES)
