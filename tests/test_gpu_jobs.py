"""Jobs whose judges grade on GPUs of NVIDIA, which this machine plays: from the env file to the merged rows."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import fake_nvidia
import pytest
from played import ROOT
from slurm_jobs import begins, summary, write_env

from bench.config import JudgeConfig
from bench.errors import EnvironmentFault, ExitCode
from bench.reports.terminal import console_for
from bench.task import find_task
from cluster.commands.local_job import live
from cluster.doctor import examine
from cluster.doctor.check import State
from cluster.job.gpus import gpus_here

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
KERNEL = "gelu"
SUBMIT = {KERNEL: [{"tool": "submit", "file": str(find_task(KERNEL).gpu_baselines[0])}]}
ON_GPU = {"DEVICE": "cuda", "LANGUAGE": "hip", "HARDWARE": "h200", "JUDGES_PER_NODE": None, "GPUS_PER_NODE": None}


# At one place in every run: what is built by it is then found in the cache.
TOOLKIT = ROOT / ".scratch" / "played-nvidia"
USUAL_PATH = "/usr/sbin:/usr/bin:/bin"


@pytest.fixture
def machine(monkeypatch):
    """This machine with two GPUs, of which its operator may use the second."""
    monkeypatch.setenv("KCOURT_SANDBOX", "limits")
    monkeypatch.setenv("PATH", f"{fake_nvidia.install(TOOLKIT, gpus=2)}:{USUAL_PATH}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")


def written(tmp_path, **settings):
    """The env file of a job with one judge a GPU."""
    return write_env(tmp_path, script=SUBMIT, kernels=[KERNEL], **ON_GPU | settings)


def run(env):
    return live([env], {}, env.parent / "runs", console_for(stderr=True))


def test_a_job_grades_on_the_gpus_that_it_may_use(machine, tmp_path):
    done = run(written(tmp_path))
    assert done.summary.ending.exit_code == ExitCode.OK, summary(done.layout)
    (item,) = summary(done.layout)["items"]
    assert (item["standing"], item["outcome"]) == ("delivered", "solved")
    masks = {name: begin["devices"] for name, begin in begins(done.layout).items()}
    assert (masks["judge-0"], masks["agent-0"]) == ({"CUDA_VISIBLE_DEVICES": "1"}, {})
    assert "judge-1" not in masks
    with closing(sqlite3.connect(done.layout.results)) as database:
        ((device, denominator, provenance),) = database.execute("SELECT device, denominator, provenance FROM grades")
    assert (device, denominator) == ("cuda", "baseline.hip")
    gpu = json.loads(provenance)["machine"]["gpu"]
    assert (gpu["index"], gpu["driver"]) == (1, "1.2")
    contract = json.loads((done.layout.given("x") / "contracts" / f"{KERNEL}.json").read_bytes())
    assert contract["graded_on"] == "a GPU of NVIDIA (h200); its waves have 32 lanes"


def test_a_job_whose_gpus_are_not_here_ends_before_it_begins(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", USUAL_PATH)
    with pytest.raises(EnvironmentFault, match="no GPU of NVIDIA was found: nvidia-smi is not here; install its"):
        run(written(tmp_path))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("mask", "count"), [("", 2), ("1", 1), ("0,1", 2), ("GPU-a, GPU-b,GPU-c", 3)], ids=["none", "one", "all", "names"]
)
def test_gpus_are_counted_by_their_mask(machine, mask, count):
    assert gpus_here("cuda", {"CUDA_VISIBLE_DEVICES": mask, "ROCR_VISIBLE_DEVICES": "0"}) == count


def doctored(env):
    environ = {"KCOURT_SYSTEM": "local", "CUDA_VISIBLE_DEVICES": "1"}
    return {check.name: check for check in examine(environ, setup=str(env))}


def test_the_doctor_counts_gpus_and_judges(machine, tmp_path):
    found = doctored(written(tmp_path))
    assert (found["GPUs"].state, found["GPUs"].found) == (State.OK, "1 GPU, and a compiler")
    assert found["judges"].found == "1 judge, each with a GPU of its own"


def test_the_doctor_names_the_tool_and_the_compiler_that_are_missing(tmp_path, monkeypatch):
    programs = fake_nvidia.install(tmp_path / "cuda", gpus=1)
    monkeypatch.setenv("PATH", f"{programs}:{USUAL_PATH}")
    monkeypatch.setattr("bench.build.nvidia._NVCC", ())
    monkeypatch.setattr("bench.build.nvidia._WHEELS", "nvidia.nothing")
    for name, words in (("nvcc", "nvcc was not found"), ("nvidia-smi", "nvidia-smi is not here")):
        (programs / name).unlink()
        found = doctored(written(tmp_path))["GPUs"]
        assert (found.state, words in found.found, bool(found.advice)) == (State.BLOCKS, True, True), found


def test_the_doctor_says_where_judges_of_a_node_have_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", USUAL_PATH)
    (tmp_path / "site.yaml").write_text("ours: {nodes: {gpus: 0}}\n")
    environ = {"KCOURT_SYSTEMS_FILE": str(tmp_path / "site.yaml"), "KCOURT_SYSTEM": "ours"}
    found = {check.name: check for check in examine(environ, setup=str(written(tmp_path)))}
    assert found["GPUs"].state is State.WARNING and "ask there too" in found["GPUs"].advice
    assert found["judges"].state is State.BLOCKS and "--gpus-per-node" in found["judges"].advice


def test_a_judge_that_finds_no_gpu_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", USUAL_PATH)
    config = JudgeConfig(
        shard=tmp_path / "s.db", log_dir=tmp_path, cache_dir=tmp_path, allow_sandbox="limits", device="cuda"
    )
    (tmp_path / "judge.json").write_text(config.model_dump_json())
    ran = subprocess.run(
        [sys.executable, "-m", "bench.worker", tmp_path / "judge.json"], capture_output=True, text=True
    )
    assert "no GPU of NVIDIA was found: nvidia-smi is not here" in json.loads(ran.stdout)["unfit"]
    assert ran.returncode == EnvironmentFault.exit_code
