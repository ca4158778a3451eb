"""Jobs of a real Slurm that something or somebody ends, and jobs whose caller has an environment of another mind."""

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import fake_engine
import psutil
import pytest
from living import family
from slurm import JobEnd
from slurm_jobs import (
    KERNELS,
    Launch,
    Nodes,
    Submitted,
    acknowledged,
    begins,
    cancelled,
    events,
    fast,
    graded_live,
    grades,
    nap,
    summary,
    write_study,
)

from bench.errors import ExitCode
from bench.judge.schemas import Outcome
from cluster.devcluster_nodes import processes_in
from cluster.job.layout import RunLayout
from cluster.study.scripts import ScriptRule

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm")]

FOR_EVER_S = 3600
CANCELLED = "the episode ended by 'cancelled' without a submit"
BUSY, IDLE = KERNELS[1], KERNELS[0]
# One agent submits all the time, so that a grade is always in flight; the other has a preview, and does nothing.
RESTLESS = {BUSY: [fast(BUSY)] * 200, IDLE: [fast(IDLE, "score"), nap(FOR_EVER_S)]}
MULTI = {"AGENT_SUBMISSION_MODE": "multi"}


def restless(launch: Launch, nodes: Nodes = Nodes(), *options: str, **settings: object) -> Submitted:
    """A job of RESTLESS, at a moment when some grades are recorded and one is in the making."""
    job = launch(RESTLESS, nodes, *options, **MULTI, **settings)
    job.until(lambda: graded_live(job.layout, nodes.judges) >= 3 and in_flight(job), "a submit is in flight")
    return job


def in_flight(job: Submitted) -> int:
    """Submits that the ranks hold, by what they last said of themselves."""
    state = json.loads(job.layout.state.read_bytes())
    return sum(rank["inflight_submits"] for rank in state["ranks"])


def ended(job: Submitted) -> JobEnd:
    """How a job ended for Slurm; nothing of it runs any more then."""
    end = job.slurm.wait(job.job_id)
    assert left_of(job) == []
    return end


def left_of(job: Submitted) -> list[str]:
    """Command lines of what runs on the nodes beside Slurm itself, and of what was told of the job's folder."""
    on_nodes = {pid for node in job.slurm.cluster.members for pid in processes_in(node.namespace)}
    found = []
    for process in psutil.process_iter(["name", "cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        ours = process.pid in on_nodes and not process.info["name"].startswith("slurm")
        if (ours or str(job.layout.root) in line) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


def check_kept(job: Submitted) -> None:
    """Whatever ended the job: it merged, every answer is a row, and no grade that was cut off became a verdict."""
    assert not job.layout.merge_failed.exists()
    rows = grades(job.layout)
    assert acknowledged(job.layout) <= {row.grade_id for row in rows}
    assert {row.outcome for row in rows} <= {Outcome.SOLVED}


def check_restless(job: Submitted, code: ExitCode, cause: str) -> dict[str, object]:
    """What all ends of a restless job have in common; its summary."""
    check_kept(job)
    found = summary(job.layout)
    assert (found["exit_code"], found["cause"]) == (code, cause), found["reason"]
    items = {item["kernel"]: (item["standing"], item["owed"]) for item in found["items"]}
    assert items == {BUSY: ("delivered", None), IDLE: ("owed", "infra")}
    assert [item["why"] for item in found["items"] if item["owed"]] == [
        "the episode ended by 'cancelled' without a submit"
    ]
    assert len(cancelled(job.layout)) == 2
    return found


def states(found: dict[str, object]) -> dict[str, str]:
    """Step → state, of all but monitors, by a summary."""
    return {step["name"]: step["state"] for step in found["steps"] if step["role"] != "monitor"}


def test_an_engine_that_dies_takes_the_job_down_in_order(launch, tmp_path, monkeypatch):
    engine = fake_engine.install(tmp_path / "bin").parent
    monkeypatch.setenv("PATH", f"{engine}:{os.environ['PATH']}")
    job = restless(launch, Nodes(inference=1), INFERENCE_MODEL="some/model")
    fake_engine.behave(engine, dies_after_s=0)

    assert ended(job) == JobEnd("FAILED", ExitCode.SERVICE_LOST, 0)
    found = check_restless(job, ExitCode.SERVICE_LOST, "service_lost")
    reason = "no engine serves the model any more (inference replica 0: its step has ended: failed (exit code 3))"
    assert reason in found["reason"]
    assert states(found) == {"inference-0": "failed", "judge-0": "stopped", "agent-0": "stopped"}


@pytest.mark.slow
def test_agents_that_do_nothing_are_a_stall(launch):
    job = launch({kernel: [fast(kernel, "score"), nap(FOR_EVER_S)] for kernel in KERNELS}, AGENT_STALL_ABORT_SECONDS=8)

    assert ended(job) == JobEnd("FAILED", ExitCode.STALLED, 0)
    check_kept(job)
    found = summary(job.layout)
    assert (found["exit_code"], found["cause"]) == (ExitCode.STALLED, "stalled")
    assert re.fullmatch(r"for \d+ s no episode began or ended, and nothing was graded", found["reason"])
    assert {item["why"] for item in found["items"]} == {CANCELLED}
    assert (found["owed"], len(cancelled(job.layout))) == (2, 2)


@pytest.mark.slow
def test_a_frozen_driver_is_a_stall_and_is_killed(launch):
    script = {BUSY: [fast(BUSY)], IDLE: [nap(FOR_EVER_S)]}
    job = launch(script, AGENT_STALL_ABORT_SECONDS=8, STEP_STOP_GRACE_SECONDS=30)
    job.until(lambda: events(job.layout, "attempt_started") == 2, "both agents have started")
    [driver] = family(begins(job.layout)["agent-0"]["pid"], recursive=False)
    driver.send_signal(signal.SIGSTOP)

    assert ended(job) == JobEnd("FAILED", ExitCode.STALLED, 0)
    check_kept(job)
    found = summary(job.layout)
    assert (found["exit_code"], found["cause"]) == (ExitCode.STALLED, "stalled")
    assert states(found) == {"judge-0": "stopped", "agent-0": "killed"}
    items = {item["kernel"]: (item["standing"], item["owed"], item["why"]) for item in found["items"]}
    assert items == {BUSY: ("delivered", None, None), IDLE: ("owed", "infra", "no record of an episode")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "cause"),
    [("USR1", ExitCode.WALL_CLOCK, "wall_clock"), ("TERM", ExitCode.CANCELLED, "cancelled")],
    ids=["warned-of-the-wall-clock", "cancelled-in-order"],
)
def test_a_signal_to_the_batch_script_ends_the_job_in_order(launch, slurm, number, code, cause):
    job = restless(launch)
    slurm.scancel("--batch", f"--signal={number}", job.job_id)

    assert ended(job) == JobEnd("FAILED", code, 0)
    found = check_restless(job, code, cause)
    assert found["reason"] == f"the job received SIG{number}"
    assert states(found) == {"judge-0": "stopped", "agent-0": "stopped"}


@pytest.mark.slow
def test_a_cancelled_job_merges_before_slurm_kills_it(launch, slurm):
    job = restless(launch)
    slurm.scancel(job.job_id)

    assert ended(job).state == "CANCELLED"
    found = check_restless(job, ExitCode.CANCELLED, "cancelled")
    assert states(found) == {"judge-0": "stopped", "agent-0": "stopped"}


def end_soon(job: Submitted) -> None:
    """Give a job another time limit, in minutes as Slurm has them: it ends in 20 to 80 seconds."""
    minutes, seconds = job.slurm.command("squeue", "--noheader", "--format=%M", "--jobs", job.job_id).split(":")
    limit = (60 * int(minutes) + int(seconds) + 20) // 60 + 1
    job.slurm.command("scontrol", "update", f"jobid={job.job_id}", f"timelimit={limit}")


@pytest.mark.slow
def test_the_work_stops_ahead_of_the_time_limit(launch):
    reserve = {"STEP_STOP_GRACE_SECONDS": 60, "JUDGE_DRAIN_RESERVE_SECONDS": 20}
    job = restless(launch, Nodes(), "--signal=B:USR1@80", **reserve)
    end_soon(job)

    assert ended(job) == JobEnd("FAILED", ExitCode.WALL_CLOCK, 0)
    check_restless(job, ExitCode.WALL_CLOCK, "wall_clock")


@pytest.mark.slow
def test_an_engine_that_outgrows_its_memory_is_named(launch, tmp_path, monkeypatch):
    engine = fake_engine.install(tmp_path / "bin").parent
    monkeypatch.setenv("PATH", f"{engine}:{os.environ['PATH']}")
    small = ("--partition=shared", "--ntasks-per-node=1", "--cpus-per-task=2", "--mem=1000")
    job = restless(launch, Nodes(inference=1), *small, INFERENCE_MODEL="some/model")
    fake_engine.behave(engine, eats_mb=1200)

    assert ended(job) == JobEnd("FAILED", ExitCode.SERVICE_LOST, 0)
    found = check_restless(job, ExitCode.SERVICE_LOST, "service_lost")
    assert "replica 0: its step has ended: out_of_memory" in found["reason"]
    assert states(found) == {"inference-0": "out_of_memory", "judge-0": "stopped", "agent-0": "stopped"}


def test_a_merge_that_fails_is_repaired_from_the_shards(launch, kcourt_process):
    script = {IDLE: [fast(IDLE)], BUSY: [nap(3), fast(BUSY)]}
    job = launch(script, Nodes(judges=2), AGENTS_PER_NODE=1)
    job.until(lambda: events(job.layout, "episode_ended") == 1, "the first episode has ended")
    shard = job.layout.shard(0)
    good = shard.read_bytes()
    with shard.open("r+b") as file:
        file.write(b"no database " * 100)

    assert ended(job) == JobEnd("FAILED", ExitCode.MERGE_FAILED, 0)
    found = summary(job.layout)
    assert (found["exit_code"], found["cause"], found["unmerged"]) == (ExitCode.MERGE_FAILED, "finished", 2)
    note = job.layout.merge_failed.read_text()
    assert str(shard) in note
    assert f"kcourt job collect {job.layout.root}" in note
    assert str(job.layout.merge_failed) in job.said()
    failed = kcourt_process("job", "collect", str(job.layout.root))
    assert failed.code != 0 and str(shard) in failed.err, failed

    shard.write_bytes(good)
    mended = kcourt_process("job", "collect", str(job.layout.root))
    assert mended.code == 0, mended
    check_kept(job)
    found = summary(job.layout)
    assert (found["exit_code"], found["delivered"], found["unmerged"]) == (ExitCode.OK, 2, 0)
    assert {row.rank for row in grades(job.layout)} == {0, 1}


@pytest.fixture
def submit(slurm, tmp_path, repository, request):
    """Submits a study of one setup as its operator would, with further variables; its job."""

    def run(variables: Mapping[str, str] | None = None) -> Submitted:
        experiments, scratch = tmp_path / "experiments", tmp_path / "not" / "there"
        study = write_study(experiments, Nodes(), (ScriptRule.GOLD,), RUN_ROOT=tmp_path / "runs")
        environ = os.environ | slurm.env | {"KCOURT_EXPERIMENTS_DIR": str(experiments), "KCOURT_SCRATCH": str(scratch)}
        argv = [repository / "cluster" / "submit.sh", study, "--submit", "--json"]
        done = subprocess.run(argv, env=environ | dict(variables or {}), stdin=subprocess.DEVNULL, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        [found] = json.loads(done.stdout)["jobs"]
        request.addfinalizer(lambda: slurm.wait(found["job"]))
        request.addfinalizer(lambda: slurm.scancel(found["job"]))
        layout = RunLayout(tmp_path / "runs" / found["job"])
        return Submitted(slurm, found["job"], layout, scratch / "logs" / f"services-{found['job']}.out")

    return run


@pytest.mark.slow
def test_slurms_output_lies_in_a_folder_that_was_not_there(submit, slurm):
    job = submit()
    job.until(lambda: "starting 1 judge;" in job.said(), "the job has told of its start")
    slurm.scancel("--batch", "--signal=TERM", job.job_id)
    assert ended(job) == JobEnd("FAILED", ExitCode.CANCELLED, 0)
    assert f"run directory: {job.layout.root}" in job.said()


def poison(folder: Path) -> dict[str, str]:
    """Variables that would change a job, every one of them."""
    package = folder / "poison" / "bench"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('a package of the caller')")
    return {
        "SLURM_JOB_ID": "777",
        "SLURM_NTASKS": "77",
        "SLURM_NODELIST": "poison7",
        "SLURM_GPUS_PER_NODE": "77",
        "SBATCH_EXCLUSIVE": "user",
        "SBATCH_EXPORT": "NONE",
        "PYTHONPATH": str(package.parent),
        "PYTHONHOME": "/poison/python",
        "LD_PRELOAD": "/poison/preload.so",
        "OMP_NUM_THREADS": "77",
        "CC": "/poison/cc",
        "ROCR_VISIBLE_DEVICES": "77",
        "SOMEBODYS_API_KEY": "poison-key",
    }


def variables_of(job: Submitted) -> set[tuple[str, str]]:
    """What the processes of judge and driver have in their environments."""
    found: set[tuple[str, str]] = set()
    for step in ("judge-0", "agent-0"):
        first = psutil.Process(begins(job.layout)[step]["pid"])
        for process in (first, *family(first.pid)):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.update(process.environ().items())
    return found


def check_untouched(job: Submitted, poisoned: Mapping[str, str]) -> None:
    """The job runs as ever, and nothing of its caller's is in its processes or its files."""
    job.until(lambda: events(job.layout, "attempt_started"), "an agent has started")
    found = variables_of(job)
    assert ("KCOURT_SYSTEM", job.slurm.cluster.name) in found
    assert not found & set(poisoned.items())
    assert not [pair for pair in found if "poison" in pair[1]]

    assert ended(job) == JobEnd("COMPLETED", 0, 0), job.said()
    check_kept(job)
    assert (summary(job.layout)["exit_code"], summary(job.layout)["delivered"]) == (ExitCode.OK, len(KERNELS))
    files = [path for path in job.layout.root.rglob("*") if path.is_file()]
    assert not [path for path in files if b"poison" in path.read_bytes()]


@pytest.mark.slow
def test_what_the_caller_has_set_does_not_reach_a_job_of_a_study(submit, tmp_path):
    poisoned = poison(tmp_path)
    check_untouched(submit(poisoned), poisoned)


@pytest.mark.slow
def test_what_the_caller_has_set_does_not_reach_the_steps_of_a_job_by_hand(launch, tmp_path, monkeypatch):
    poisoned = poison(tmp_path)
    for name, value in poisoned.items():
        monkeypatch.setenv(name, value)
    check_untouched(launch(ScriptRule.GOLD), poisoned)
