"""Which code is grading: package version, and the commit of the checkout it was installed from."""

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.errors import EnvironmentFault
from bench.process import Limits, run


@lru_cache(maxsize=1)
def package_version() -> str:
    try:
        return version("kernelcourt")
    except PackageNotFoundError:
        return "0+unknown"


@lru_cache(maxsize=1)
def commit() -> str | None:
    """Commit of the checkout that this package lies in (`+dirty` when files differ), or None outside of one."""
    root = Path(__file__).resolve().parent.parent
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
