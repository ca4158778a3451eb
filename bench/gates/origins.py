"""Rejects what took in other files at build time, or set flags of its own: read off what the compiler itself noted."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from bench.build import emulator, nvidia
from bench.build.gpu import READ
from bench.build.gpu_library import PASSING
from bench.build.toolchain import Trace, toolchains
from bench.gates.text import C_LIKE, C_LITERALS, blank
from bench.judge.schemas import Language, Outcome
from bench.process import Limits, run
from bench.sandbox import BUILD_LIMITS, Level, Sandbox
from bench.verdict import Rejected

# Line markers of preprocessed text, and literals: within one of these nothing is a marker.
_PIECES = re.compile(
    rf"""(?P<marker>^\#[ ]\d+[ ]"(?P<file>(?:[^"\\\n]|\\.)*)"(?P<moves>[ ][12])?[^\n]*) | {C_LITERALS.pattern}""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_MARKER = re.compile(r'^# \d+ "(?P<file>(?:[^"\\\n]|\\.)*)"', re.MULTILINE)
_PRAGMA = re.compile(r"^\s*#\s*pragma\s+GCC\s+(optimize|target|push_options|pop_options|reset_options)\b", re.MULTILINE)
_ATTRIBUTES = re.compile(r"(?:\b__attribute(?:__)?\s*\(\s*\(|(?:\[|<:)\s*(?:\[|<:))")
_SETS_FLAGS = re.compile(
    r"\b(?:__)?(?:(?P<flags>optimize|target|target_clones)(?:__)?\s*\(|(?P<tools>no_sanitize|no_address_safety))"
)


def check(source: Path, language: Language) -> None:
    """Look at the traces of a finished build of `source`.

    Raises:
        Rejected: (`policy`) preprocessor or assembler read a file that is not the compiler's own (`include`), or a
            pragma or an attribute changes optimisation or target (`flags`).
    """
    for path in files_read(source):
        if path not in (source.name, emulator.rewritten(source).name) and not _is_compilers(path, language):
            raise included(path)
    if language in C_LIKE and (what := own_flags(source)):
        message = f"'{what}' changes the compiler's flags; both sides are built with the same ones: take it out"
        raise Rejected(Outcome.POLICY, "flags", {"message": message})


def check_read_for_a_gpu(source: Path, folders: Sequence[Path]) -> None:
    """The same of a build for a GPU, whose compiler has `folders` beside those of the system, and makes files itself.

    Raises:
        Rejected: (`policy`, `include`) it read another file.
    """
    noted = source.with_suffix(READ)
    own = tuple(f"{folder}/" for folder in (*folders, "/usr/include", "/usr/lib"))
    text = noted.read_text(encoding="utf-8", errors="replace") if noted.is_file() else ""
    assembled = (path for path in files_read(source) if not PASSING.fullmatch(path.removeprefix(f"{source.parent}/")))
    for path in dict.fromkeys([*(found["file"] for found in _MARKER.finditer(text)), *assembled]):
        real = os.path.normpath(path)
        built_in = path.startswith("<") or path == source.name or real.startswith(own)
        if not built_in and not _lies_beside(real, nvidia.HEADERS):
            raise included(path)


def included(path: str) -> Rejected:
    message = f"it reads the file '{path}' when it is built; only the compiler's own headers can be included"
    return Rejected(Outcome.POLICY, "include", {"message": message})


def reached_for(sandbox: Sandbox, folder: Path, source: Path, language: Language) -> str:
    """A file of another folder that a source whose build failed names in an #include, or nothing."""
    if language not in C_LIKE:
        return ""
    chain = toolchains()[language]
    source = emulator.rewritten(source) if language is Language.HIP else source
    argv = [chain.compiler, *chain.flags, "-M", "-MG", "-MF", Trace.INCLUDED.of(source).name, source.name]
    sandbox.run(argv, BUILD_LIMITS, folder)
    read = [path for path in files_read(source) if "/" in path and not _is_compilers(path, language)]
    return read[0] if read else ""


def files_read(source: Path) -> Iterator[str]:
    """Every file that the build took in, as preprocessor and assembler noted it: `.incbin` is in it, too."""
    for trace in (Trace.INCLUDED, Trace.ASSEMBLED):
        if (noted := trace.of(source)).is_file():
            yield from _prerequisites(noted.read_text(encoding="utf-8", errors="replace"))


def _prerequisites(rule: str) -> Iterator[str]:
    """The files behind the colon of a make rule; spaces in their names are escaped."""
    _, _, listed = rule.replace("\\\n", " ").partition(": ")
    for word in re.findall(r"(?:[^\s\\]|\\.)+", listed):
        yield re.sub(r"\\(.)", r"\1", word).replace("$$", "$")


def _is_compilers(path: str, language: Language) -> bool:
    real = os.path.normpath(path)
    if language is Language.HIP and _lies_beside(real, emulator.HEADERS):
        return True
    return any(real.startswith(f"{folder}/") for folder in include_folders(toolchains()[language].compiler))


def _lies_beside(path: str, headers: Path) -> bool:
    """Whether a normal path is that of a header which the build was given in its own folder."""
    return not path.startswith(("/", "..")) and (headers / path).is_file()


@lru_cache(maxsize=8)
def include_folders(compiler: str) -> tuple[str, ...]:
    """The folders that a compiler searches for headers when it is told of none."""
    environment = Sandbox(Level.LIMITS).environment(Path("/"))
    language = "c++" if "++" in compiler else "c"
    said = run([compiler, "-E", "-v", "-x", language, os.devnull], limits=Limits(wall_s=30), env=environment).output
    _, _, listed = said.partition("search starts here:")
    return tuple(
        os.path.normpath(line.strip())
        for line in listed.partition("End of search list.")[0].splitlines()
        if line.startswith(" /")
    )


def own_flags(source: Path) -> str:
    """The first pragma or attribute of the submission itself that sets flags; macros are expanded by now."""
    preprocessed = Trace.PREPROCESSED.of(source).read_text(encoding="utf-8", errors="replace")
    code = "".join(_own_code(preprocessed, source.name))
    if found := _PRAGMA.search(code):
        return f"#pragma GCC {found[1]}"
    for attributes in _ATTRIBUTES.finditer(code):
        if found := _SETS_FLAGS.search(code, attributes.end(), _closing(code, attributes.end())):
            return f"attribute {found['flags'] or found['tools']}"
    return ""


def _own_code(preprocessed: str, name: str) -> Iterator[str]:
    """What of preprocessed text comes from the file `name`, its literals blanked."""
    ours, at = False, 0
    for piece in _PIECES.finditer(preprocessed):
        if ours:
            yield preprocessed[at : piece.start()]
        at = piece.end()
        if piece["marker"]:
            same = os.path.normpath(piece["file"]) == name
            # Who neither enters nor leaves a file may be a `#line` that its text did not show.
            ours = same if piece["moves"] else ours or same
        elif ours:
            yield piece[0] if piece["number"] else blank(piece[0])
    if ours:
        yield preprocessed[at:]


def _closing(code: str, start: int) -> int:
    """Where the two brackets that were opened before `start` are closed again."""
    depth = 2
    for position in range(start, len(code)):
        depth += (code[position] in "([" or code.startswith("<:", position)) - (
            code[position] in ")]" or code.startswith(":>", position)
        )
        if depth == 0:
            return position
    return len(code)
