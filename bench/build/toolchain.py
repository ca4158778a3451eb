"""One compiler as `toolchains.yaml` describes it: its command line, its version, and a build inside the sandbox."""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from bench.errors import EnvironmentFault
from bench.judge.schemas import Language, Outcome
from bench.process import Limits, run
from bench.sandbox import BUILD_LIMITS, Level, Sandbox
from bench.verdict import Rejected

TOOLCHAINS = Path(__file__).with_name("toolchains.yaml")
_RECORDED: ContextVar[bytes | None] = ContextVar("recorded toolchains", default=None)


@dataclass(frozen=True)
class Artifact:
    """What a build made: the file that a runner loads, and how it was made."""

    path: Path
    language: Language
    commands: tuple[tuple[str, ...], ...] = ()
    compiler: str = ""


@dataclass(frozen=True)
class Toolchain:
    """A compiler with the flags that every build of its language gets."""

    compiler: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]

    def command(self, source: str, output: str, defines: Sequence[str] = ()) -> list[str]:
        """The argv that builds `source` to the shared object `output`."""
        return [self.compiler, *self.flags, *defines, source, "-o", output, *self.libraries]

    @property
    def version(self) -> str:
        """First line of the compiler's `--version`.

        Raises:
            EnvironmentFault: the compiler is not installed.
        """
        return _version(self.compiler)


@lru_cache(maxsize=16)
def _version(compiler: str) -> str:
    # Asked as builds run: another compiler of that name may come first on this process's own PATH.
    environment = Sandbox(Level.LIMITS).environment(Path("/"))
    if shutil.which(compiler, path=environment["PATH"]) is None:
        raise EnvironmentFault(f"the compiler '{compiler}' was not found; on Debian: apt-get install {compiler}")
    return run([compiler, "--version"], limits=Limits(wall_s=30), env=environment).output.splitlines()[0]


def toolchains() -> dict[str, Toolchain]:
    """Language → toolchain, as the text in force says."""
    return parse_toolchains(toolchains_text())


def toolchains_text() -> bytes:
    """The text in force: `toolchains.yaml`, or what `recorded_toolchains` was given."""
    return _RECORDED.get() or shipped_toolchains()


@lru_cache(maxsize=1)
def shipped_toolchains() -> bytes:
    """`toolchains.yaml` as it was when this process first looked."""
    return TOOLCHAINS.read_bytes()


@contextlib.contextmanager
def recorded_toolchains(text: bytes) -> Iterator[None]:
    """Build everything inside the block as an earlier grade's toolchains say."""
    token = _RECORDED.set(text)
    try:
        yield
    finally:
        _RECORDED.reset(token)


@lru_cache(maxsize=8)
def parse_toolchains(text: bytes) -> dict[str, Toolchain]:
    """Language → toolchain, of a text such as `toolchains.yaml`."""
    entries = yaml.safe_load(text)
    return {
        language: Toolchain(entry["compiler"], tuple(entry["flags"]), tuple(entry["libraries"]))
        for language, entry in entries.items()
    }


def compile_shared(
    sandbox: Sandbox, folder: Path, source: Path, language: Language, defines: Sequence[str] = ()
) -> Artifact:
    """Compile one file in `folder` to a shared object beside it, inside the sandbox and its build limits.

    Raises:
        Rejected: the compiler failed or was over its limits; the log is the compiler's own.
        EnvironmentFault: the compiler is not installed.
    """
    chain = toolchains()[language.value]
    version = chain.version
    output = source.with_suffix(".so")
    argv = chain.command(source.name, output.name, defines)
    done = sandbox.run(argv, BUILD_LIMITS, folder)
    if done.timed_out:
        limit = f"the compiler was stopped after {BUILD_LIMITS.wall_s:.0f} s; make the source smaller"
        raise Rejected(Outcome.BUILD_FAILED, "build_time", {"message": limit}, done.output)
    if not done.ok or not output.is_file():
        raise Rejected(
            Outcome.BUILD_FAILED,
            "build",
            {"message": f"{chain.compiler} failed; mend the first error in the log"},
            done.output,
        )
    return Artifact(output, language, (tuple(argv),), version)
