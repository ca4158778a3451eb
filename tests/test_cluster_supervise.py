"""Supervision: when a watch ends and why, what a drain waits for, how far a job is, and how steps end."""

import ast
import json
import os
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from dataclasses import replace

import pytest
from living import ended

from bench import process
from bench.errors import ExitCode
from bench.judge.schemas import Health
from cluster.job.drain import busy, drain
from cluster.job.endings import Cause, Interrupts, Rules, Sight, decide, degraded, exit_code
from cluster.job.health import EngineHealth, RankHealth, ServiceState
from cluster.job.inference import Engine
from cluster.job.inference.engines import Engines
from cluster.job.launchers import Role, Running, Step, wait
from cluster.job.launchers.local import LocalLauncher, free_ports, this_host
from cluster.job.launchers.slurm import without_record
from cluster.job.layout import RunLayout
from cluster.job.lines import log_tail
from cluster.job.progress import ProgressReader, count_grades
from cluster.job.ranks import read_health
from cluster.job.records import EndRecord, StepState, begin_record, end_record, end_records, steps_seen
from cluster.job.step import masks, state_of
from cluster.job.supervise import Beginnings, Steps

READY, LOST = RankHealth(0, ServiceState.READY), RankHealth(1, ServiceState.LOST, "gone")
RULES = Rules(reserve_s=100, stall_s=60, failover=True)
SERVES, DEAD = EngineHealth(0, ServiceState.READY), EngineHealth(1, ServiceState.LOST, "gone")


def end(code, state=None):
    found = state or state_of(code, stopped=False)
    return EndRecord("agent-0", "agent", "n1", found, code, False, 1.0, None, "2026-01-01T00:00:00.000+00:00")


CALM = Sight(ranks=(READY, READY), agents=(None,), quiet_s=1, left_s=1000)


@pytest.mark.parametrize(
    ("sight", "rules", "cause"),
    [
        pytest.param(CALM, RULES, None, id="calm"),
        pytest.param(replace(CALM, agents=(end(0), end(0))), RULES, Cause.FINISHED, id="all-ended"),
        pytest.param(replace(CALM, agents=(end(0), None)), RULES, None, id="one-still-runs"),
        pytest.param(replace(CALM, agents=(end(1), end(0))), RULES, Cause.FINISHED, id="one-driver-failed"),
        pytest.param(replace(CALM, agents=(end(1), end(2))), RULES, Cause.SERVICE_LOST, id="every-driver-failed"),
        pytest.param(replace(CALM, ranks=(READY, LOST)), RULES, None, id="a-rank-survives"),
        pytest.param(
            replace(CALM, ranks=(READY, LOST)),
            replace(RULES, failover=False),
            Cause.SERVICE_LOST,
            id="no-failover",
        ),
        pytest.param(replace(CALM, ranks=(LOST, LOST)), RULES, Cause.SERVICE_LOST, id="no-rank-survives"),
        pytest.param(
            replace(CALM, ranks=(RankHealth(0, ServiceState.UNFIT), LOST)), RULES, Cause.SERVICE_LOST, id="unfit"
        ),
        pytest.param(
            replace(CALM, agents=(end(None, StepState.LOST),)), RULES, Cause.SERVICE_LOST, id="driver-lost-its-node"
        ),
        pytest.param(replace(CALM, engines=(SERVES, DEAD)), RULES, None, id="an-engine-survives"),
        pytest.param(replace(CALM, engines=(DEAD,)), RULES, Cause.SERVICE_LOST, id="no-engine-survives"),
        pytest.param(replace(CALM, unbegun="agent-0 waits"), RULES, Cause.SERVICE_LOST, id="a-step-never-begins"),
        pytest.param(replace(CALM, left_s=100), RULES, Cause.WALL_CLOCK, id="wall-clock"),
        pytest.param(replace(CALM, left_s=None), RULES, None, id="no-wall-clock"),
        pytest.param(replace(CALM, quiet_s=60), RULES, Cause.STALLED, id="stall"),
        pytest.param(replace(CALM, quiet_s=1e6), replace(RULES, stall_s=0), None, id="stall-off"),
    ],
)
def test_when_a_watch_ends(sight, rules, cause):
    verdict = decide(sight, rules)
    assert (verdict and verdict.cause) == cause


@pytest.mark.parametrize(
    ("cause", "sight", "merged", "code"),
    [
        pytest.param(Cause.FINISHED, CALM, True, ExitCode.OK, id="ok"),
        pytest.param(Cause.FINISHED, replace(CALM, ranks=(READY, LOST)), True, ExitCode.DEGRADED, id="rank"),
        pytest.param(Cause.FINISHED, replace(CALM, agents=(end(1), end(0))), True, ExitCode.DEGRADED, id="node"),
        pytest.param(Cause.FINISHED, replace(CALM, engines=(SERVES, DEAD)), True, ExitCode.DEGRADED, id="engine"),
        pytest.param(Cause.FINISHED, CALM, False, ExitCode.MERGE_FAILED, id="merge"),
        pytest.param(Cause.NEVER_READY, None, True, ExitCode.NEVER_READY, id="never-ready"),
        pytest.param(Cause.SERVICE_LOST, CALM, True, ExitCode.SERVICE_LOST, id="lost"),
        pytest.param(Cause.STALLED, CALM, True, ExitCode.STALLED, id="stalled"),
        pytest.param(Cause.WALL_CLOCK, CALM, True, ExitCode.WALL_CLOCK, id="wall"),
        pytest.param(Cause.CANCELLED, CALM, True, ExitCode.CANCELLED, id="cancelled"),
    ],
)
def test_exit_codes(cause, sight, merged, code):
    assert exit_code(cause, degraded(sight), merged) is code


def health(**changes):
    values = {
        "status": "ok",
        "rank": 0,
        "run_id": "job",
        "routes": (),
        "device": "cpu",
        "sandbox": None,
        "queue_depth": 3,
        "inflight_submits": 2,
        "self_grade": "passed",
        "version": "1",
    }
    return Health.model_validate(values | changes)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        pytest.param({}, ServiceState.READY, id="ok"),
        pytest.param({"status": "starting"}, ServiceState.STARTING, id="starting"),
        pytest.param({"status": "unfit"}, ServiceState.UNFIT, id="unfit"),
        pytest.param({"run_id": "other"}, ServiceState.UNFIT, id="another-job-on-its-port"),
        pytest.param({"rank": 1}, ServiceState.UNFIT, id="another-rank-on-its-port"),
    ],
)
def test_what_health_means(changes, state):
    assert read_health(0, "job", health(**changes)).state is state


def test_a_drain_waits_for_submits_and_for_judges_that_restart():
    answers = [
        [RankHealth(0, ServiceState.READY, inflight_submits=2), RankHealth(1, ServiceState.STARTING)],
        [RankHealth(0, ServiceState.READY, inflight_submits=1), RankHealth(1, ServiceState.READY)],
        [RankHealth(0, ServiceState.READY), RankHealth(1, ServiceState.LOST, inflight_submits=5)],
    ]
    assert busy(answers[0]) == {0: 2, 1: 1}
    drained = drain(iter(answers).__next__, lambda _: None, limit_s=60)
    assert drained.complete


def test_a_drain_gives_up_at_its_limit():
    stuck = [RankHealth(0, ServiceState.READY, inflight_submits=1)]
    assert drain(lambda: stuck, lambda _: None, limit_s=0).left == {0: 1}


def test_a_drain_can_be_cancelled():
    stuck = [RankHealth(0, ServiceState.READY, inflight_submits=1)]
    assert not drain(lambda: stuck, lambda _: None, limit_s=60, cancelled=lambda: True).complete


def shard_with(path, grades):
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS grades (kind, outcome)")
        database.executemany("INSERT INTO grades VALUES (?, ?)", grades)


def test_progress_counts_episodes_and_grades_and_the_quiet_between_them(tmp_path):
    layout, now = RunLayout(tmp_path), [0.0]
    reader = ProgressReader(layout, planned=3, nodes=1, ranks=2, clock=lambda: now[0])
    now[0] = 5.0
    assert reader.read().quiet_s == 5.0
    layout.agent_node(0).mkdir(parents=True)
    with layout.events(0).open("a") as events:
        events.write('{"event": "episode_started"}\n{"event": "episode_started"}\n{"event": "episo')
        events.flush()
        first = reader.read()
        events.write('de_ended"}\n')
    shard_with(layout.shard(1), [("score", "wrong"), ("submit", "solved")])
    second = reader.read()
    assert (first.started, first.ended, first.running, first.left, first.quiet_s) == (2, 0, 2, 1, 0.0)
    assert (second.started, second.ended, second.grades) == (2, 1, {"score": 1, "submit": 1})
    assert second.solved == 1
    now[0] = 9.0
    assert reader.read().quiet_s == 4.0
    shard_with(layout.shard(0), [("submit", "crashed")])
    assert reader.read().quiet_s == 0.0


@pytest.mark.parametrize("line", ["", "{", "[]", "null", '"event"', '{"episode": 1}', "\xff"])
def test_a_damaged_event_ends_no_job(tmp_path, line):
    layout = RunLayout(tmp_path)
    layout.agent_node(0).mkdir(parents=True)
    layout.events(0).write_bytes(line.encode("latin-1") + b'\n{"event": "episode_started"}\n')
    assert ProgressReader(layout, planned=3, nodes=1, ranks=0).read().started == 1


def test_a_shard_that_cannot_be_read_just_now_counts_nothing(tmp_path):
    assert not count_grades(tmp_path / "missing.db")
    (tmp_path / "empty.db").touch()
    assert not count_grades(tmp_path / "empty.db")


def step(tmp_path, code, name="agent-0", **more):
    argv, records = (sys.executable, "-c", code), RunLayout(tmp_path / "run").steps
    return Step(name, Role.AGENT, argv, this_host(), tmp_path / f"{name}.log", records, **more)


@pytest.fixture
def steps(tmp_path):
    layout = RunLayout(tmp_path / "run")
    layout.create()
    found = Steps(LocalLauncher(1), layout)
    yield found
    found.kill_all()


def started(running):
    """Wait until a step has said so in its log."""
    waiting = threading.Event()
    while "up" not in log_tail(running.step.log):
        assert running.poll() is None
        waiting.wait(0.01)


@pytest.mark.parametrize(
    ("code", "state", "exit_status"),
    [
        pytest.param("pass", StepState.SUCCEEDED, 0, id="ok"),
        pytest.param("raise SystemExit(3)", StepState.FAILED, 3, id="failed"),
        pytest.param("import os; os.kill(os.getpid(), 9)", StepState.KILLED, -9, id="killed"),
    ],
)
def test_every_end_is_recorded(tmp_path, steps, code, state, exit_status):
    running = steps.start(step(tmp_path, code))
    assert wait(running, 120)
    steps.note_ends()
    (record,) = end_records(RunLayout(tmp_path / "run").steps)
    assert (record["name"], record["role"], record["state"]) == ("agent-0", "agent", state)
    assert (record["exit_code"], record["stopped"]) == (exit_status, False)
    assert running.poll().state is state


def test_stop_gives_a_step_time_to_leave(tmp_path, steps):
    code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(7));print('up', flush=True); signal.pause()"
    running = steps.start(step(tmp_path, code))
    started(running)
    steps.stop(Role.AGENT, grace_s=60)
    (record,) = end_records(RunLayout(tmp_path / "run").steps)
    assert (record["exit_code"], record["stopped"], record["state"]) == (7, True, StepState.STOPPED)


def test_stop_kills_what_does_not_leave_and_its_children(tmp_path, steps):
    code = (
        "import signal, subprocess, sys; signal.signal(15, signal.SIG_IGN);"
        "c = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']);"
        "print(f'up {c.pid}', flush=True); signal.pause()"
    )
    running = steps.start(step(tmp_path, code))
    started(running)
    child = int(log_tail(running.step.log).split()[1])
    steps.stop(Role.AGENT, grace_s=0.2)
    (record,) = end_records(RunLayout(tmp_path / "run").steps)
    assert (record["state"], record["stopped"], record["exit_code"]) == (StepState.KILLED, True, None)
    assert ended([child])


def test_a_step_gets_its_environment_and_cpus(tmp_path, steps):
    code = "import os; print(os.environ['COLOUR'], sorted(os.sched_getaffinity(0)))"
    cpu = this_host().cpus[-1]
    running = steps.start(step(tmp_path, code, cpus=(cpu,), env={"COLOUR": "blue"}))
    assert wait(running, 120).exit_code == 0
    assert log_tail(running.step.log) == f"blue [{cpu}]"


def test_a_step_sees_no_variable_of_the_caller_that_is_not_allowed(tmp_path, steps, monkeypatch):
    for name in ("PYTHONPATH", "LD_PRELOAD", "OMP_NUM_THREADS", "SLURM_NTASKS", "MY_KEY", "OTHER_KEY"):
        monkeypatch.setenv(name, "")
    code = "import os; print(sorted(name for name in os.environ if 'KEY' in name or name[:3] in ('PYT', 'LD_', 'SLU')))"
    assert wait(steps.start(step(tmp_path, code, keys=("MY_KEY",))), 120).exit_code == 0
    assert log_tail(tmp_path / "agent-0.log") == "['MY_KEY']"


def test_a_step_that_is_killed_with_what_records_it_is_lost(tmp_path, steps):
    running = steps.start(step(tmp_path, "print('up', flush=True); import signal; signal.pause()"))
    started(running)
    os.kill(running.step.read_begin().pid, signal.SIGKILL)
    assert wait(running, 60).state is StepState.LOST
    steps.note_ends()
    (record,) = end_records(RunLayout(tmp_path / "run").steps)
    assert (record["state"], record["exit_code"]) == ("lost", None)


KILLED_BY_SLURM = "slurmstepd-n1: error: StepId=1.3 exceeded memory limit (1211236352 > 1048576000), being killed\n"


@pytest.mark.parametrize(
    ("said", "words", "health"),
    [
        pytest.param("", None, ServiceState.STARTING, id="nothing"),
        pytest.param(KILLED_BY_SLURM, "out_of_memory", ServiceState.LOST, id="out-of-memory"),
    ],
)
def test_an_end_without_a_record_is_waited_for_unless_the_log_tells_it(tmp_path, said, words, health):
    engine = Engine(0, "vllm", this_host(), 1, (), "some/model")
    ended_step = step(tmp_path, "", "inference-0")
    ended_step.log.write_text(said)
    child = process.spawn(["true"])
    child.wait()
    running = Running(ended_step, child, 3600, without_record)
    end = running.poll()
    assert (end and end.words, running.awaits_record) == (words, words is None)
    engines = Engines([engine], [running])
    assert [one.state for one in engines.health()] == [health]
    engines.close()


def test_a_step_that_has_begun_and_wrote_no_end_is_lost(tmp_path, steps):
    running = steps.start(step(tmp_path, "pass"))
    assert wait(running, 60)
    layout = RunLayout(tmp_path / "run")
    end_record(layout.steps, "agent-0").unlink()
    (record,) = end_records(layout.steps)
    assert record == {"name": "agent-0", "role": "agent", "host": record["host"], "state": "lost"}


@pytest.mark.parametrize("content", ["", "{", "[]", "1", "null", '"text"', "\xff"])
def test_a_damaged_record_is_left_out(tmp_path, content):
    for path in (begin_record(tmp_path, "agent-0"), end_record(tmp_path, "judge-0")):
        path.write_bytes(content.encode("latin-1"))
    whole = {"name": "agent-1", "role": "agent", "host": "n1", "state": "failed", "exit_code": 3, "stopped": False}
    end_record(tmp_path, "agent-1").write_text(json.dumps(whole))
    assert end_records(tmp_path)[-1] == whole
    assert steps_seen(tmp_path)["agent-1"].words == "failed (exit code 3)"


def test_a_command_that_is_not_there_fails_its_step_with_its_name(tmp_path, steps):
    missing = replace(step(tmp_path, ""), argv=("no-such-engine", "serve"))
    assert wait(steps.start(missing), 60).exit_code == 127
    assert "no-such-engine" in log_tail(missing.log)


def test_a_step_that_does_not_begin_is_named_with_its_launchers_words(tmp_path, steps):
    now = [0.0]
    stuck = steps.start(step(tmp_path, "pass"))
    assert wait(stuck, 60)
    waiting = Beginnings([type(stuck)(replace(stuck.step, name="agent-1"), stuck.child, 1e9)], lambda: now[0])
    stuck.step.log.write_text("srun: Job step creation temporarily disabled, retrying")
    assert waiting.late(limit_s=10) == ""
    now[0] = 11.0
    assert "agent-1" in waiting.late(limit_s=10)
    assert "temporarily disabled" in waiting.late(limit_s=10)


BOTH = {"ROCR_VISIBLE_DEVICES": "4,5", "CUDA_VISIBLE_DEVICES": "6,7"}


@pytest.mark.parametrize(
    ("environ", "gpus", "vendor", "found"),
    [
        pytest.param({}, (), "", {}, id="none"),
        pytest.param({"ROCR_VISIBLE_DEVICES": "0,1,2,3"}, (2, 3), "", {"ROCR_VISIBLE_DEVICES": "2,3"}, id="amd"),
        pytest.param({"ROCR_VISIBLE_DEVICES": "4,5,6,7"}, (0, 1), "", {"ROCR_VISIBLE_DEVICES": "4,5"}, id="part"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}, (1,), "", {"CUDA_VISIBLE_DEVICES": "GPU-b"}, id="uuid"),
        pytest.param({}, (0, 1), "", {"ROCR_VISIBLE_DEVICES": "0,1", "CUDA_VISIBLE_DEVICES": "0,1"}, id="no-mask"),
        pytest.param(BOTH, (1,), "hip", {"ROCR_VISIBLE_DEVICES": "5"}, id="both-masks-on-amd"),
        pytest.param(BOTH, (1,), "cuda", {"CUDA_VISIBLE_DEVICES": "7"}, id="both-masks-on-nvidia"),
        pytest.param({}, (2,), "hip", {"ROCR_VISIBLE_DEVICES": "2"}, id="no-mask-on-amd"),
        pytest.param({"ROCR_VISIBLE_DEVICES": "5"}, (0,), "cuda", {"CUDA_VISIBLE_DEVICES": "0"}, id="the-other-mask"),
    ],
)
def test_a_slot_is_shown_its_own_devices_alone(environ, gpus, vendor, found):
    assert masks(environ, gpus, vendor) == found


@pytest.mark.parametrize(("vendor", "mask"), [("hip", "ROCR_VISIBLE_DEVICES"), ("cuda", "CUDA_VISIBLE_DEVICES")])
def test_a_step_has_the_mask_of_its_vendor_and_no_other(tmp_path, steps, monkeypatch, vendor, mask):
    for name in ("ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"):
        monkeypatch.setenv(name, "4,5,6")
    shows = "import os; print({name: value for name, value in os.environ.items() if 'DEVICE' in name})"
    running = steps.start(step(tmp_path, shows, gpus=(1, 2), vendor=vendor))
    assert wait(running, 120).state is StepState.SUCCEEDED
    assert ast.literal_eval(log_tail(running.step.log)) == running.step.read_begin().devices == {mask: "5,6"}


def test_the_tail_of_a_log_is_its_last_lines(tmp_path):
    log = tmp_path / "x.log"
    log.write_text("\n".join(map(str, range(5000))))
    assert log_tail(log, lines=2) == "4998\n4999"
    assert log_tail(tmp_path / "none.log") == "(it printed nothing)"


def test_the_tail_of_a_log_that_is_one_huge_line_is_short(tmp_path):
    log = tmp_path / "x.log"
    log.write_bytes(b"")
    os.truncate(log, 1 << 34)
    with log.open("ab") as file:
        file.write(b"the end")
    assert log_tail(log).endswith("the end") and len(log_tail(log)) <= 4096


def test_ports_that_are_taken_are_skipped():
    import socket

    first = free_ports(4)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 3))
        assert free_ports(4) > first


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (signal.SIGTERM, Cause.CANCELLED),
        (signal.SIGINT, Cause.CANCELLED),
        (signal.SIGUSR1, Cause.WALL_CLOCK),
    ],
    ids=["term", "int", "usr1"],
)
def test_signals_become_causes_and_the_first_counts(number, cause):
    before = signal.getsignal(number)
    with Interrupts() as interrupts:
        os.kill(os.getpid(), number)
        interrupts.pause(60)
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupts.verdict is not None
        assert interrupts.verdict.cause is cause
    assert signal.getsignal(number) is before


def test_end_records_are_json(tmp_path, steps):
    assert wait(steps.start(step(tmp_path, "pass")), 120)
    steps.note_ends()
    record = json.loads(end_record(RunLayout(tmp_path / "run").steps, "agent-0").read_text())
    assert record["peak_memory_bytes"] > 0
    assert set(record) == {
        *("name", "role", "host", "state", "exit_code", "stopped", "seconds", "peak_memory_bytes", "ended_at")
    }
