"""Real Claude Code as a job of a real Slurm: its model follows a script on the login node."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_model import ScriptedModel, Step, demo_course
from slurm import JobEnd, Slurm
from slurm_jobs import summary

from agent.harnesses.clients import INSTALLED
from bench.results.queries import opened
from cluster.job.layout import RunLayout
from tests.demo_claude import KERNELS, KEY, STUDY, broken_promises

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.skipif(not os.access(INSTALLED / "claude", os.X_OK), reason="run `make setup-agents`"),
]
SECRET = "a-key-that-no-file-may-hold"
LOOKS = "env; cat /proc/*/environ | tr '\\0' '\\n'; ls -a ~ /"


def course(kernel: str) -> list[Step]:
    """An agent that prints all it can see, and then does what the demo's does."""
    return [Step(shell=LOOKS), *demo_course(f"# Task: {kernel}\n\nWrite the file `{kernel}.c`.")]


def test_real_clients_write_preview_and_submit_kernels_on_another_node(slurm: Slurm, tmp_path: Path) -> None:
    login = slurm.address(slurm.nodes[0]).rpartition(".")[0] + ".254"
    runs = tmp_path / "runs"
    with ScriptedModel({kernel: course(kernel) for kernel in KERNELS}, host=login) as model:
        kcourt = str(Path(sys.executable).with_name("kcourt"))
        settings = {"INFERENCE_SERVICE_BASE_URL": f"{model.url}/v1", "RUN_ROOT": runs, "KCOURT_SCRATCH": tmp_path}
        options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        words = [kcourt, "study", "submit", STUDY, *options, "--render-to", str(tmp_path / "rendered")]
        env = slurm.env | {KEY: SECRET}
        said = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120)
        assert said.returncode == 0, said.stderr
        job_id = said.stdout.partition("job ")[2].partition(",")[0]
        end = slurm.wait(job_id, 400)
    layout = RunLayout(runs / job_id)
    assert end == JobEnd("COMPLETED", 0, 0), summary(layout)
    assert summary(layout)["delivered"] == len(KERNELS)
    with opened([layout.results]) as database:
        assert list(broken_promises(database)) == []
    assert layout.usage.read_text().count('"status": 200') >= len(KERNELS)
    transcripts = [path.read_text() for path in layout.agents.rglob("claude.log")]
    assert len(transcripts) == len(KERNELS) and all("KCOURT_TOOLS=" in text for text in transcripts)
    # The provider's key is with the driver's proxy alone: in no env, transcript, database or other file of the run.
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert files
    assert [str(path) for path in files if SECRET.encode() in path.read_bytes()] == []
