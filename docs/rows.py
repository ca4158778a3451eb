"""The tables and counts of docs/trust.md, for docs/generate.py: kinds of cheats, what stops them, and what shows it."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pages import table
from pydantic import BaseModel, ConfigDict, ValidationError

from bench.judge.schemas import SUFFIXES
from bench.yaml_lines import YamlFault, parse

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "trust.md"
EXPLOITS, HONEST = ROOT / "tests" / "exploits", ROOT / "tests" / "honest"
ROWS = EXPLOITS / "rows.yaml"
GROUPS = {
    "T": "Time",
    "C": "Correctness",
    "P": "What counts as a kernel, and as a result",
    "S": "Sandbox and surroundings",
    "B": "Build",
    "D": "Denial of service",
}
# A count that the page quotes: its name, and its text between the two comments; the tables stand between two others.
COUNT = re.compile(r"(<!-- COUNT (\w+) -->)(.*?)(<!-- END -->)")
TABLES = re.compile(r"(<!-- ROWS -->\n)(.*?)(<!-- END -->)", re.DOTALL)


class Row(BaseModel):
    """One kind of cheat: what it does, which walls stop it, and what shows that they do.

    `open` says what is left of it, `later` what has to be there before it can be tried.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    stopped_by: tuple[str, ...] = ()
    shown_by: tuple[str, ...] = ()
    open: str = ""
    later: str = ""

    @property
    def tests(self) -> list[tuple[str, str]]:
        """(file, name) of each test that shows it."""
        split = (shown.partition("::") for shown in self.shown_by)
        return [(path, name) for path, colons, name in split if colons]

    @property
    def files(self) -> list[str]:
        """Patterns of the files on trial that show it, from tests/."""
        return [shown if "/" in shown else f"exploits/{shown}" for shown in self.shown_by if "::" not in shown]


class Catalogue(BaseModel):
    """All kinds by their ids; `walls` says in which file each wall is read about, from the root."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    walls: dict[str, str]
    rows: dict[str, Row]


@cache
def catalogue() -> Catalogue:
    """Ends the program where the file is none."""
    try:
        return Catalogue.model_validate(parse(ROWS.read_text(encoding="utf-8")).value)
    except (YamlFault, ValidationError) as error:
        raise SystemExit(f"{ROWS}: {error}") from error


def on_trial(pattern: str) -> list[Path]:
    """Submissions that a pattern below tests/ names."""
    return sorted(path for path in (ROOT / "tests").glob(pattern) if path.suffix in SUFFIXES.values())


def stopped_cell(row: Row) -> str:
    if unknown := [wall for wall in row.stopped_by if wall not in catalogue().walls]:
        raise SystemExit(f"{ROWS}: walls has no {unknown[0]!r}")
    return ", ".join(f"[{wall}]({link(catalogue().walls[wall])})" for wall in row.stopped_by)


def link(path: str) -> str:
    """A file of the repository, as trust.md points to it."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"


def shown_cell(row: Row) -> str:
    parts = [counted(pattern) for pattern in row.files]
    parts += [f"[{name.removeprefix('test_').replace('_', ' ')}]({link(path)})" for path, name in row.tests]
    parts += [f"*{head}:* {said}" for head, said in (("Open", row.open), ("Not yet", row.later)) if said]
    return "; ".join(parts)


def counted(pattern: str) -> str:
    number, kind = len(on_trial(pattern)), "honest file" if pattern.startswith("honest/") else "submission"
    return f"{number} {kind}{'' if number == 1 else 's'}"


def tables() -> Iterator[str]:
    for letter, title in GROUPS.items():
        rows = [(name, row) for name, row in catalogue().rows.items() if name.startswith(letter)]
        cells = [(name, row.what, stopped_cell(row), shown_cell(row)) for name, row in rows]
        yield f"### {title}\n\n{table(['Row', 'What it does', 'Stopped by', 'Shown by'], cells)}"


def counts() -> dict[str, int]:
    rows = catalogue().rows.values()
    return {
        "exploits": len(on_trial("exploits/*")),
        "gpu": len(on_trial("exploits_gpu/*")),
        "honest": len(on_trial("honest/*")),
        "rows": len(rows),
        "shown": sum(bool(row.shown_by) for row in rows),
        "later": sum(bool(row.later) for row in rows),
        "open": sum(bool(row.open) for row in rows),
    }


def filled(text: str) -> str:
    """The page with its tables and counts as they are now."""
    found = counts()

    def count(match: re.Match[str]) -> str:
        if match[2] not in found:
            raise SystemExit(f"{PAGE}: quotes {match[2]!r}, which is no count; there are {', '.join(found)}")
        return f"{match[1]}{found[match[2]]}{match[4]}"

    body = "\n".join(tables())
    return COUNT.sub(count, TABLES.sub(lambda match: f"{match[1]}\n{body}\n{match[3]}", text))


def trust_page() -> dict[Path, str]:
    return {PAGE: filled(PAGE.read_text(encoding="utf-8"))}
