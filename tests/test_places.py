"""Where runs and the cache lie when nobody names a place: one rule for every command."""

from pathlib import Path

import pytest

from bench.adhoc import adhoc_database
from bench.places import anchored, checkout, run_root


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUN_ROOT", raising=False)


@pytest.mark.parametrize("folder", ["", "docs", "tests"])
def test_inside_the_checkout_runs_lie_in_it(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.chdir(checkout() / folder)
    assert run_root() == checkout() / ".scratch" / "runs"
    assert adhoc_database() == run_root() / "adhoc" / "grades.db"


def test_outside_of_it_runs_lie_in_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_root() == tmp_path / ".scratch" / "runs"
    assert run_root(Path("mine")) == anchored(Path("mine")) == tmp_path / "mine"


def test_the_variable_wins_over_the_rule_and_a_name_over_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RUN_ROOT", str(tmp_path / "else"))
    assert run_root() == tmp_path / "else"
    assert run_root(tmp_path / "named") == tmp_path / "named"
