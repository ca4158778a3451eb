"""A job of Slurm whose own process was lost with its node is cancelled by a node that is left; no other job is."""

import itertools
import os
from pathlib import Path

import pytest

from cluster.job.survivor import SILENT_S, Survivor

JOB = "JobId=7 JobState={state} ReqNodeList=n9 ExcNodeList=(null) NodeList={nodes} BatchHost={batch}"
SCONTROL = """#!/bin/sh
case "$*" in
  *"show hostnames"*) echo n2; echo n3 ;;
  *) echo "$*" >> "$FAKE/asked"; cat "$FAKE/job" ;;
esac
"""
SCANCEL = '#!/bin/sh\necho "$*" >> "$FAKE/cancelled"\n'


@pytest.fixture
def slurm_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose Slurm is two scripts; what they are asked lies in the folder."""
    for name, text in (("scontrol", SCONTROL), ("scancel", SCANCEL)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("FAKE", str(tmp_path))
    return tmp_path


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize(
    ("job", "cancelled"),
    [
        pytest.param(JOB.format(state="RUNNING", nodes="n[2-3]", batch="n1"), ["7"], id="batch-node-lost"),
        pytest.param(JOB.format(state="RUNNING", nodes="n3", batch="n1"), ["7"], id="one-node-left"),
        pytest.param(JOB.format(state="RUNNING", nodes="n[2-3]", batch="n2"), [], id="batch-node-there"),
        pytest.param(JOB.format(state="COMPLETING", nodes="n[2-3]", batch="n1"), [], id="ends-already"),
        pytest.param("slurm_load_jobs error: Unable to contact slurm controller", [], id="no-answer"),
    ],
)
def test_a_silent_job_is_cancelled_where_slurm_has_lost_its_batch_node(slurm_says, job, cancelled):
    (slurm_says / "job").write_text(job)
    clock = itertools.count(0, SILENT_S).__next__
    Survivor(slurm_says / "state.json", "7", clock).look()
    assert lines(slurm_says / "cancelled") == cancelled


def test_slurm_is_asked_only_of_a_job_that_is_silent_and_then_seldom(slurm_says):
    (slurm_says / "job").write_text(JOB.format(state="RUNNING", nodes="n1", batch="n1"))
    state, now = slurm_says / "state.json", [0.0]
    survivor = Survivor(state, "7", lambda: now[0])
    for second in range(100):
        now[0] = second
        state.write_text("{}")
        os.utime(state, (second, second))
        survivor.look()
    assert lines(slurm_says / "asked") == []
    for second in range(100, 100 + 4 * int(SILENT_S)):
        now[0] = second
        survivor.look()
    assert len(lines(slurm_says / "asked")) == 4


def test_a_machine_without_slurm_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    Survivor(tmp_path / "state.json", "7", itertools.count(0, SILENT_S).__next__).look()
    assert list(tmp_path.iterdir()) == []
