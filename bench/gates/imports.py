"""Rejects what calls a function, or needs a library, that no kernel of its language needs (`imports.yaml`)."""

import ast
import fnmatch
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from bench.build.gpu_library import Kit
from bench.judge.schemas import Device, Language, Outcome
from bench.verdict import Rejected

# Whose runtime a language has beside that of C.
_RUNTIME = {Language.CPP: "cpp", Language.HIP: "cpp", Language.CUDA: "cpp", Language.FORTRAN: "fortran"}
_SUFFIXES = "(?:f|l|f16|f32|f64|f128|f32x|f64x)?"


def check(functions: Iterable[str], libraries: Iterable[str], language: Language, kit: Kit | None = None) -> None:
    """Look at what a library leaves to the loader: the names of functions and data, and of other libraries.

    Raises:
        Rejected: (`policy`) one of them is not allowed; the message names it.
    """
    device = kit.device if kit else None
    for library in libraries:
        if library not in _rules()["libraries"].split() and not (device and _is_runtime_of(device, library)):
            raise rejected(f"it needs the library '{library}'; kernels are linked with the runtimes alone")
    for name in functions:
        if not allowed(name, language, device):
            raise rejected(f"it uses '{name}', which no kernel needs: compute, and return")


def rejected(message: str) -> Rejected:
    """The verdict on what no kernel needs, in words."""
    return Rejected(Outcome.POLICY, "imports", {"message": message})


def allowed(name: str, language: Language, device: Device | None = None) -> bool:
    """Whether a submission in `language` may use that function of its runtimes; with a GPU, of the device's too."""
    admitted, refused = _patterns(language, device)
    return bool(admitted.fullmatch(name)) and not refused.fullmatch(name)


def _is_runtime_of(device: Device, library: str) -> bool:
    return any(fnmatch.fnmatch(library, glob) for glob in runtime_libraries(device))


def runtime_libraries(device: Device) -> tuple[str, ...]:
    """Names (globs) of the libraries that a submission for a device may need beside its language's."""
    return tuple(_rules()["devices"].get(device.value, {}).get("libraries", ()))


@lru_cache(maxsize=16)
def _patterns(language: Language, device: Device | None) -> tuple[re.Pattern[str], re.Pattern[str]]:
    rules = _rules()
    names = "|".join(map(re.escape, rules["math"].split()))
    own = rules[_RUNTIME[language]] if language in _RUNTIME else []
    on_device = rules["devices"].get(device.value, {}).get("functions", ()) if device else ()
    listed = "|".join(map(_pattern, [*_words(rules["c"]), *_words(own), *_words(on_device)]))
    admitted = f"(?:{names}){_SUFFIXES}|__(?:{names}){_SUFFIXES}_finite|{listed}"
    return re.compile(admitted), re.compile("|".join(map(_pattern, _words(rules["refused"]))))


def _pattern(glob: str) -> str:
    return fnmatch.translate(glob).removesuffix(r"\Z").removesuffix(r"\z")


def _words(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from line.split()


@lru_cache(maxsize=1)
def _rules() -> dict[str, Any]:
    rules: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return rules


def python_modules() -> tuple[str, ...]:
    """The modules that a Python submission may import, and their parts that have to be loaded early."""
    return (*_rules()["python"].split(), *_rules()["python_parts"].split())


def triton_rules() -> dict[str, Any]:
    """What a Triton submission may name (`names.py`)."""
    rules: dict[str, Any] = _rules()["triton"]
    return rules


def top_modules(language: Language) -> frozenset[str]:
    """The modules that a submission in Python or in Triton may import, without their parts."""
    known = frozenset(name.partition(".")[0] for name in python_modules())
    if language is not Language.TRITON:
        return known
    return known - set(triton_rules()["without"].split()) | set(triton_rules()["modules"].split())


def check_python(source: str, language: Language = Language.PYTHON) -> None:
    """Look at the import statements of a module; what it imports by other means meets the filter.

    Raises:
        Rejected: (`policy`) a module is not on the list; the message names it.
    """
    known = top_modules(language)
    library = "Triton" if language is Language.TRITON else "NumPy"
    for node in ast.walk(ast.parse(source)):
        for name in _imported(node):
            if name.partition(".")[0] not in known:
                raise rejected(f"it imports '{name}', which no kernel needs; use {library} and what computes")


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            return ["." * node.level + (node.module or "")]
    return []
