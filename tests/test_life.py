"""The life of a job, lived by small real processes in the place of judges and drivers."""

import functools
import json
import os
import signal
import sys
import threading
from dataclasses import replace

import pytest
from ports import free_ports

from bench.config import JudgeConfig
from bench.errors import ConfigError, ExitCode
from cluster.job.health import ServiceState
from cluster.job.launchers import Role
from cluster.job.launchers.local import LocalLauncher
from cluster.job.layout import RunLayout
from cluster.job.life import run_job
from cluster.job.summary import OwedClass, Standing, read_summary, recollect
from cluster.study.wave import read_wave

# A judge of few words: it answers /health, and rank 0 has graded the submit of problem 0 before it is asked.
JUDGE = """
import json, signal, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from bench.config import JudgeConfig
from bench.judge.schemas import EpisodeLabel
from bench.records import GradeReport
from bench.results.rows import GradeOrigin
from bench.results.shard import Shard
from bench.seeds import commitment, read_root, request_seed

config = JudgeConfig.read(Path(sys.argv[1]))
shard = Shard.open(config.shard, config.run_id, config.rank, config.setups)
setup = next(iter(config.setups))
if config.rank == 0:
    label, grade = str(EpisodeLabel(setup, 0, 0, 0)), "00000000-0000-4000-8000-000000000000"
    seed = request_seed(read_root(config.secret_file), label, grade)
    now = "2026-01-01T00:00:00.000+00:00"
    origin = GradeOrigin(kind="submit", kernel="axpy", language="c", answer="{}", requested_at=now,
        finished_at=now, host="here", package_version="0", setup=setup, label=label)
    report = GradeReport(grade_id=grade, outcome="solved", score=2.0, interval=(1.5, 2.5), faster=True,
        protocol="mw4x5", preset="S", seed_commitment=commitment(seed), sandbox="limits")
    shard.record(origin, report)
health = {"status": "ok", "rank": config.rank, "run_id": config.run_id, "routes": [], "device": "cpu",
    "sandbox": "limits", "queue_depth": 0, "inflight_submits": 0, "self_grade": "passed", "version": "0"}

class Health(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = json.dumps(health).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

server = ThreadingHTTPServer((config.router_host, config.router_port), Health)
server.daemon_threads = True
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
"""
SERVE = JUDGE + "server.serve_forever(0.05)\nshard.close()\n"

# A driver that ends its episodes at once: of each, one event and one record.
DRIVER = """
import json, sys
from pathlib import Path
from agent.config import AgentConfig, read_problems
from bench.judge.schemas import EpisodeLabel, EpisodeRecord

config = AgentConfig.read(Path(sys.argv[1]))
ENDS = ["submitted", "time", "crash"]
for index, problem in read_problems(config):
    folder = config.run_dir / f"problem-{index}-worker-0"
    folder.mkdir(parents=True)
    record = EpisodeRecord(label=str(EpisodeLabel(problem.setup, config.node, index, 0, problem.slot)),
        setup=problem.setup, kernel=problem.kernel, slot=problem.slot, node=config.node, problem=index,
        worker=0, end=ENDS[index], attempts=1, wall_s=1.0, harness="scripted", harness_version="0",
        started_at="2026-01-01T00:00:00.000+00:00", ended_at="2026-01-01T00:00:01.000+00:00")
    (folder / "tokens.json").write_text(record.model_dump_json())
    with config.events_file.open("a") as events:
        for event in ("episode_started", "episode_ended"):
            events.write(json.dumps({"event": event}) + "\\n")
"""
WAIT = "\nimport signal; signal.signal(15, lambda *_: sys.exit(130)); (config.run_dir / 'up').touch(); signal.pause()"


class StandIns:
    """A local launcher that starts other programs in the roles' place; each is given its config file."""

    def __init__(self, nodes, judge=SERVE, agent=DRIVER, on_start=lambda step: None, wall_s=0):
        self._local = LocalLauncher(nodes, wall_s)
        self._code = {Role.JUDGE: judge, Role.AGENT: agent}
        self._on_start = on_start
        self.hosts = self._local.hosts

    @property
    def seconds_left(self):
        return self._local.seconds_left

    kill_in_s = None

    def first_port(self, count):
        return free_ports(count)

    def start(self, step):
        argv = (sys.executable, "-c", self._code.get(step.role, "pass"), step.argv[-1])
        running = self._local.start(replace(step, argv=argv))
        self._on_start(running)
        return running

    def stop(self, steps):
        self._local.stop(steps)

    def kill(self, steps):
        self._local.kill(steps)


class Notes:
    """A view that keeps what it was told."""

    def __init__(self):
        self.phases, self.seen, self.moved = [], [], threading.Event()

    def phase(self, text):
        self.phases.append(text)

    def progress(self, progress):
        self.seen.append(progress)
        self.moved.set()


def live_in(folder, launcher, view=None, **settings):
    """Run a job of three problems of one setup; returns its layout and its summary."""
    values = {"STEP_STOP_GRACE_SECONDS": 60, "JUDGE_READY_SECONDS": 120, "JUDGES_PER_NODE": 1, **settings}
    lines = "".join(f"{key}={value}\n" for key, value in values.items())
    (folder / "plan.json").write_text('{"axpy": []}')
    env = folder / ".env.x"
    env.write_text(
        f"SETUP=x\nHARNESS=scripted\nAGENT_SCRIPT=plan.json\nINFERENCE_NODES=0\nKERNELS=axpy,sgemm,gelu\n{lines}"
    )
    layout = RunLayout(folder / "runs" / "job-1")
    return layout, run_job(read_wave([env]), layout.root, launcher, view or Notes())


@pytest.fixture
def live(tmp_path):
    return functools.partial(live_in, tmp_path)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A job of two judges that went well: its layout, its summary and what its view was told."""
    view = Notes()
    return *live_in(tmp_path_factory.mktemp("job"), StandIns(2), view, JUDGES_PER_NODE=2), view


def summary_file(layout):
    return json.loads(layout.summary.read_text())


def test_a_job_lives_to_its_report(done):
    layout, summary, view = done
    assert summary.ending.exit_code is ExitCode.OK
    found = [(item.kernel, item.standing, item.owed) for item in summary.items]
    assert found == [
        ("axpy", Standing.DELIVERED, None),
        ("sgemm", Standing.OWED, OwedClass.BUDGET),
        ("gelu", Standing.OWED, OwedClass.INFRA),
    ]
    written = summary_file(layout)
    assert (written["planned"], written["delivered"], written["owed"]) == (3, 1, 2)
    assert written["setups"]["x"]["outcomes"] == {"solved": 1}
    assert written["grades"] == {"submit": 1}
    assert {step["name"]: step["state"] for step in written["steps"]} == {
        "judge-0": "stopped",
        "judge-1": "stopped",
        "agent-0": "succeeded",
        "monitor-127.0.0.1": "succeeded",
    }
    assert "axpy" in layout.report.read_text()
    assert not layout.merge_failed.exists()
    assert view.seen[-1].ended == 3


def test_secrets_and_configs_are_the_owners_alone(done):
    layout, _, _ = done
    for path in (layout.secret, layout.judge_config(0), layout.agent_config(0), layout.env_snapshot("x")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert layout.secret.read_text() not in layout.agent_config(0).read_text()


def test_judges_know_the_kernel_of_each_problem(done):
    layout, _, _ = done
    kernels = [json.loads(line)["kernel"] for line in layout.problems.read_text().splitlines()]
    for rank in (0, 1):
        assert [*JudgeConfig.read(layout.judge_config(rank)).problems] == kernels != []


def test_agents_are_given_the_start_material_and_no_controls(done):
    layout, _, _ = done
    staged = {path.name for path in layout.staged("axpy").rglob("*")}
    assert staged == {"reference.py", "baseline.c"}


def test_what_was_launched_can_be_run_again(done):
    layout, _, _ = done
    wave = read_wave([layout.env_snapshot("x")])
    assert [problem.kernel for problem in wave.problems] == ["axpy", "sgemm", "gelu"]
    assert wave.setups[0].settings.agent_script == layout.script("x")


def test_a_judge_that_dies_at_start_ends_the_wait_with_its_last_words(live):
    layout, summary = live(StandIns(2, judge="import sys; sys.exit('no compiler here')"))
    assert summary.ending.exit_code is ExitCode.NEVER_READY
    assert "no compiler here" in summary.ending.reason
    assert str(layout.judge_log(0)) in summary.ending.reason
    assert summary.count(Standing.OWED) == 3
    assert not layout.agent_log(0).exists()


def test_an_unfit_judge_ends_the_wait_with_its_reason(live):
    judge = JUDGE + "health.update(status='unfit', self_grade='gcc is missing')\nserver.serve_forever(0.05)"
    _, summary = live(StandIns(2, judge=judge))
    assert summary.ending.exit_code is ExitCode.NEVER_READY
    assert "gcc is missing" in summary.ending.reason


def test_a_judge_that_never_answers_runs_out_of_time(live):
    judge = "import signal; signal.pause()"
    _, summary = live(StandIns(2, judge=judge), JUDGE_READY_SECONDS=1)
    assert summary.ending.exit_code is ExitCode.NEVER_READY


# A judge that leaves once the agents of node 0 are up.
MORTAL = (
    JUDGE
    + """
import os, time
def leave():
    while not (config.log_dir.parent / "agents" / "node-0" / "up").exists():
        time.sleep(0.02)
    os._exit(9)
if config.rank >= {first}:
    threading.Thread(target=leave).start()
server.serve_forever(0.05)
shard.close()
"""
)


def test_losing_every_rank_tears_the_job_down(live):
    launcher = StandIns(2, judge=MORTAL.replace("{first}", "0"), agent=DRIVER + WAIT)
    layout, summary = live(launcher, JUDGES_PER_NODE=2)
    assert summary.ending.exit_code is ExitCode.SERVICE_LOST
    assert summary_file(layout)["delivered"] == 1
    steps = [step for step in summary_file(layout)["steps"] if step["role"] != "monitor"]
    ends = {step["name"]: (step["exit_code"], step["stopped"]) for step in steps}
    assert ends == {"judge-0": (9, False), "judge-1": (9, False), "agent-0": (130, True)}


def test_losing_one_rank_degrades_the_job(live, tmp_path):
    view = Notes()

    def release_the_agent(progress):
        if any(rank.state is ServiceState.LOST for rank in progress.ranks):
            (tmp_path / "seen").touch()

    view.progress = release_the_agent
    waits = f"import time\nwhile not Path({str(tmp_path / 'seen')!r}).exists(): time.sleep(0.02)"
    agent = f"{DRIVER}\n(config.run_dir / 'up').touch()\n{waits}"
    launcher = StandIns(2, judge=MORTAL.replace("{first}", "1"), agent=agent)
    layout, summary = live(launcher, view, JUDGES_PER_NODE=2)
    assert summary.ending.exit_code is read_summary(layout).exit_code is ExitCode.DEGRADED
    assert layout.results.exists()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, ExitCode.CANCELLED), (signal.SIGUSR1, ExitCode.WALL_CLOCK)],
    ids=["term", "usr1"],
)
def test_a_signal_tears_the_job_down_and_keeps_what_there_is(live, number, code):
    view = Notes()

    def interrupt():
        view.moved.wait()
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=interrupt)
    sender.start()
    layout, summary = live(StandIns(2, agent=DRIVER + WAIT), view)
    sender.join()
    assert summary.ending.exit_code is code
    assert summary_file(layout)["planned"] == 3
    assert layout.results.exists()


def test_a_rank_that_is_lost_while_the_job_drains_degrades_it(live, tmp_path):
    view = Notes()
    judge = MORTAL.replace("{first}", "1").replace(
        "server.serve", "health['inflight_submits'] = config.rank\nserver.serve"
    )
    view.phase = lambda text: text.startswith("finished") and (tmp_path / "runs/job-1/agents/node-0/up").touch()
    layout, summary = live(StandIns(2, judge=judge), view, JUDGES_PER_NODE=2)
    assert summary.ending.exit_code is ExitCode.DEGRADED
    assert layout.results.exists()


def test_a_signal_ends_a_drain_that_would_go_on(live):
    view = Notes()
    judge = JUDGE + "health['inflight_submits'] = 1\nserver.serve_forever(0.05)\nshard.close()\n"

    def interrupt_the_drain(text):
        if text.startswith("finished"):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()

    view.phase = interrupt_the_drain
    layout, summary = live(StandIns(2, judge=judge), view)
    assert summary.ending.exit_code is ExitCode.CANCELLED
    assert layout.results.exists()


def test_a_stall_tears_the_job_down_and_leaves_no_process(live):
    started = []
    launcher = StandIns(2, agent=DRIVER + WAIT, on_start=started.append)
    layout, summary = live(launcher, AGENT_STALL_ABORT_SECONDS=1)
    assert summary.ending.exit_code is ExitCode.STALLED
    assert layout.results.exists()
    ends = {running.step.role: running.poll() for running in started}
    assert ends[Role.JUDGE].exit_code == 0
    assert ends[Role.AGENT].exit_code in (130, -signal.SIGTERM)  # the latter where the stall came before it was up


def test_the_wall_clock_tears_the_job_down(live):
    wall = {"JUDGE_DRAIN_RESERVE_SECONDS": 600, "JOB_WALL_SECONDS": 665}
    _, summary = live(StandIns(2, agent=DRIVER + WAIT, wall_s=665), **wall)
    assert summary.ending.exit_code is ExitCode.WALL_CLOCK


def test_the_wall_clock_does_not_wait_for_judges(live):
    wall = {"JUDGE_DRAIN_RESERVE_SECONDS": 600, "JOB_WALL_SECONDS": 663}
    layout, summary = live(StandIns(2, judge="import signal; signal.pause()", wall_s=663), **wall)
    assert summary.ending.exit_code is ExitCode.WALL_CLOCK
    assert summary.count(Standing.OWED) == 3
    assert not layout.agent_log(0).exists()


def test_drivers_that_all_fail_are_a_lost_service(live):
    _, summary = live(StandIns(2, agent="raise SystemExit(64)"))
    assert summary.ending.exit_code is ExitCode.SERVICE_LOST
    assert [item.owed for item in summary.items] == [None, OwedClass.INFRA, OwedClass.INFRA]


def test_a_failed_merge_keeps_the_grades_and_says_how_to_recover(live):
    hide = "\nshard = config.run_dir.parents[1] / 'judge/rank-0/grades.db'\nshard.rename(shard.with_name('away'))"
    agent = DRIVER + hide
    layout, summary = live(StandIns(2, agent=agent))
    assert summary.ending.exit_code is ExitCode.MERGE_FAILED
    assert summary.count(Standing.UNMERGED) == 3
    note = layout.merge_failed.read_text()
    assert str(layout.shard(0)) in note
    assert f"kcourt job collect {layout.root}" in note
    assert not layout.results.exists()

    layout.shard(0).with_name("away").rename(layout.shard(0))
    again = recollect(layout)
    assert again.ending.exit_code is ExitCode.OK
    assert (again.count(Standing.DELIVERED), again.count(Standing.OWED)) == (1, 2)
    assert not layout.merge_failed.exists()


def test_a_run_id_is_used_once(done):
    layout, _, _ = done
    with pytest.raises(ConfigError, match="each is used once"):
        live_in(layout.root.parents[1], StandIns(2))


def test_an_allocation_of_the_wrong_size_is_refused_before_anything_starts(live, tmp_path):
    with pytest.raises(ConfigError, match="--nodes=2"):
        live(StandIns(3))
    assert not (tmp_path / "runs").exists()
