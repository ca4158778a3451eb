"""Which code is grading: package version, and the commit of the checkout it was installed from."""

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.errors import EnvironmentFault
from bench.places import checkout
from bench.process import Limits, run


@lru_cache(maxsize=1)
def package_version() -> str:
    try:
        return version("kernelcourt")
    except PackageNotFoundError:
        return "0+unknown"


def commit() -> str | None:
    """Commit of the checkout that this package lies in (`+dirty` when files differ), or None outside of one."""
    return _commit_of(checkout())


def checkout_commit(folder: Path) -> str | None:
    """Commit of the checkout that `folder` lies in at any depth, as `commit`; for the corpus that grades."""
    folder = folder.resolve()
    roots = (root for root in (folder, *folder.parents) if (root / ".git").exists())
    root = next(roots, None)
    return _commit_of(root) if root else None


@lru_cache(maxsize=8)
def _commit_of(root: Path) -> str | None:
    if not (root / ".git").exists():
        return None
    try:
        head = run(["git", "-C", str(root), "rev-parse", "HEAD"], limits=Limits(wall_s=10))
        changed = run(["git", "-C", str(root), "status", "--porcelain", "-uno"], limits=Limits(wall_s=10))
    except EnvironmentFault:
        return None
    if not head.ok:
        return None
    return head.output.strip() + ("+dirty" if changed.output.strip() else "")


def versions() -> dict[str, str | None]:
    return {"package": package_version(), "commit": commit()}
