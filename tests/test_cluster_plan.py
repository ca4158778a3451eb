"""`kcourt cluster plan`: what a job would be, on a machine with and without Slurm."""

import json
import re
from datetime import UTC, datetime

import pytest
from goldens import check_golden
from typer.testing import CliRunner

from bench.errors import ConfigError, EnvironmentFault, UsageError
from cluster.commands.cluster import app, spans
from cluster.job.preview import Asked, preview
from cluster.study.queue import logs_folder, sbatch_argv
from cluster.study.render import Choices, build, write
from cluster.study.snapshots import snapshot
from cluster.study.studies import read_study
from cluster.study.systems import choose_system

ENV = """SETUP=gold
HARNESS=scripted
AGENT_SCRIPT=plan.json
KERNELS=axpy,sgemm,nbody
AGENT_NODES=2
AGENT_TIMEOUT_SECONDS=3600
"""
GPU = "DEVICE=cuda\nLANGUAGE=hip\nINFERENCE_NODES=1\n"
SITE = """ours:
  partition: gpu
  nodes: {cpus: 16, sockets: 2, gpus: 4}
none:
  nodes: {gpus: 0}
small:
  nodes: {cpus: 16, sockets: 4, gpus: 2}
"""


@pytest.fixture(autouse=True)
def _site(tmp_path, monkeypatch):
    """A machine without Slurm that knows two systems."""
    for variable in ("KCOURT_SYSTEM", "SLURM_CLUSTER_NAME", "SBATCH_PARTITION", "KCOURT_SCRATCH"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "site.yaml").write_text(SITE)
    monkeypatch.setenv("KCOURT_SYSTEMS_FILE", str(tmp_path / "site.yaml"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def env(tmp_path):
    (tmp_path / "plan.json").write_text("{}")
    path = tmp_path / ".env.gold"
    path.write_text(ENV)
    return path


def planned(*words):
    """What the command prints of its own, and the last line apart: the command that submits."""
    done = CliRunner().invoke(app, ["plan", *map(str, words)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    text, _, last = done.output.rstrip().rpartition("\n")
    return text, last


def document(*words):
    return json.loads(CliRunner().invoke(app, ["plan", *map(str, words), "--json"]).output)


def test_a_plan_says_what_every_node_does_and_what_each_rank_gets(env):
    text, _ = planned(env, "--system", "ours", "--hosts", "n1,n2,n3,n4,n5")
    check_golden("cluster-plan.txt", re.sub(" +$", "", text, flags=re.MULTILINE) + "\n")


def test_the_command_asks_sbatch_for_what_the_plan_shows(env):
    words = planned(env, "--system", "ours", "--time", "1:00:00")[1].split()
    assert words[0] == "sbatch"
    assert {"--nodes=5", "--partition=gpu", "--gpus-per-node=4", "--time=01:00:00", "--job-name=gold"} <= {*words}
    assert words[-1] == str(env)


def test_the_command_is_the_one_that_submits_a_study(tmp_path, monkeypatch):
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(tmp_path))
    system = choose_system({}, "beverin")
    setup = write(build(read_study("demo"), tmp_path, Choices(system)))[0]
    made = snapshot(setup, datetime.now(UTC))
    submitted = sbatch_argv(setup.shape, [made], logs_folder(setup.settings.kcourt_scratch), setup.settings, {})
    shown = preview(setup.env, [], Asked(system, {}, {})).sbatch
    assert list(shown[:-1]) == submitted[:-1]
    assert (shown[-1], submitted[-1]) == (str(setup.env), str(made.env))


def test_nothing_is_written(env, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    planned(env, "--system", "ours")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_json_holds_the_same(env):
    found = document(env, "--system", "ours")
    assert (found["nodes"], found["inference"]) == (5, ["node1", "node2"])
    assert found["agents"] == ["node3", "node4"]
    assert found["workers_of_replica"] == [4, 4]
    assert [(judge["rank"], judge["gpus"], judge["problems"]) for judge in found["judges"]] == [
        (0, [0, 1], 2),
        (1, [2, 3], 1),
    ]
    assert found["judges"][1]["cpus"] == list(range(8, 16))
    assert found["sbatch"][-1] == str(env)
    assert found["judge_nodes_for_peak"] is None


def test_this_machine_plays_every_node_where_there_is_no_slurm(env):
    text, last = planned(env, "--system", "local")
    assert "judges     127.0.0.1" in text
    assert last == "this system has no Slurm; --system SYSTEM prints the sbatch command of another"
    assert document(env, "--system", "local")["sbatch"] is None


def test_a_peak_of_grades_says_how_many_judge_nodes(env):
    env.write_text(f"{ENV}JUDGE_GRADES_PER_HOUR=170\n")
    text, _ = planned(env, "--system", "ours", "--peak-grades-per-hour", "900")
    assert "900 grades an hour, 170 a slot: JUDGE_NODES=3" in text
    assert document(env, "--system", "ours", "--peak-grades-per-hour", "900")["judge_nodes_for_peak"] == 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["--system", "small"], "a node with 2 GPUs has no more judge slots than that", id="clamped"),
        pytest.param(["--system", "beverin"], "nobody says how many CPUs a node has", id="cpus-not-known"),
        pytest.param(["--system", "ours"], "else those of a block that its id decides", id="ports"),
    ],
)
def test_what_the_operator_may_not_expect_is_said(env, words, expected):
    assert expected in planned(env, *words)[0]


@pytest.mark.parametrize(
    ("more", "words", "kind", "expected"),
    [
        pytest.param("", ["--hosts", "n1,n2"], ConfigError, "2 inference \\+ 2 agent \\+ 1 judge = 5", id="wrong-sum"),
        pytest.param("", ["--system", "our"], ConfigError, "did you mean 'ours'", id="system"),
        pytest.param("", ["--hosts", "n[1-5"], UsageError, "a bracket is open", id="bracket"),
        pytest.param("", ["--peak-grades-per-hour", "9"], ConfigError, "JUDGE_GRADES_PER_HOUR is unset", id="peak"),
        pytest.param("GRADE_CPUS=9\n", ["--system", "ours"], ConfigError, "is 18 CPUs, and the job has 16", id="cpus"),
        pytest.param(
            "DEVICE=hip\n", [], ConfigError, "DEVICE=hip grades hip, triton, and not c; set DEVICE", id="language"
        ),
        pytest.param(GPU, ["--system", "none"], ConfigError, "no GPU on node4, where .* --gpus-per-node=N", id="gpus"),
        pytest.param(GPU, ["--system", "local"], EnvironmentFault, "no GPU of NVIDIA .* nvidia-smi", id="no-gpu-here"),
        pytest.param("GRADE_CPUS=1\n", ["--system", "ours"], ConfigError, "GRADE_CPUS.*2 at least", id="one-cpu"),
    ],
)
def test_what_cannot_be_planned_is_refused(env, more, words, kind, expected):
    env.write_text(ENV + more)
    with pytest.raises(kind, match=expected):
        planned(env, *words)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param((), "", id="none"),
        pytest.param((5,), "5", id="one"),
        pytest.param((0, 4, 1, 5), "0-1,4-5", id="threads"),
        pytest.param(range(24), "0-23", id="a-row"),
    ],
)
def test_numbers_are_shown_as_spans(numbers, expected):
    assert spans(numbers) == expected
