"""Where untrusted builds and runs live: the limits they get, and the level of isolation that was reached."""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import lru_cache
from pathlib import Path
from typing import IO

from bench import process
from bench.errors import EnvironmentFault, UsageError
from bench.native.programs import enclose_program
from bench.process import Completed, Limits, limited

GIB = 1 << 30
_SCRATCH = "kcourt-scratch-"
# Younger folders may be some that their owner has not locked yet.
_FRESH_S = 60
# CPU time is that of one process: a compiler that takes longer is not busy with a kernel.
BUILD_LIMITS = Limits(wall_s=60, cpu_s=20, memory_bytes=4 * GIB, processes=64, file_bytes=256 << 20)
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


class Means(StrEnum):
    """What shuts submissions in at the levels `user` and `full`, the preferred one first."""

    BUBBLEWRAP = "bubblewrap"
    ENCLOSE = "enclose"


# What a compiler or a runtime needs of the host, read-only; the rest of the file system is not there.
_TOOLCHAIN = ("/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_USR_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# Settings of the machine that belong to root, who may write to them without any capability: at level `user` a
# submission is the judge's own user.
_STEERING = tuple(f"/proc/{name}" for name in ("acpi", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger"))
# Untrusted code of a `full` sandbox runs as one of these users, which own nothing; one a timing core.
FIRST_UID = 61184
_NOBODY = 65534
_TMP_BYTES = 256 << 20

_ALONE = (
    *("--die-with-parent", "--hostname", "sandbox", "--unshare-pid", "--unshare-ipc"),
    *("--unshare-uts", "--unshare-cgroup-try"),
)
_NO_NETWORK = "--unshare-net"
# A user namespace with one user, who has no name, owns what its maker owns, and has no capability.
AS_NOBODY = ("--unshare-user", "--uid", str(_NOBODY), "--gid", str(_NOBODY))
_PRIVATE = (
    *("--proc", "/proc", "--dev", "/dev", "--size", str(_TMP_BYTES), "--perms", "1777", "--tmpfs", "/tmp"),
    *("--size", str(_TMP_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm"),
)


@dataclass(frozen=True)
class View:
    """What is there of the host's files, each at its own path, but for `links`: (path, target) of symbolic links.

    `devices` are nodes of /dev that can be used; those of the sandbox's own /dev are there anyway.

    bubblewrap alone knows the rest: `placed` is (path, source) of what is shown read-only at another path, `hidden` the
    folders below others that are shown empty.
    """

    read_only: tuple[Path, ...]
    writable: tuple[Path, ...] = ()
    links: tuple[tuple[Path, Path], ...] = ()
    placed: tuple[tuple[Path, Path], ...] = ()
    hidden: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()

    def with_more(
        self, read_only: Sequence[Path] = (), writable: Sequence[Path] = (), devices: Sequence[Path] = ()
    ) -> "View":
        return replace(
            self,
            read_only=(*self.read_only, *read_only),
            writable=(*self.writable, *writable),
            devices=(*self.devices, *devices),
        )


@lru_cache(maxsize=1)
def toolchain() -> View:
    """The files without which nothing can be built or run, and what must not be written to."""
    shown = [Path(path) for path in (*_TOOLCHAIN, *(_STEERING if os.getuid() == 0 else ()))]
    roots = [Path("/", name) for name in _USR_LINKS]
    links = tuple((root, root.readlink()) for root in roots if root.is_symlink())
    folders = [root for root in roots if root.is_dir() and not root.is_symlink()]
    return View(tuple(path for path in (*shown, *folders) if path.exists()), links=links)


def bubblewrap(view: View, folder: Path, options: Sequence[str]) -> list[str]:
    """bubblewrap's command line up to its last `--`: a command behind it starts in `folder` and sees `view` alone.

    All that it starts ends with it, and it ends with the process that starts it. `options` say as which user it runs
    and what else it is kept from.
    """
    words = ["bwrap", *_ALONE, *_PRIVATE, *_mounts(view), "--chdir", str(folder)]
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/", *options, "--"]


def _mounts(view: View) -> Iterator[str]:
    """bubblewrap's options that make a view, in the order in which later ones lie on top."""
    for path, target in view.links:
        yield from ("--symlink", str(target), str(path))
    shown = [("--ro-bind-try", path, path) for path in view.read_only]
    shown += [("--ro-bind", source, path) for path, source in view.placed]
    for option, source, path in shown:
        yield from (*_passable(path), option, str(source), str(path))
    for path in view.hidden:
        yield from ("--tmpfs", str(path), "--remount-ro", str(path))
    for path in view.writable:
        yield from (*_passable(path), "--bind", str(path), str(path))
    for path in view.devices:
        yield from ("--dev-bind", str(path), str(path))


def _by_bubblewrap(view: View, folder: Path, uid: int | None) -> list[str]:
    """bubblewrap's command line before that of the command; `uid` is None in a user namespace."""
    if uid is None:
        return bubblewrap(view, folder, (_NO_NETWORK, *AS_NOBODY))
    user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all", "--"]
    return [*bubblewrap(view, folder, (_NO_NETWORK, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")), *user]


@lru_cache(maxsize=256)
def _passable(path: Path) -> tuple[str, ...]:
    """bubblewrap's options for the folders above a path: its own would be closed to other users."""
    above = [folder for folder in reversed(path.parents) if folder not in (Path("/"), Path("/tmp"))]
    return tuple(word for folder in above for word in ("--perms", "0755", "--dir", str(folder)))


def _by_enclose(view: View, folder: Path, uid: int | None) -> list[str]:
    """The same by the judge's own program."""
    user = ["-n", str(_NOBODY)] if uid is None else ["-u", str(uid)]
    words = [str(enclose_program()), *user, "-b", str(_TMP_BYTES), "-C", str(folder)]
    words += [word for path, target in view.links for word in ("-l", f"{path}={target}")]
    words += [word for path in view.read_only for word in ("-r", str(path))]
    words += [word for path in view.writable for word in ("-w", str(path))]
    words += [word for path in view.devices for word in ("-d", str(path))]
    return [*words, "--"]


_BEHIND = {Means.BUBBLEWRAP: _by_bubblewrap, Means.ENCLOSE: _by_enclose}


@dataclass(frozen=True)
class Sandbox:
    """A level, and how commands run at it. `uid` is the user of level `full`; `variables` go into the environment.

    `means` brings about the levels `user` and `full`; at `limits` it has no part. `devices` are nodes of /dev that
    what is spawned may use, and what is run to its end may not.
    """

    level: Level
    variables: Mapping[str, str] = field(default_factory=dict)
    uid: int = FIRST_UID
    means: Means = Means.BUBBLEWRAP
    devices: tuple[Path, ...] = ()

    @property
    def by(self) -> str:
        """What brings the level about, with its version where that is not the judge's own."""
        if self.level is Level.LIMITS:
            return "prlimit"
        return _bubblewrap_version() if self.means is Means.BUBBLEWRAP else str(self.means)

    def run(self, argv: Sequence[str], limits: Limits, folder: Path, visible: Sequence[Path] = ()) -> Completed:
        """Run an untrusted command in `folder`, which it may write, to its end; nothing of it is left behind.

        It sees, beside the toolchain and `folder`, the folders of `visible`, read-only.
        """
        self._hand_over(folder)
        shut_in = self._shut_in(argv, limits, toolchain().with_more(visible, writable=[folder]), folder)
        return process.run(shut_in, limits=Limits(wall_s=limits.wall_s), cwd=folder, env=self.environment(folder))

    def spawn(
        self,
        argv: Sequence[str],
        limits: Limits,
        folder: Path,
        output: IO[bytes],
        pass_fds: Sequence[int],
        visible: Sequence[Path] = (),
        writes: bool = False,
    ) -> "subprocess.Popen[bytes]":
        """Start an untrusted command in `folder`; what it prints goes to `output`, for the log alone.

        It sees, beside the toolchain and `folder`, the files and folders of `visible`, all of these read-only but for
        `folder` if it `writes` there.
        """
        self._hand_over(folder)
        view = toolchain().with_more(visible, devices=self.devices)
        view = view.with_more(writable=[folder]) if writes else view.with_more([folder])
        shut_in = self._shut_in(argv, limits, view, folder)
        environment = self.environment(folder)
        return process.spawn(shut_in, output=output, pass_fds=pass_fds, cwd=folder, env=environment)

    def inner_pid(self, child: "subprocess.Popen[bytes]") -> int:
        """Process id, as seen from here, of the command that a spawned child wraps; 0 while there is none.

        Either means stays outside as the namespace's monitor and inside as its init, whose first child it is.
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
        if self.level is not Level.FULL:
            return
        try:
            os.chown(folder, self.uid, self.uid)
        except OSError as error:
            raise EnvironmentFault(
                f"{folder} cannot be given to user {self.uid} ({error.strerror}); "
                "set KCOURT_SANDBOX=user to do without that user, or KCOURT_TMPDIR to another folder"
            ) from error

    def _shut_in(self, argv: Sequence[str], limits: Limits, view: View, folder: Path) -> list[str]:
        """`argv` behind prlimit and the means of the level."""
        command = limited(argv, limits)
        if self.level is Level.LIMITS:
            return command
        return [*_BEHIND[self.means](view, folder, self.uid if self.level is Level.FULL else None), *command]

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
            "'prlimit' was not found; install util-linux, the judge limits every build and run with it"
        )
    reached, means, why = _reached(_cap())
    if reached < wanted:
        raise EnvironmentFault(
            f"the sandbox reaches level '{reached}' here, '{wanted}' is asked for ({why}); "
            f"say --allow-sandbox {reached} to grade with less isolation (the level is on every row)"
        )
    return Sandbox(reached, {"OMP_NUM_THREADS": str(threads)}, FIRST_UID + seat, means)


def _cap() -> Level:
    """The level that `KCOURT_SANDBOX` keeps the sandbox to; raises UsageError when it names none."""
    try:
        return Level.parse(os.environ.get("KCOURT_SANDBOX") or str(Level.FULL))
    except UsageError as error:
        raise UsageError(f"KCOURT_SANDBOX: {error}") from None


@lru_cache
def _reached(cap: Level) -> tuple[Level, Means, str]:
    """The strongest level up to `cap` that works here, found by trying, by which means, and what keeps it there."""
    failed: list[str] = []
    highest = min(cap, Level.FULL if os.getuid() == 0 else Level.USER)
    limit = f"KCOURT_SANDBOX={cap} is set" if cap is highest else "only root can give untrusted code a user of its own"
    for level in range(highest, Level.LIMITS, -1):
        for means in Means:
            why = why_not(Level(level), means)
            if not why:
                return Level(level), means, "; ".join(failed) or limit
            failed.append(f"{Level(level)} by {means}: {why}")
    return Level.LIMITS, Means.BUBBLEWRAP, "; ".join(failed) or limit


def why_not(level: Level, means: Means) -> str:
    """What keeps `true` from running at a level by some means; empty when it runs."""
    if means is Means.BUBBLEWRAP and shutil.which("bwrap") is None:
        return "bwrap was not found (on Debian: apt-get install bubblewrap)"
    try:
        with scratch_folder() as folder:
            tried = Sandbox(level, means=means).run(["true"], Limits(wall_s=10), folder)
    except EnvironmentFault as fault:
        return str(fault)[-200:]
    return "" if tried.ok else tried.output.strip()[-200:] or "it does not start"


@lru_cache(maxsize=1)
def _bubblewrap_version() -> str:
    return process.run(["bwrap", "--version"], limits=Limits(wall_s=10)).output.strip()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder for one grade, gone afterwards, or when a worker starts after this process was killed."""
    base = _scratch_base()
    try:
        made = tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=base)
    except OSError as error:
        raise EnvironmentFault(
            f"{base}: a scratch folder cannot be made ({error.strerror}); set KCOURT_TMPDIR"
        ) from error
    with made as folder, _locked(Path(folder)):
        yield Path(folder)


def _scratch_base() -> Path:
    return Path(os.environ.get("KCOURT_TMPDIR") or tempfile.gettempdir())


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold a folder's lock, which Linux gives back however this process ends; False where somebody else has it."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    held = False
    try:
        with suppress(OSError):  # where the file system has no locks, nothing is taken for left behind
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        yield held
    finally:
        os.close(fd)


def sweep_scratch() -> int:
    """Remove the scratch folders of processes that were killed; returns how many there were."""
    found = 0
    for folder in _scratch_base().glob(f"{_SCRATCH}*"):
        with suppress(OSError):  # another user's, or gone by now
            if time.time() - folder.stat().st_mtime < _FRESH_S:
                continue
            with _locked(folder) as is_left_behind:
                if is_left_behind:
                    shutil.rmtree(folder)
                    found += 1
    return found


def run_limits(buffer_bytes: int, cpu_s: int) -> Limits:
    """Limits of a runner that borrows `buffer_bytes` of the judge's memory."""
    return Limits(cpu_s=cpu_s, memory_bytes=buffer_bytes + 4 * GIB, processes=64, file_bytes=RUN_OUTPUT_BYTES)
