"""Where things lie when nobody names another place: the checkout, and the folder of run directories."""

import os
from pathlib import Path

RUN_ROOT = Path(".scratch/runs")


def checkout() -> Path:
    """The checkout that this package lies in."""
    return Path(__file__).resolve().parents[1]


def run_root(named: Path | None = None) -> Path:
    """The folder of run directories: `named`, else the variable RUN_ROOT, else `.scratch/runs`."""
    return anchored(named or Path(os.environ.get("RUN_ROOT") or RUN_ROOT))


def anchored(path: Path) -> Path:
    """A relative path from the checkout when this process works inside it, else from the current folder."""
    here, home = Path.cwd(), checkout()
    return (home if here.is_relative_to(home) else here) / path
