"""Draws docs/pictures/*.svg from the .dot files beside them, with Graphviz; with `--check` it only names stale ones."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from pages import write

FOLDER = Path(__file__).resolve().parent / "pictures"


def mark(source: Path) -> str:
    """The comment by which a picture names its text: Graphviz of another version draws other bytes."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return f"<!-- Drawn by `make docs` from {source.name}, sha256 {digest} -->\n"


def picture(source: Path, checking: bool) -> str:
    """The picture of a text: the one that is there while it names this text, else a new one (empty when checking)."""
    there = source.with_suffix(".svg")
    if there.is_file() and mark(source) in (drawn := there.read_text("utf-8")):
        return drawn
    if checking:
        return ""
    if shutil.which("dot") is None:
        raise SystemExit(f"{source.name} has changed, and no `dot` is here to draw it; install graphviz")
    done = subprocess.run(["dot", "-Tsvg", source], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.replace("<svg ", f"{mark(source)}<svg ", 1)


if __name__ == "__main__":
    checking = "--check" in sys.argv
    sys.exit(write(sys.argv[1:], {p.with_suffix(".svg"): picture(p, checking) for p in FOLDER.glob("*.dot")}))
