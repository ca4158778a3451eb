"""One compiler as `toolchains.yaml` describes it: its command line, its version, and a build inside the sandbox."""

import contextlib
import shlex
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

import yaml

from bench.errors import EnvironmentFault, JudgeFault
from bench.judge.schemas import Language, Outcome
from bench.process import Completed, Limits, killed_for_memory, run
from bench.sandbox import BUILD_LIMITS, Level, Sandbox
from bench.verdict import Rejected

# What a driver says when a part of it was killed. A source can make it say so too: it is run again after each of these
# pauses, and the source is blamed when it ends so every time.
_KILLED = ("Killed signal terminated program", "terminated with signal 9")
_PAUSES_S = (0.1, 0.3, 1.0, 3.0)
TOOLCHAINS = Path(__file__).with_name("toolchains.yaml")
# `__dso_handle` would come with what is left out; any address within the library will do.
LINKED_BY_NAME = """VERSION {{ {{ global: {entry}; local: *; }}; }}
PROVIDE_HIDDEN(__dso_handle = ADDR(.dynamic));
"""
_RECORDED: ContextVar[bytes | None] = ContextVar("recorded toolchains", default=None)


@dataclass(frozen=True)
class Artifact:
    """What a build made: the file that a runner loads, and how it was made. `binding` is as in an order.

    A `trusted` one is of the judge's own and compiles itself: its runner stays in the sandbox, and outside the filter.
    """

    path: Path
    language: Language
    commands: tuple[tuple[str, ...], ...] = ()
    compiler: str = ""
    binding: bool = False
    trusted: bool = False


class Trace(StrEnum):
    """A file that a build leaves beside its source, by what stands in place of the source's suffix."""

    PREPROCESSED = ".i"
    INCLUDED = ".d"  # what the preprocessor read, as a rule for make
    ASSEMBLED = ".s.d"  # what the assembler read
    OBJECT = ".o"
    LINKED = ".ld"  # what the linker is told to show

    def of(self, path: Path) -> Path:
        return path.with_suffix(self.value)


@dataclass(frozen=True)
class Toolchain:
    """A compiler with the flags that every build of its language gets."""

    compiler: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]

    def command(self, source: str, output: str, defines: Sequence[str] = ()) -> list[str]:
        """The argv that builds `source` to the shared object `output` in one step, as an author would."""
        return [self.compiler, *self.flags, *defines, source, "-o", output, *self.libraries]

    def steps(self, source: Path, entry: str | None, defines: Sequence[str] = ()) -> list[list[str]]:
        """The argvs that build `source` beside itself to the same code, leaving what the gates look at (see `Trace`).

        With an `entry` the library has this one symbol to show, and no code that runs when it is loaded: what the
        compiler would link in front of every library is left out.
        """
        flags = (self.compiler, *self.flags)
        name = source.name
        steps = []
        if source.suffix != Language.FORTRAN.suffix:
            preprocessed = Trace.PREPROCESSED.of(source).name
            steps.append(
                [*flags, *defines, "-E", "-MD", "-MF", Trace.INCLUDED.of(source).name, name, "-o", preprocessed]
            )
            name = preprocessed
        built, read = Trace.OBJECT.of(source).name, Trace.ASSEMBLED.of(source).name
        # -pipe: the assembler's own input is then no file that it could have read.
        steps.append([*flags, *defines, "-pipe", f"-Wa,--MD,{read}", "-c", name, "-o", built])
        link = [*flags, *defines, built, "-o", source.with_suffix(".so").name, *self.libraries]
        if entry:
            link += ["-nostartfiles", Trace.LINKED.of(source).name]
        return [*steps, link]

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
    sandbox: Sandbox,
    folder: Path,
    source: Path,
    language: Language,
    defines: Sequence[str] = (),
    entry: str | None = None,
) -> Artifact:
    """Compile one file in `folder` to a shared object beside it, inside the sandbox and its build limits.

    With an `entry` it is one side of a grade, and may be looked at by the gates; else another piece of the judge's own.

    Raises:
        Rejected: the compiler failed or was over its limits; the log is the compiler's own.
        EnvironmentFault: the compiler is not installed.
    """
    chain = toolchains()[language.value]
    version = chain.version
    if entry:
        Trace.LINKED.of(source).write_text(LINKED_BY_NAME.format(entry=entry), encoding="utf-8")
    steps = chain.steps(source, entry, defines)
    done = _run(sandbox, ["sh", "-c", " && ".join(map(shlex.join, steps))], folder)
    if done.timed_out or done.signal == signal.SIGXCPU:
        limit = f"the compiler was stopped after {BUILD_LIMITS.cpu_s} s of work; make the source smaller"
        raise Rejected(Outcome.BUILD_FAILED, "build_time", {"message": limit}, done.output)
    output = source.with_suffix(".so")
    if not done.ok or not output.is_file():
        raise Rejected(
            Outcome.BUILD_FAILED,
            "build",
            {"message": f"{chain.compiler} failed; mend the first error in the log"},
            done.output,
        )
    return Artifact(output, language, tuple(map(tuple, steps)), version)


def _run(sandbox: Sandbox, argv: Sequence[str], folder: Path) -> Completed:
    """One build, made again where something outside killed a part of it.

    Raises:
        JudgeFault: something outside killed it as a whole.
    """
    before = killed_for_memory()
    done = sandbox.run(argv, BUILD_LIMITS, folder)
    for pause_s in _PAUSES_S:
        if done.timed_out or not any(words in done.output for words in _KILLED):
            break
        time.sleep(pause_s)
        done = sandbox.run(argv, BUILD_LIMITS, folder)
    if done.signal == signal.SIGKILL and not done.timed_out and killed_for_memory() == before:
        raise JudgeFault("something outside killed the compiler; grade again")
    return done
