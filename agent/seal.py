"""The seal: a client sees of its node only its own folder, what it is given, its tools and its program."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from agent.harnesses import Command, WireFormat
from bench import process
from bench.errors import ConfigError, EnvironmentFault
from bench.sandbox import AS_NOBODY, View, bubblewrap, toolchain

SealMode = Literal["auto", "required", "off"]

# Where a sealed client finds these packages' tools, and the pages of skills.
TOOLS, SKILL_PAGES = Path("/opt/kcourt"), Path("/skills")
# Who and where the node is, and whom it trusts; nothing here is a secret.
_NODE = (
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/resolv.conf", "/etc/localtime"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"),
)
# Of an installation that lies in a folder that is shown: what knows answers.
_JUDGES = ("bench", "agent", "cluster", "tasks", "experiments")
# A client shares the node's network: its model and the judges are there. It makes no user namespace, in which it
# would have capabilities again.
_OPTIONS = (*AS_NOBODY, "--disable-userns")
_PYTHON_HOME = ("bin", "lib", "lib64", "include", "pyvenv.cfg")
_SCRIPT_HEAD_BYTES = 256


def is_sealed(mode: SealMode, wire_format: WireFormat) -> bool:
    """Whether a harness of this wire format runs behind a seal; one that plays a plan does so only when told."""
    return mode == "required" or (mode == "auto" and wire_format != "none")


@dataclass(frozen=True)
class Seal:
    """What one attempt's client may read and write beside the node's toolchain and its own program.

    `tools` is the staged copy of what its tools need of these packages, `skills` the pages of its treatment, `python`
    the interpreter that its tools run by.
    """

    read_only: tuple[Path, ...]
    writable: tuple[Path, ...]
    tools: Path
    skills: Path
    python: str = sys.executable

    def before(self, command: Command, search: str, folder: Path) -> list[str]:
        """The words before a client's own command line; it starts in `folder`.

        Its program is found along `search`, as PATH is written. What is missing is not shown.
        """
        system = toolchain().with_more([Path(path) for path in _NODE])
        links, files = _installed((self.python, command.argv[0], *command.programs), search, system)
        view = View(
            read_only=(*system.read_only, *files, *command.needs, *self.read_only),
            writable=self.writable,
            links=(*system.links, *links),
            placed=((TOOLS, self.tools), *([(SKILL_PAGES, self.skills)] if self.skills.is_dir() else [])),
            hidden=tuple(_judges_below((*system.read_only, *files, *command.needs))),
        )
        return bubblewrap(view, folder, _OPTIONS)


def check_seal(private: Sequence[Path]) -> None:
    """See that clients can be sealed here and that the `private` places of a run are then out of their sight.

    Raises:
        EnvironmentFault: no client can be sealed on this machine.
        ConfigError: one of the places lies in a folder of the system that every client sees.
    """
    why = _why_not()
    if why:
        raise EnvironmentFault(
            f"agents cannot be sealed here: {why}; a seal needs bubblewrap 0.8 or later (on Debian: apt-get install "
            "bubblewrap) and unprivileged user namespaces; AGENT_SEAL=off lets agents see what their driver sees"
        )
    for place in private:
        if _is_below(place.resolve(), toolchain().read_only):
            raise ConfigError(f"{place}: lies where every sealed agent can read; give the run a folder outside of it")


def _why_not() -> str:
    """What keeps `true` from running behind a seal; empty when it runs."""
    if shutil.which("bwrap") is None:
        return "bwrap was not found"
    tried = process.run([*bubblewrap(toolchain(), Path("/"), _OPTIONS), "true"], limits=process.Limits(wall_s=10))
    return "" if tried.ok else tried.output.strip()[-200:] or "it does not start"


def _judges_below(shown: Sequence[Path]) -> Iterator[Path]:
    """Folders of this installation, beyond the tools' copy, that would be seen below `shown`."""
    root = Path(__file__).parent.parent
    for folder in (root / name for name in _JUDGES):
        if folder.is_dir() and _is_below(folder, shown):
            yield folder


def _installed(programs: Sequence[str], search: str, system: View) -> tuple[list[tuple[Path, Path]], list[Path]]:
    """Links and files of programs that the system's own view lacks."""
    there = (*system.read_only, *(path for path, _ in system.links))
    links: list[tuple[Path, Path]] = []
    files: list[Path] = []
    for program in programs:
        for path in _chain(program, search):
            files += [file for file in _belonging(path) if not _is_below(file, (*there, *files))]
            if path.is_symlink() and not _is_below(path, (*there, *files)):
                links.append((path, path.readlink()))
    return [link for link in links if not _is_below(link[0], files)], files


@lru_cache(maxsize=64)
def _chain(program: str, search: str) -> tuple[Path, ...]:
    """A program's links, its file, and for a script the same of what runs it."""
    found = shutil.which(program, path=search)
    if found is None:
        return ()
    chain = [Path(found)]
    while chain[-1].is_symlink():
        chain.append(Path(os.path.normpath(chain[-1].parent / chain[-1].readlink())))
    runs_it = _interpreter(chain[-1])
    return (*chain, *(_chain(runs_it, search) if runs_it else ()))


def _interpreter(path: Path) -> str | None:
    """What a script's first line names; None for any other file."""
    with path.open("rb") as file:
        first, *words = file.read(_SCRIPT_HEAD_BYTES).partition(b"\n")[0].split() or [b""]
    if not first.startswith(b"#!"):
        return None
    named = [first.removeprefix(b"#!"), *words] if first != b"#!" else words
    if named and Path(os.fsdecode(named[0])).name == "env":
        named = [word for word in named[1:] if not word.startswith(b"-")]
    return os.fsdecode(named[0]) if named else None


def _belonging(path: Path) -> list[Path]:
    """The files that a program at `path` cannot do without: its package, its environment, else itself."""
    for folder in reversed(path.parents):
        if folder.name == "node_modules":
            return [folder]
        if (folder / "pyvenv.cfg").is_file():
            return _python_home(folder)
    if path.is_symlink():
        return []
    if path.name.startswith("python") and path.parent.name == "bin":
        return _python_home(path.parent.parent)
    return [path]


def _python_home(folder: Path) -> list[Path]:
    return [folder / name for name in _PYTHON_HOME if (folder / name).exists()]


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
