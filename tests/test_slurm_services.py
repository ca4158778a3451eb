"""Jobs of a real Slurm that go to their end: as on one machine, with many ranks, after losses, two on one node."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from living import family
from slurm import JobEnd, Slurm
from slurm_jobs import (
    KERNELS,
    Launch,
    Nodes,
    Submitted,
    acknowledged,
    begins,
    events,
    fast,
    graded_live,
    grades,
    nap,
    summary,
    write_study,
)

from bench.config import JudgeConfig
from bench.errors import ExitCode
from bench.judge.client import JudgeClient
from bench.judge.schemas import EpisodeLabel, Kind, Outcome, token_for
from bench.seeds import read_root
from cluster.job.layout import RunLayout
from cluster.job.state import Phase
from cluster.study.scripts import ScriptRule

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm")]

FOR_EVER_S = 3600
GOLD, NOOP = str(ScriptRule.GOLD), str(ScriptRule.NOOP)
PREVIEWED = {kernel: [fast(kernel, "score"), fast(kernel)] for kernel in KERNELS}


# Long enough that somebody who looks finds grades that wait.
BUSY = {kernel: [fast(kernel, "score")] * 5 + [fast(kernel)] for kernel in KERNELS}


def source(kernel: str) -> str:
    """The kernel's good solution."""
    return Path(fast(kernel)["file"]).read_text()


def router(layout: RunLayout, rank: int) -> str:
    """Where a rank of a job is asked."""
    config = JudgeConfig.read(layout.judge_config(rank))
    return f"http://{config.router_host}:{config.router_port}"


def check_delivered(job: Submitted, code: ExitCode = ExitCode.OK) -> None:
    """The job went to its end: everything is delivered, and every answer that an agent was given is a row."""
    state = "FAILED" if code else "COMPLETED"
    assert job.slurm.wait(job.job_id) == JobEnd(state, code, 0), job.said()
    found = summary(job.layout)
    assert (found["exit_code"], found["cause"]) == (code, "finished"), found["reason"]
    assert [(item["standing"], item["outcome"]) for item in found["items"]] == [("delivered", "solved")] * len(KERNELS)
    assert not job.layout.merge_failed.exists()
    rows = grades(job.layout)
    assert acknowledged(job.layout) <= {row.grade_id for row in rows}
    submits = [row.kernel for row in rows if row.kind is Kind.SUBMIT and row.outcome is Outcome.SOLVED]
    assert sorted(submits) == sorted(KERNELS)


def at_work(job: Submitted) -> bool:
    """Whether both its agents have begun."""
    return events(job.layout, "attempt_started") == len(KERNELS)


# One study


@pytest.fixture
def study(tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A study of two setups and two kernels for five nodes, in a folder of its own; the cluster is the system."""
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    monkeypatch.setenv("KCOURT_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("RUN_ROOT", str(tmp_path / "runs"))
    # A node starts its second agent so much later: for so long at least the job is seen at work.
    staggered = {"AGENT_START_STAGGER_SECONDS": 8}
    yield write_study(tmp_path / "experiments", Nodes(agents=2, judges=2), RUN_ROOT=tmp_path / "runs", **staggered)
    slurm.scancel(f"--user={os.getuid()}")


def check_study(layout: RunLayout) -> None:
    """What the scripts of the study's setups come to, wherever they run."""
    found = summary(layout)
    keys = ("exit_code", "cause", "planned", "delivered", "owed", "review", "unmerged")
    assert [found[key] for key in keys] == [0, "finished", 4, 4, 0, 0, 0]
    items = [(item["setup"], item["kernel"], item["slot"], item["outcome"], item["end"]) for item in found["items"]]
    assert items == [(setup, kernel, 0, "solved", "submitted") for setup in (GOLD, NOOP) for kernel in KERNELS]
    assert found["grades"] == {"score": 2, "submit": 4}
    assert found["ranks"] == {"0": 3, "1": 3}
    assert acknowledged(layout) == {row.grade_id for row in grades(layout)}


def test_a_study_through_sbatch_is_seen_live_and_afterwards(
    study: str, slurm: Slurm, tmp_path: Path, kcourt_process: Callable[..., Any], repository: Path
) -> None:
    argv = [str(repository / "cluster" / "submit.sh"), study, "--submit", "--wait", "--json"]
    with subprocess.Popen(argv, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as submitting:
        job_id = at_work_within(tmp_path / "runs", submitting)
        live = kcourt_process("watch", job_id, "--once", "--json").json
        printed = json.loads(submitting.communicate(timeout=600)[0])
    layout = RunLayout(tmp_path / "runs" / job_id)
    assert submitting.returncode == printed["exit_code"] == 0
    assert [(job["setup"], job["job"]) for job in printed["jobs"]] == [(GOLD, job_id), (NOOP, job_id)]
    assert slurm.job(job_id) == JobEnd("COMPLETED", 0, 0)
    check_study(layout)

    assert (live["life"], live["phase"], live["outcome"]) == ("running", "working", None)
    assert live["episodes"]["planned"] == 4
    stages = {step["step"]: step["stage"] for step in live["steps"] if step["role"] != "monitor"}
    assert stages.keys() == {"agent-0", "agent-1", "judge-0", "judge-1"}
    assert {stages["judge-0"], stages["judge-1"]} <= {"ready", "serving"}
    over = kcourt_process("watch", job_id, "--once", "--json").json
    assert (over["life"], over["outcome"]["exit_code"], over["outcome"]["delivered"]) == ("ended", 0, 4)
    assert {step["stage"] for step in over["steps"]} == {"done"}

    logs = kcourt_process("logs", job_id, "--json").json["logs"]
    assert {log["role"] for log in logs} == {"job", "agent", "judge", "monitor"}
    assert "4 planned: 4 delivered" in kcourt_process("logs", job_id, "--role", "job").out
    assert "judge_started" in kcourt_process("logs", job_id, "--role", "judge", "--rank", "1").out


def at_work_within(runs: Path, submitting: "subprocess.Popen[bytes]") -> str:
    """Wait until the agents of a submitted job work; its id."""
    while submitting.poll() is None:
        for state in runs.glob("*/state.json"):
            if json.loads(state.read_bytes())["phase"] == Phase.WORKING:
                return state.parent.name
        time.sleep(0.1)
    raise AssertionError("no job came to its work")


@pytest.mark.slow
def test_the_same_study_on_one_machine_comes_to_the_same(study: str, kcourt_process: Callable[..., Any]) -> None:
    done = kcourt_process("study", "submit", study, "--local", "--json")
    assert done.code == 0, done.err
    (job,) = done.json["jobs"]
    check_study(RunLayout(Path(job["run"])))


# Many ranks


@pytest.mark.slow
def test_four_ranks_on_two_nodes_have_the_planned_ports_and_devices(
    launch: Launch, slurm: Slurm, kcourt_process: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    nodes = Nodes(judges=2, slots=2)
    waiting = {kernel: [nap(FOR_EVER_S)] for kernel in KERNELS}
    job = launch(waiting, nodes, "--gpus-per-node=4", GPUS_PER_NODE=4)
    job.until(lambda: at_work(job), "its agents work")

    hosts = expand(slurm, job.job_id)
    plan = kcourt_process(
        "cluster", "plan", str(job.layout.root.parents[1] / ".env.x"), "--hosts", ",".join(hosts), "--json"
    )
    begun = begins(job.layout)
    for planned in plan.json["judges"]:
        rank = planned["rank"]
        config = JudgeConfig.read(job.layout.judge_config(rank))
        assert begun[f"judge-{rank}"]["host"] == planned["host"]
        assert (config.router_port, config.judge_port) == (planned["router_port"], planned["judge_port"])
        assert begun[f"judge-{rank}"]["devices"] == {"ROCR_VISIBLE_DEVICES": ",".join(map(str, planned["gpus"]))}
    seen = [(begun[f"judge-{rank}"]["host"], begun[f"judge-{rank}"]["devices"]) for rank in range(4)]
    slices = [{"ROCR_VISIBLE_DEVICES": gpus} for gpus in ("0,1", "2,3")]
    assert seen == [(host, devices) for host in hosts[1:] for devices in slices]
    assert begun["agent-0"]["devices"] == {}

    asked = [ask(slurm, hosts[0], job.layout, at, rank) for at in range(4) for rank in range(4)]
    assert [code for code, _ in asked] == [200 if at == rank else 421 for at in range(4) for rank in range(4)]
    assert all(answer["error"]["code"] == "wrong_rank" for code, answer in asked if code == 421)
    assert [answer["rank"] for code, answer in asked if code == 200] == [0, 1, 2, 3]

    slurm.scancel("--batch", "--signal=TERM", job.job_id)
    assert slurm.wait(job.job_id) == JobEnd("FAILED", ExitCode.CANCELLED, 0), job.said()
    assert summary(job.layout)["ranks"] == {"0": 1, "1": 1, "2": 1, "3": 1}


def expand(slurm: Slurm, job_id: str) -> list[str]:
    """The nodes of a job, in order."""
    listed = slurm.command("squeue", "--noheader", f"--jobs={job_id}", "--format=%N").strip()
    return slurm.command("scontrol", "show", "hostnames", listed).split()


def ask(slurm: Slurm, node: str, layout: RunLayout, at: int, rank: int) -> tuple[int, dict[str, Any]]:
    """Ask the router of one rank for a preview by another one, from a node; the status and the answer."""
    label = str(EpisodeLabel("x", 0, 0, 0))
    body = layout.root.parent / "body.json"
    body.write_text(json.dumps({"rank": rank, "kernel": KERNELS[0], "source": source(KERNELS[0])}))
    token = f"Authorization: Bearer {token_for(read_root(layout.secret), label)}"
    given = ("--header", token, "--data-binary", f"@{body}", "--write-out", "\n%{http_code}")
    done = slurm.exec(node, ["curl", "--silent", "--show-error", *given, f"{router(layout, at)}/score"])
    assert done.returncode == 0, done.stderr
    answer, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(answer)


# Losses


PROCESSES = {"judge": "bench.judge.app", "measuring": "bench.worker"}


@pytest.mark.parametrize("module", PROCESSES.values(), ids=PROCESSES)
def test_a_process_of_a_judge_that_is_killed_costs_nothing(launch: Launch, module: str) -> None:
    job = launch(BUSY)
    job.until(lambda: at_work(job), "its agents work")
    wrapper = begins(job.layout)["judge-0"]["pid"]
    with JudgeClient(router(job.layout, 0)) as judge:
        job.until(lambda: judge.health().queue_depth, "a grade is in the making")
    killed = family(wrapper, module)[0]
    killed.kill()
    job.until(lambda: [one for one in family(wrapper, module) if one != killed], "another one is started")
    check_delivered(job)


LOSE = {"link-cut": Slurm.cut, "all-killed": Slurm.kill}


@pytest.mark.slow
@pytest.mark.parametrize("lose", LOSE.values(), ids=LOSE)
def test_a_judge_node_that_is_lost_leaves_its_agents_to_another(
    launch: Launch, slurm: Slurm, lose: Callable[[Slurm, str], None]
) -> None:
    job = launch(PREVIEWED, Nodes(judges=2))
    job.until(lambda: at_work(job), "its agents work")
    lose(slurm, begins(job.layout)["judge-0"]["host"])

    check_delivered(job, ExitCode.DEGRADED)
    submits = {row.kernel: (row.home_rank, row.rank) for row in grades(job.layout) if row.kind is Kind.SUBMIT}
    assert submits == {KERNELS[0]: (0, 1), KERNELS[1]: (1, 1)}
    states = {step["name"]: step["state"] for step in summary(job.layout)["steps"]}
    assert (states["judge-0"], states["judge-1"], states["agent-0"]) == ("lost", "stopped", "succeeded")


@pytest.mark.slow
def test_what_no_judge_is_left_for_is_owed(launch: Launch, slurm: Slurm) -> None:
    first, second = KERNELS
    job = launch({first: [fast(first)], second: [fast(second, "score"), nap(FOR_EVER_S)]})
    job.until(lambda: events(job.layout, "episode_ended") and graded_live(job.layout, 1) == 2, "one has its answer")
    slurm.kill(begins(job.layout)["judge-0"]["host"])

    assert slurm.wait(job.job_id) == JobEnd("FAILED", ExitCode.SERVICE_LOST, 0), job.said()
    found = summary(job.layout)
    assert found["reason"].startswith("1 of 1 judge ranks are lost (judge rank 0: its step has ended: lost")
    items = {item["kernel"]: (item["standing"], item["owed"], item["why"]) for item in found["items"]}
    why = "the episode ended by 'cancelled' without a submit"
    assert items == {first: ("delivered", None, None), second: ("owed", "infra", why)}
    assert acknowledged(job.layout) == {row.grade_id for row in grades(job.layout)}


# Two jobs on one node


@pytest.mark.slow
def test_two_jobs_on_the_same_nodes_share_no_port(launch: Launch, slurm: Slurm) -> None:
    shared = ("--partition=shared", f"--nodelist={','.join(slurm.nodes[:2])}", "--ntasks-per-node=1")
    first, second = (launch(PREVIEWED, Nodes(), *shared, setup=setup) for setup in ("one", "two"))
    first.until(lambda: at_work(first), "its agents work")
    second.until(lambda: at_work(second), "its agents work")
    assert slurm.job_state(first.job_id) == slurm.job_state(second.job_id) == "RUNNING"
    assert begins(first.layout)["judge-0"]["host"] == begins(second.layout)["judge-0"]["host"]
    assert router(first.layout, 0) != router(second.layout, 0)
    for job, setup in ((first, "one"), (second, "two")):
        check_delivered(job)
        assert {row.setup for row in grades(job.layout)} == {setup}
