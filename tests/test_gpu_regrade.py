"""Regrades of what a GPU graded, which this machine plays: from the database alone, on the device of the grade."""

import shutil
from datetime import UTC, datetime

import pytest
from kernels import HONEST_C, HONEST_HIP, court, order
from played import played_court
from test_gpu_grades import CLEARS, WORKSPACE

from bench.adhoc import adhoc_database, record
from bench.errors import UsageError
from bench.grade import grade
from bench.judge.schemas import Device, Kind, Language, Outcome
from bench.regrade import regrade
from bench.results import queries
from bench.results.stored import stored_grade

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
PLACES = {"gpu": played_court, "cpu": court}
WITH_WORKSPACE = WORKSPACE.replace("{ each<<<", CLEARS.replace("BYTES", "workspace_bytes"))
MADE = {
    "gpu": ("gpu", HONEST_HIP, Language.HIP, 0),
    "workspace": ("gpu", WITH_WORKSPACE, Language.HIP, 4096),
    "emulated": ("cpu", HONEST_HIP, Language.HIP, 0),
    "c": ("cpu", HONEST_C, Language.C, 0),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A database of one grade a line of the table, whose name is its id."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("graded"))
        database = adhoc_database().resolve()
        for name, (place, source, language, workspace_bytes) in MADE.items():
            asked = order(source, language, grade_id=name, kind=Kind.SUBMIT, workspace_bytes=workspace_bytes)
            report = grade(asked, PLACES[place]())
            assert report.outcome is Outcome.SOLVED, report
            record(asked, report, datetime.now(UTC))
    return database


def texts(database, grade_id):
    with queries.opened([database]) as db:
        return stored_grade(db, grade_id).texts


@pytest.mark.parametrize(
    ("name", "device"), [("gpu", Device.CUDA), ("workspace", Device.CUDA), ("emulated", "emulated")]
)
def test_what_a_gpu_graded_is_made_again_on_it(graded, monkeypatch, tmp_path, name, device):
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path))
    made = regrade(graded, name, PLACES[MADE[name][0]]())
    assert (made.then.device, made.now.device, made.now.outcome) == (device, device, Outcome.SOLVED)
    assert [cell.sizes for cell in made.now.cells] == [cell.sizes for cell in made.then.cells]
    assert (made.then.task_hash, made.then.policy_stamp) == (made.now.task_hash, made.now.policy_stamp)
    assert made.differences == ()
    assert ("baseline:baseline.hip" in texts(graded, name)) == (device == Device.CUDA)


@pytest.mark.parametrize(
    ("name", "place", "says"),
    [
        ("gpu", "cpu", "on device 'cuda', and this judge grades on cpu and emulated; regrade it with `--device cuda`"),
        ("emulated", "gpu", "on device 'emulated', and this judge grades on cuda; regrade it with `--device cpu`"),
        ("c", "gpu", "on device 'cpu', and this judge grades on cuda; regrade it with `--device cpu`"),
    ],
)
def test_a_judge_of_another_device_says_so(graded, name, place, says):
    with pytest.raises(UsageError) as refused:
        regrade(graded, name, PLACES[place]())
    assert str(refused.value).startswith(f"{graded}: ") and says in str(refused.value)
