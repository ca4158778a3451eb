"""What goes wrong with other people's jobs of Slurm, each by its symptom: here it does not happen, or it is said."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fake_engine
import pytest
from slurm import JobEnd, Slurm
from slurm_jobs import (
    KERNELS,
    Launch,
    Nodes,
    acknowledged,
    begins,
    fast,
    graded_live,
    grades,
    nap,
    summary,
    write_env,
    write_study,
)

from bench.errors import ExitCode
from cluster.job.allocation import Host
from cluster.job.launchers import Role, Step, wait
from cluster.job.launchers.slurm import SlurmLauncher
from cluster.job.records import StepState
from cluster.job.stages import Life
from cluster.job.watch import Watcher
from cluster.study.queue import kcourt_command

ROOT = Path(__file__).resolve().parent.parent
ON_SLURM = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.xdist_group("slurm")]
FOR_EVER_S = 3600


def on_slurm(test: Callable[..., Any]) -> Callable[..., Any]:
    """A test on the development cluster, in `make test-slurm` alone."""
    for mark in ON_SLURM:
        test = mark(test)
    return test


# Allocations and steps

SHOW_HOSTS = f"""\
{sys.executable} -c '
import os
from cluster.job.launchers.slurm import launcher_of
for host in launcher_of(os.environ).hosts:
    print("host", host.name, host.address)
'
scontrol show hostnames
echo nodes $SLURM_JOB_NUM_NODES
"""


@on_slurm
@pytest.mark.parametrize("nodes", ["n5,n2,n4", "n[1-2,6]", "n[1-6]", "n3"])
def test_no_node_of_a_list_is_lost_doubled_or_out_of_place(slurm: Slurm, tmp_path: Path, nodes: str) -> None:
    output = tmp_path / "out"
    job_id = slurm.sbatch(f"--nodelist={nodes}", f"--output={output}", "--wrap", SHOW_HOSTS)
    assert slurm.wait(job_id) == JobEnd("COMPLETED", 0, 0), output.read_text()
    lines = [line.split() for line in output.read_text().splitlines()]
    hosts = [words[1:] for words in lines if words[0] == "host"]
    by_slurm = [words[0] for words in lines if len(words) == 1]
    assert [name for name, _ in hosts] == by_slurm
    assert [["nodes", str(len(hosts))]] == [words for words in lines if words[0] == "nodes"]
    assert all(address == slurm.address(name) for name, address in hosts)


@pytest.fixture
def held(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SlurmLauncher, Host]]:
    """A launcher in an allocation of one node, all of which a step of its batch script has, and does not share."""
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    greedy = "srun --nodes=1 --cpus-per-task=2 --mem=3000 --gres=gpu:4 sh -c 'echo held; exec sleep 3600'"
    output = tmp_path / "held"
    job_id = slurm.sbatch("--nodes=1", "--gpus-per-node=4", "--time=60", f"--output={output}", "--wrap", greedy)
    try:
        until(lambda: output.exists() and "held" in output.read_text())
        name = re.search(r"BatchHost=(\S+)", slurm.command("scontrol", "show", "job", job_id))
        assert name
        host = Host(name[1], (0, 1), 1, slurm.address(name[1]), gpus=4)
        yield SlurmLauncher(job_id, (host,)), host
    finally:
        slurm.scancel(job_id)
        slurm.wait(job_id)


def until(holds: Callable[[], object], timeout_s: float = 120) -> None:
    """Look until something holds; fails the test after so many seconds."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


STDIN = ("sh", "-c", "readlink /proc/self/fd/0; exec sleep 3600")


@on_slurm
def test_steps_of_all_roles_begin_on_a_node_that_another_step_has(
    held: tuple[SlurmLauncher, Host], tmp_path: Path
) -> None:
    launcher, host = held
    steps = [Step(f"{role}-0", role, STDIN, host, tmp_path / f"{role}.log", tmp_path / "steps") for role in Role]
    (tmp_path / "steps").mkdir()
    running = [launcher.start(step) for step in steps]
    try:
        until(lambda: all(step.read_begin() for step in steps))
        until(lambda: all("/dev/null" in step.log.read_text() for step in steps))
        launcher.stop(running)
        ends = [wait(one, 60) for one in running]
    finally:
        launcher.kill(running)
    assert [end.state if end else None for end in ends] == [StepState.STOPPED] * len(Role)
    assert [step.name for step in steps if re.search("disabled|busy|waiting", step.log.read_text())] == []


# Losses


def lose_power(slurm: Slurm, node: str) -> None:
    """End a node at once: nothing of it can tell anybody that it dies."""
    slurm.cut(node)
    slurm.kill(node)


@on_slurm
def test_a_job_does_not_wait_for_an_agent_node_that_is_lost(launch: Launch, slurm: Slurm) -> None:
    quick, endless = KERNELS
    script = {quick: [fast(quick)], endless: [fast(endless, "score"), nap(FOR_EVER_S)]}
    job = launch(script, Nodes(agents=2), AGENTS_PER_NODE=1, AGENT_TIMEOUT_SECONDS=FOR_EVER_S)
    job.until(lambda: graded_live(job.layout, 1) == 2, "both agents have a grade")
    lose_power(slurm, begins(job.layout)["agent-1"]["host"])

    assert slurm.wait(job.job_id) == JobEnd("FAILED", ExitCode.DEGRADED, 0), job.said()
    found = summary(job.layout)
    assert {step["name"]: step["state"] for step in found["steps"] if step["role"] == "agent"} == {
        "agent-0": "succeeded",
        "agent-1": "lost",
    }
    items = {item["kernel"]: (item["standing"], item["owed"], item["why"]) for item in found["items"]}
    assert items == {quick: ("delivered", None, None), endless: ("owed", "infra", "no record of an episode")}
    assert acknowledged(job.layout) <= {row.grade_id for row in grades(job.layout)}


@on_slurm
def test_a_job_whose_own_node_is_lost_gives_the_others_back(
    launch: Launch, slurm: Slurm, kcourt_process: Callable[..., Any]
) -> None:
    script = {kernel: [fast(kernel, "score"), nap(FOR_EVER_S)] for kernel in KERNELS}
    job = launch(script, Nodes(judges=2))
    job.until(lambda: len(acknowledged(job.layout)) == 2, "both agents have a grade")
    lose_power(slurm, begins(job.layout)["agent-0"]["host"])

    assert slurm.wait(job.job_id).state == "CANCELLED"
    assert not job.layout.summary.exists()
    seen = Watcher(job.layout, lambda: datetime.now(UTC) + timedelta(minutes=2)).look()
    assert (seen.life, seen.advice) == (
        Life.GONE,
        f"the job's process is gone and left no summary; `kcourt job collect {job.layout.root}` merges what there is",
    )
    done = kcourt_process("job", "collect", str(job.layout.root), "--json")
    assert done.code == 0, done.err
    assert (done.json["planned"], done.json["owed"], done.json["exit_code"]) == (2, 2, ExitCode.SERVICE_LOST)
    assert {item["owed"] for item in done.json["items"]} == {"infra"}
    assert acknowledged(job.layout) == {row.grade_id for row in grades(job.layout)}


# Starts that fail


@on_slurm
@pytest.mark.parametrize("who", ["engine", "judge"])
def test_a_service_that_fails_at_its_start_holds_no_nodes(
    launch: Launch, slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    patient = {"JUDGE_READY_SECONDS": FOR_EVER_S, "INFERENCE_READY_SECONDS": FOR_EVER_S}
    script = {kernel: [fast(kernel)] for kernel in KERNELS}
    if who == "engine":
        engine = fake_engine.install(tmp_path / "bin").parent
        fake_engine.behave(engine, dies_after_s=0)
        monkeypatch.setenv("PATH", f"{engine}:{os.environ['PATH']}")
        job = launch(script, Nodes(inference=1), INFERENCE_MODEL="some/model", **patient)
        words = "EngineDeadError: told to die"
    else:
        job = launch(script, CACHE_DIR="/proc/none", **patient)
        words = "/proc/none"

    assert slurm.wait(job.job_id) == JobEnd("FAILED", ExitCode.NEVER_READY, 0), job.said()
    found = summary(job.layout)
    assert (found["exit_code"], found["cause"], found["owed"]) == (ExitCode.NEVER_READY, "never_ready", 2)
    assert words in found["reason"]
    assert words in job.said()


# Queue


@on_slurm
def test_a_job_is_never_run_twice_under_one_number(launch: Launch, slurm: Slurm) -> None:
    job = launch({kernel: [fast(kernel)] for kernel in KERNELS}, Nodes(), "--hold")
    assert "Requeue=0" in slurm.command("scontrol", "show", "job", job.job_id)
    job.layout.root.mkdir(parents=True)
    job.layout.results.write_text("rows of the first run")
    job.output.write_text("words of the first run\n")
    slurm.command("scontrol", "release", job.job_id)

    assert slurm.wait(job.job_id) == JobEnd("FAILED", ExitCode.CONFIGURATION, 0), job.said()
    assert job.said().startswith("words of the first run\n")
    assert f"{job.layout.root}: this run directory is there already, and each is used once" in job.said()
    assert [path.name for path in job.layout.root.iterdir()] == ["results.db"]
    assert job.layout.results.read_text() == "rows of the first run"


@on_slurm
def test_a_cluster_without_accounts_lacks_nothing(slurm: Slurm, kcourt_process: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError, match="accounting storage is disabled"):
        slurm.command("sacct")
    doctor = kcourt_process("doctor", "--nodes", "--json", env=slurm.env)
    found = {check["name"]: check for check in doctor.json["checks"]}
    assert [found[name]["state"] for name in ("partition", "account", "paths on nodes")] == ["ok"] * 3, found


def test_nothing_asks_for_what_only_accounting_knows() -> None:
    asking = re.compile(r"\b(sacct|sreport|sstat)\b(?!mgr)")
    files = [path for name in ("bench", "agent", "cluster") for path in (ROOT / name).rglob("*") if path.is_file()]
    assert [path for path in files if path.suffix != ".pyc" and asking.search(path.read_text(errors="replace"))] == []


# Standard input


def reads_nothing(tmp_path: Path, env: dict[str, str], *argv: object) -> str:
    """Call a command in a loop that reads a list: the list must be whole afterwards. Returns what it printed."""
    output = tmp_path / "printed"
    script = f"{shlex.join(map(str, argv))} > {output} 2>&1; echo left: $?; exec cat"
    words = ["bash", "-c", script]
    items = "".join(f"item {number}\n" for number in range(10))
    done = subprocess.run(
        words, input=items, env=os.environ | env, cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.stdout == f"left: 0\n{items}", output.read_text()
    return output.read_text()


def test_a_local_job_leaves_the_list_of_a_loop_alone(tmp_path: Path) -> None:
    env = write_env(tmp_path, kernels=KERNELS[:1])
    printed = reads_nothing(tmp_path, {}, kcourt_command(), "run", "--local", env, "--run-root", tmp_path / "runs")
    assert "1 planned: 1 delivered" in printed


@on_slurm
@pytest.mark.parametrize("command", ["submit", "doctor"])
def test_a_command_that_asks_slurm_leaves_the_list_of_a_loop_alone(slurm: Slurm, tmp_path: Path, command: str) -> None:
    study = write_study(tmp_path, kernels=KERNELS[:1], RUN_ROOT=tmp_path / "runs")
    env = slurm.env | {"KCOURT_EXPERIMENTS_DIR": str(tmp_path), "KCOURT_SCRATCH": str(tmp_path / "scratch")}
    if command == "doctor":
        reads_nothing(tmp_path, env, kcourt_command(), "doctor", "--nodes")
        return
    printed = reads_nothing(tmp_path, env, ROOT / "cluster" / "submit.sh", study, "--submit")
    jobs = set(re.findall(r"job (\d+)", printed))
    assert jobs
    for job_id in jobs:
        slurm.scancel(job_id)
        slurm.wait(job_id)
