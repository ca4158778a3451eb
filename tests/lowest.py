"""Prints, as constraints for pip, the lowest version of each dependency that pyproject.toml allows."""

import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest(texts: Iterable[str]) -> list[str]:
    """`name==version` a requirement, by its `>=`; raises ValueError for one that names no lowest version."""
    return [f"{wanted.name}=={_least(wanted)}" for wanted in map(Requirement, texts)]


def _least(wanted: Requirement) -> str:
    for specifier in wanted.specifier:
        if specifier.operator == ">=":
            return specifier.version
    raise ValueError(f"pyproject.toml: {wanted} has no lowest version; write {wanted.name}>=VERSION")


if __name__ == "__main__":
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    print("\n".join(lowest([*project["dependencies"], *chain.from_iterable(extras)])))
