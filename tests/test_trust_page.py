"""docs/trust.md: every kind of cheat has its row, and what a row says shows it is there."""

import ast
import sys
from collections import Counter
from functools import cache

import pytest
from conftest import REPOSITORY
from trials import EXPLOITS, HONEST, all_trials

from bench.judge.schemas import Outcome

sys.path.append(str(REPOSITORY / "docs"))

import rows

# How many kinds there are of each letter, numbered from 1.
KINDS = {"T": 27, "C": 39, "P": 16, "S": 25, "B": 9, "D": 15}
ROWS = rows.catalogue().rows
MOST_WORDS = 12


@cache
def functions_of(path: str) -> set[str]:
    """Names of the functions of a test file."""
    tree = ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_kind_has_a_row_in_its_order() -> None:
    assert list(ROWS) == [f"{letter}{number:02}" for letter, last in KINDS.items() for number in range(1, last + 1)]


def test_every_submission_that_cheats_belongs_to_a_row() -> None:
    cheats = [trial for trial in all_trials() if trial.path.parent == EXPLOITS]
    assert [trial.name for trial in cheats if not trial.path.name.startswith(f"{trial.row}_")] == []
    assert [trial.name for trial in cheats if Outcome.SOLVED in trial.outcomes] == []
    counted = {path for row in ROWS.values() for pattern in row.files for path in rows.on_trial(pattern)}
    assert [trial.name for trial in cheats if trial.path not in counted] == []


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_shown_or_says_why_not(name: str) -> None:
    row = ROWS[name]
    assert 0 < len(row.what.split()) <= MOST_WORDS
    assert bool(row.shown_by) == bool(row.stopped_by) != bool(row.later)
    assert [pattern for pattern in row.files if not rows.on_trial(pattern)] == []
    assert [test for path, test in row.tests if test not in functions_of(path)] == []


def test_walls_are_files_and_each_stops_something() -> None:
    walls = rows.catalogue().walls
    assert [path for path in walls.values() if not (REPOSITORY / path).is_file()] == []
    assert {wall for row in ROWS.values() for wall in row.stopped_by} == set(walls)


def test_the_page_counts_what_is_there() -> None:
    page = rows.filled(
        "<!-- COUNT exploits -->?<!-- END --> <!-- COUNT honest -->?<!-- END --> <!-- COUNT rows -->?<!-- END -->"
    )
    found = [int(part.partition("<")[0]) for part in page.split("-->")[1::2]]
    by_folder = Counter(trial.path.parent for trial in all_trials())
    assert found == [by_folder[EXPLOITS], by_folder[HONEST], sum(KINDS.values())]


def test_a_count_that_is_none_is_named() -> None:
    with pytest.raises(SystemExit, match="quotes 'exploit', which is no count; there are exploits, "):
        rows.filled("<!-- COUNT exploit -->1<!-- END -->")
