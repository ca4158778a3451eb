"""The copy of these packages that a sealed agent gets: the programs that run behind the seal, and what they import."""

import ast
import py_compile
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_PACKAGES = ("agent", "bench")
# Where the programs lie that run behind the seal; the driver's own do not.
_SEALED = ("tools", "commands", "harnesses")
_KCOURT = """\
#!{python} -P
import sys

sys.path.insert(0, {folder!r})
if sys.argv[1:2] != ["tool"]:
    sys.exit("usage: kcourt tool NAME [JSON]: an agent has no other command")
del sys.argv[1]
from agent.commands.tool import main

main()
"""


def stage_tools(folder: Path, shown_at: Path | None = None) -> None:
    """Write the copy into `folder`, which agents see at `shown_at` (default: there), and `bin/kcourt` beside it.

    The copy is compiled, because nobody can do so later where it is read-only. Files that are there are replaced.

    Raises:
        OSError: the folder cannot be written.
    """
    for module in sorted(needed()):
        target = folder / module.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(module.read_bytes())
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(target), dfile=str(module.relative_to(ROOT)), doraise=True, invalidation_mode=mode)
    command = folder / "bin" / "kcourt"
    command.parent.mkdir(exist_ok=True)
    command.write_text(_KCOURT.format(python=sys.executable, folder=str(shown_at or folder)), encoding="utf-8")
    command.chmod(0o755)


def needed() -> set[Path]:
    """Files of the agent's programs and, from their import statements, of everything that they import of ours."""
    found: set[Path] = set()
    waiting = list(_programs())
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imported(path)
    return found


def _programs() -> Iterator[Path]:
    """The modules there that are run as programs: those with a part for that."""
    for path in (path for name in _SEALED for path in (ROOT / "agent" / name).rglob("*.py")):
        if '\nif __name__ == "__main__":' in path.read_text(encoding="utf-8"):
            yield path


def _imported(path: Path) -> Iterator[Path]:
    """Our modules that one module imports, at its top or later, and the packages that it lies in."""
    for folder in path.relative_to(ROOT).parents[:-1]:
        yield ROOT / folder / "__init__.py"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from _files(alias.name for alias in names)
            case ast.ImportFrom(module=str() as module, names=names):
                yield from _files([module, *(f"{module}.{alias.name}" for alias in names)])


def _files(modules: Iterable[str]) -> Iterator[Path]:
    for module in modules:
        parts = module.split(".")
        if parts[0] in _PACKAGES:
            path = ROOT.joinpath(*parts)
            yield from (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())
