"""What the programs of this folder share: Markdown tables, and pages that are written, or with `--check` compared."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; bars and line ends in cells are made harmless."""
    lines = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in [list(head), *rows]]
    body = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([body[0], "|" + "---|" * len(lines[0]), *body[1:]]) + "\n"


def write(arguments: list[str], texts: Mapping[Path, str]) -> int:
    """Write the pages, or with `--check` compare them; 1 when one is stale, 2 on another argument."""
    if unknown := set(arguments) - {"--check"}:
        sys.stderr.write(f"unknown: {', '.join(sorted(unknown))}; give --check, or nothing to write the pages\n")
        return 2
    checking = bool(arguments)
    stale = {path: text for path, text in texts.items() if not path.is_file() or path.read_text("utf-8") != text}
    names = ", ".join(path.name for path in stale) or "none"
    if checking:
        sys.stdout.write(f"stale: {names}{'; run `make docs`' if stale else ''}\n")
        return int(bool(stale))
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"written: {names}\n")
    return 0
