"""Honest C and Python controls pass under `user`; test_validate.py grades all at the strongest level there is."""

from dataclasses import replace
from pathlib import Path

import pytest
from kernels import court, order

from bench.build import builder
from bench.court import Court
from bench.grade import grade
from bench.judge.schemas import Language, Outcome
from bench.sandbox import Level, reach
from bench.task import select

# What the runtimes of the other languages need of the sandbox, test_sandbox.py tries at every level.
CONTROLS = {
    f"{task.name}-{path.name}": (task, path)
    for task in select("all")
    for path in task.controls("honest")
    if Language.of(path) in (Language.C, Language.PYTHON)
}


@pytest.fixture
def under_user(monkeypatch: pytest.MonkeyPatch) -> Court:
    """This machine's court at level `user`, whatever more it reaches."""
    monkeypatch.setenv("KCOURT_SANDBOX", str(Level.USER))
    sandbox = reach("limits", len(court().cores.timing))
    if sandbox.level is not Level.USER:
        pytest.skip("this machine does not reach level 'user'")
    return replace(court(), sandbox=sandbox)


@pytest.mark.parametrize("control", CONTROLS)
def test_an_honest_control_is_solved(under_user: Court, control: str) -> None:
    task, path = CONTROLS[control]
    language, source = Language.of(path), Path(path).read_text(encoding="utf-8")
    if lacking := builder.lacking(language):
        pytest.skip(lacking)
    report = grade(order(source, language, kernel=task.name, protocol="mw4x5"), under_user)
    assert report.outcome is Outcome.SOLVED, (report.property, report.detail, report.log)
    assert report.sandbox == str(Level.USER)
