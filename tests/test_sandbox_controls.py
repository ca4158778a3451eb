"""An honest control of each kernel passes under `user`; test_validate.py grades all at the strongest level there is.

`KCOURT_SANDBOX=user make validate` grades all there.
"""

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

# In turn, kernel by kernel; what the runtimes of other languages need of the sandbox, test_sandbox.py tries at every
# level.
LANGUAGES = (Language.C, Language.PYTHON)
CONTROLS = {
    task.name: (task, path)
    for number, task in enumerate(task for task in select("all") if task.baselines)
    for path in task.controls("honest")
    if Language.of(path) is LANGUAGES[number % len(LANGUAGES)]
}


@pytest.fixture
def under_user(monkeypatch: pytest.MonkeyPatch) -> Court:
    """This machine's court at level `user`, whatever more it reaches."""
    monkeypatch.setenv("KCOURT_SANDBOX", str(Level.USER))
    sandbox = reach("limits", len(court().cores.timing))
    if sandbox.level is not Level.USER:
        pytest.skip("this machine does not reach level 'user'")
    return replace(court(), sandbox=sandbox)


@pytest.mark.parametrize("kernel", CONTROLS)
def test_an_honest_control_is_solved(under_user: Court, kernel: str) -> None:
    task, path = CONTROLS[kernel]
    language, source = Language.of(path), Path(path).read_text(encoding="utf-8")
    if lacking := builder.lacking(language):
        pytest.skip(lacking)
    report = grade(order(source, language, kernel=task.name, protocol="mw4x5"), under_user)
    assert report.outcome is Outcome.SOLVED, (report.property, report.detail, report.log)
    assert report.sandbox == str(Level.USER)
