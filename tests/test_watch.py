"""What an operator sees of a job: its state file, `kcourt watch` and `kcourt logs`, on run directories of all kinds."""

import io
import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from test_life import StandIns, live_in

from bench.cli import run
from bench.errors import ConfigError, UsageError
from bench.judge.schemas import End, EpisodeRecord, Language, Problem, SetupRecord
from cluster.commands.view import follow, watch_view
from cluster.job.documents import write_json, write_private
from cluster.job.health import EngineHealth, RankHealth, ServiceState
from cluster.job.launched import Launched
from cluster.job.launchers import Role, Step
from cluster.job.layout import RunLayout
from cluster.job.lines import tail
from cluster.job.progress import Pace, Progress, pace
from cluster.job.records import StepSeen, StepState, begin_record, end_record
from cluster.job.stages import Life, Limits, Service, Stage, life_of, stage_of
from cluster.job.state import JobState, Phase, StateFile, read_state
from cluster.job.watch import Watcher
from cluster.study.problems import render_problems

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
ENV = "SETUP=gold\nHARNESS=scripted\nAGENT_SCRIPT=plan.json\nKERNELS=axpy\nINFERENCE_NODES=0\nAGENT_MAX_TOKENS=1000\n"
READY, LOST = (
    RankHealth(0, ServiceState.READY, queue_depth=3, inflight_submits=2),
    RankHealth(1, ServiceState.LOST, "gone"),
)


def ago(**span: float) -> str:
    return (NOW - timedelta(**span)).isoformat(timespec="milliseconds")


def state_of(phase: Phase = Phase.WORKING, age_s: float = 1, **fields: Any) -> JobState:
    """The state of a job whose process runs on another machine."""
    plain = {"host": "elsewhere", "pid": 1, "left_s": None, "quiet_s": 0, "ranks": (), "engines": (), "said": ()}
    return JobState(**plain | {"phase": phase, "at": ago(seconds=age_s), "phase_since": ago(minutes=12)} | fields)


def episode(problem: int, tokens: int | None) -> EpisodeRecord:
    return EpisodeRecord(
        label=f"gold.n0.p{problem}.w0",
        setup="gold",
        kernel="axpy",
        slot=problem,
        node=0,
        problem=problem,
        worker=0,
        end=End.FINISHED,
        attempts=1,
        tokens_fresh=tokens,
        wall_s=3.0,
        harness="scripted",
        harness_version="0",
        started_at=ago(minutes=9),
        ended_at=ago(minutes=8),
    )


def add_grades(shard: Path, *grades: tuple[str, str, float]) -> None:
    """Grades of a kind and an outcome, made so many minutes ago."""
    shard.parent.mkdir(parents=True, exist_ok=True)
    rows = [(kind, outcome, ago(minutes=minutes), ago(minutes=minutes)) for kind, outcome, minutes in grades]
    with closing(sqlite3.connect(shard)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS grades (kind, outcome, requested_at, finished_at)")
        database.executemany("INSERT INTO grades VALUES (?, ?, ?, ?)", rows)


def begin(layout: RunLayout, name: str, host: str = "n1") -> None:
    record = {"name": name, "role": name.partition("-")[0], "host": host, "pid": 7, "began_at": ago(minutes=11)}
    write_json(begin_record(layout.steps, name), record)


def end(layout: RunLayout, name: str, state: StepState, exit_code: int | None = None) -> None:
    record = {"name": name, "role": name.partition("-")[0], "host": "n1", "state": state, "exit_code": exit_code}
    write_json(end_record(layout.steps, name), record | {"stopped": state is StepState.STOPPED})


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    """A job with two ranks and one agent node: one of three episodes has ended, one runs; no state yet."""
    layout = RunLayout(tmp_path / "runs" / "4711")
    layout.create()
    setups = {"gold": SetupRecord(setup="gold")}
    write_json(layout.plan, Launched(job_id="4711", ranks=2, setups=setups).model_dump(mode="json"))
    problems = [Problem(setup="gold", kernel="axpy", slot=slot, language=Language.C) for slot in range(3)]
    write_private(layout.problems, render_problems(problems))
    write_private(layout.env_snapshot("gold"), ENV)
    for name in ("agent-0", "judge-0", "judge-1"):
        begin(layout, name)
    layout.agent_node(0).mkdir(parents=True)
    events = ["episode_started", "episode_started", "episode_ended"]
    layout.events(0).write_text("".join(json.dumps({"event": event}) + "\n" for event in events))
    folder = layout.episode(0, 0, 0)
    (folder / "attempt-1").mkdir(parents=True)
    (folder / "attempt-1" / "scripted.log").write_text("first\nsecond\n")
    (folder / "tokens.json").write_text(episode(0, 250).model_dump_json())
    add_grades(layout.shard(0), ("score", "wrong", 30), ("submit", "solved", 5))
    layout.judge_log(0).write_text("rank 0 starts\n")
    layout.upstream_log(0).write_text("".join(f"line {number}\n" for number in range(100)) + "unfin")
    return layout


def summarize(layout: RunLayout) -> None:
    owed = {"standing": "owed", "owed": "infra", "why": "no record of an episode"}
    items = [{"setup": "gold", "kernel": "axpy", "slot": 0, "standing": "delivered", "outcome": "solved"}]
    items += [{"setup": "gold", "kernel": "axpy", "slot": slot, **owed} for slot in (1, 2)]
    ending = {"cause": "wall_clock", "reason": "the job received SIGUSR1", "seconds": 754, "exit_code": 124}
    write_json(layout.summary, ending | {"items": items})


def look(layout: RunLayout, state: JobState | None = None) -> dict[str, Any]:
    """The view of a run as JSON, at NOW."""
    if state:
        layout.state.write_text(state.model_dump_json())
    return dict(json.loads(json.dumps(Watcher(layout, lambda: NOW).look().document())))


def stages(found: dict[str, Any]) -> dict[str, str]:
    return {row["step"]: row["stage"] for row in found["steps"]}


@pytest.fixture
def said_by(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `kcourt` in this process; returns what it printed."""

    def call(*arguments: str) -> str:
        capsys.readouterr()
        assert run(arguments) == 0
        return capsys.readouterr().out

    return call


# The state file


def test_a_state_reads_back_as_it_was_noted(tmp_path: Path) -> None:
    layout = RunLayout(tmp_path)
    engine = EngineHealth(0, ServiceState.STARTING, "loads weights")
    StateFile(layout).note(
        Phase.WORKING, ranks=[READY, LOST], engines=[engine], left_s=12.3456, quiet_s=4, said="3 problems"
    )
    state = read_state(layout)
    assert state is not None
    assert (state.phase, state.left_s, state.quiet_s) == (Phase.WORKING, 12.346, 4)
    assert (state.ranks, state.engines) == ((READY, LOST), (engine,))
    assert [said.text for said in state.said] == ["3 problems"]
    assert state.process_lives


def test_a_state_is_written_once_a_second_and_at_once_when_there_is_news(tmp_path: Path) -> None:
    now, layout = [0.0], RunLayout(tmp_path)
    file = StateFile(layout, lambda: now[0])

    def written(phase: Phase, quiet_s: float, said: str = "") -> bool:
        layout.state.unlink(missing_ok=True)
        file.note(phase, quiet_s=quiet_s, said=said)
        return layout.state.exists()

    assert written(Phase.STARTING, 0)
    assert not written(Phase.STARTING, 1)
    assert written(Phase.STARTING, 2, "two judges")
    assert not written(Phase.STARTING, 3, "two judges")
    assert written(Phase.WORKING, 4)
    now[0] = 1.5
    assert written(Phase.WORKING, 5)


def test_ranks_stay_as_last_seen_and_the_last_sentences_are_kept(tmp_path: Path) -> None:
    layout = RunLayout(tmp_path)
    file = StateFile(layout)
    file.note(Phase.WORKING, ranks=[READY])
    for number in range(30):
        file.note(Phase.MERGING, said=f"sentence {number}")
    state = read_state(layout)
    assert state is not None
    assert state.ranks == (READY,)
    assert [said.text for said in state.said] == [f"sentence {number}" for number in range(10, 30)]


def test_a_state_that_cannot_be_written_ends_no_job(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    StateFile(RunLayout(tmp_path / "file")).note(Phase.STARTING)
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("file", 0)]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"phase": "asleep"}', "\xff"])
def test_a_damaged_state_is_named(layout: RunLayout, text: str) -> None:
    layout.state.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=f"^{layout.state}: "):
        run(["watch", str(layout.root), "--once"])


# Where a job and its steps are

LIMITS = Limits(stall_s=3600, reserve_s=1020)


@pytest.mark.parametrize(
    ("state", "summed_up", "expected"),
    [
        pytest.param(None, False, Life.UNKNOWN, id="no-state"),
        pytest.param(None, True, Life.ENDED, id="summary-alone"),
        pytest.param(state_of(), False, Life.RUNNING, id="fresh"),
        pytest.param(state_of(age_s=61), True, Life.ENDED, id="summed-up"),
        pytest.param(state_of(Phase.DONE, age_s=9999), False, Life.ENDED, id="done"),
        pytest.param(state_of(age_s=61), False, Life.GONE, id="stale"),
        pytest.param(state_of(age_s=61, host=socket.gethostname(), pid=os.getpid()), False, Life.GONE, id="pid-reused"),
        pytest.param(state_of(host=socket.gethostname(), pid=1 << 30), False, Life.GONE, id="killed"),
        pytest.param(state_of(Phase.MERGING, age_s=600), False, Life.RUNNING, id="merges-quietly"),
        pytest.param(state_of(Phase.MERGING, age_s=1021), False, Life.GONE, id="merges-no-more"),
        pytest.param(state_of(quiet_s=1801), False, Life.NOT_PROGRESSING, id="quiet"),
        pytest.param(state_of(Phase.STARTING, quiet_s=1801), False, Life.RUNNING, id="quiet-before-work"),
    ],
)
def test_whether_a_job_goes_on(state: JobState | None, summed_up: bool, expected: Life) -> None:
    assert life_of(state, state.process_lives if state else None, summed_up, NOW, LIMITS) is expected


def test_a_process_that_lives_and_says_nothing_is_not_gone() -> None:
    born = datetime.fromtimestamp(psutil.Process().create_time(), UTC)
    state = state_of(host=socket.gethostname(), pid=os.getpid(), at=born.isoformat())
    assert life_of(state, state.process_lives, False, born + timedelta(seconds=61), LIMITS) is Life.NOT_PROGRESSING


def test_a_job_without_a_stall_limit_is_never_too_quiet() -> None:
    assert life_of(state_of(quiet_s=1e6), None, False, NOW) is Life.RUNNING


def step(state: StepState = StepState.RUNNING, stopped: bool = False) -> StepSeen:
    return StepSeen(name="judge-0", role=Role.JUDGE, host="n1", state=state, exit_code=1, stopped=stopped)


UP, DOWN = Service(ready=True), Service(ready=False)


@pytest.mark.parametrize(
    ("life", "phase", "seen", "service", "expected"),
    [
        (Life.RUNNING, Phase.STARTING, None, DOWN, Stage.PENDING),
        (Life.RUNNING, Phase.STARTING, step(), DOWN, Stage.STARTING),
        (Life.RUNNING, Phase.STARTING, step(), UP, Stage.READY),
        (Life.RUNNING, Phase.WORKING, step(), UP, Stage.SERVING),
        (Life.RUNNING, Phase.WORKING, step(), DOWN, Stage.STARTING),
        (Life.RUNNING, Phase.WORKING, step(), Service(ready=False, lost=True), Stage.LOST),
        (Life.RUNNING, Phase.DRAINING, step(), UP, Stage.DRAINING),
        (Life.RUNNING, Phase.MERGING, step(StepState.STOPPED), UP, Stage.DONE),
        (Life.RUNNING, Phase.WORKING, step(StepState.SUCCEEDED), UP, Stage.DONE),
        (Life.RUNNING, Phase.WORKING, step(StepState.FAILED), UP, Stage.LOST),
        (Life.RUNNING, Phase.WORKING, step(StepState.OUT_OF_MEMORY), UP, Stage.LOST),
        (Life.RUNNING, Phase.STOPPING, step(StepState.KILLED, stopped=True), UP, Stage.DONE),
        (Life.NOT_PROGRESSING, Phase.WORKING, step(), UP, Stage.NOT_PROGRESSING),
        (Life.GONE, Phase.WORKING, step(), UP, Stage.NOT_PROGRESSING),
        (Life.GONE, Phase.WORKING, step(StepState.LOST), UP, Stage.LOST),
        (Life.ENDED, Phase.DONE, None, DOWN, Stage.PENDING),
        (Life.ENDED, Phase.DONE, step(), UP, Stage.LOST),
        (Life.UNKNOWN, None, step(), UP, Stage.SERVING),
        (Life.UNKNOWN, None, None, DOWN, Stage.PENDING),
    ],
)
def test_the_stage_of_a_step(
    life: Life, phase: Phase | None, seen: StepSeen | None, service: Service, expected: Stage
) -> None:
    assert stage_of(life, phase, seen, service) is expected


def test_the_pace_counts_the_last_minutes_and_all(tmp_path: Path) -> None:
    add_grades(tmp_path / "a.db", ("score", "wrong", 30), ("submit", "solved", 20))
    add_grades(tmp_path / "b.db", ("submit", "solved", 5))
    shards = [tmp_path / "a.db", tmp_path / "b.db", tmp_path / "none.db"]
    assert pace(shards, NOW, live=True) == Pace(recent=6, overall=6)
    assert pace(shards, NOW, live=False) == Pace(recent=None, overall=pytest.approx(7.2))
    assert pace([tmp_path / "b.db"], NOW, live=True) == Pace(recent=12, overall=12)
    assert pace([tmp_path / "b.db"], NOW, live=False) == pace([tmp_path / "none.db"], NOW, live=True) == Pace()


# kcourt watch


def test_a_live_job_is_seen_whole(layout: RunLayout) -> None:
    found = look(layout, state_of(ranks=(READY, LOST), left_s=3600, said=({"at": ago(minutes=1), "text": "hello"},)))
    assert (found["life"], found["phase"], found["left_s"], found["outcome"]) == ("running", "working", 3600, None)
    assert found["episodes"] == {"planned": 3, "done": 1, "running": 1, "left": 1}
    assert (found["grades"], found["solved"]) == ({"score": 1, "submit": 1}, 1)
    assert found["grades_per_hour"] == {"recent": 6, "overall": 4}
    assert found["tokens"] == {"used": 250, "episodes": 1, "most": 250, "cap": 1000}
    assert stages(found) == {"agent-0": "serving", "judge-0": "serving", "judge-1": "lost"}
    assert [row["queue_depth"] for row in found["steps"]] == [None, 3, 0]
    assert found["errors"] == ["judge rank 1 is lost: gone"]
    assert [said["text"] for said in found["said"]] == ["hello"]


def test_what_is_new_is_seen_at_the_next_look(layout: RunLayout) -> None:
    layout.state.write_text(state_of().model_dump_json())
    watcher = Watcher(layout, lambda: NOW)
    assert watcher.look().tokens.used == 250
    layout.episode(0, 1, 0).mkdir()
    (layout.episode(0, 1, 0) / "tokens.json").write_text(episode(1, 900).model_dump_json())
    with layout.events(0).open("a") as events:
        events.write('{"event": "episode_ended"}\n')
    later = watcher.look()
    assert (later.tokens.used, later.tokens.most, later.progress.ended) == (1150, 900, 2)


def test_engines_and_monitors_have_their_rows(layout: RunLayout) -> None:
    layout.env_snapshot("gold").write_text(ENV.replace("INFERENCE_NODES=0", "INFERENCE_NODES=2"))
    begin(layout, "inference-0")
    begin(layout, "monitor-n1-3")
    engines = (EngineHealth(0, ServiceState.LOST, "out of memory"),)
    found = look(layout, state_of(engines=engines))
    shown = stages(found)
    assert (shown["inference-0"], shown["inference-1"], shown["monitor-n1-3"]) == ("lost", "pending", "serving")
    assert [row["number"] for row in found["steps"]] == [0, 1, 0, 0, 1, None]
    assert found["errors"] == ["inference replica 0 is lost: out of memory"]


def test_a_failed_step_and_a_failed_merge_are_errors(layout: RunLayout) -> None:
    end(layout, "agent-0", StepState.FAILED, 3)
    layout.merge_failed.write_text("results.db of this run\ncould not be written.\n")
    assert look(layout, state_of())["errors"] == [
        "step agent-0 on n1: failed (exit code 3)",
        "MERGE_FAILED: results.db of this run could not be written.",
    ]


def test_a_job_that_has_ended_says_what_is_owed(layout: RunLayout) -> None:
    for name in ("agent-0", "judge-0", "judge-1"):
        end(layout, name, StepState.STOPPED)
    summarize(layout)
    found = look(layout, state_of(Phase.DONE, ranks=(READY,), left_s=9))
    assert found["outcome"] | {"reason": ""} == {
        **{"exit_code": 124, "exit": "wall_clock", "cause": "wall_clock", "reason": "", "seconds": 754},
        **{"delivered": 1, "owed": 2, "review": 0, "unmerged": 0, "owed_by_class": {"infra": 2}},
    }
    assert found["episodes"] == {"planned": 3, "done": 1, "running": 0, "left": 2}
    assert (found["life"], found["left_s"], set(stages(found).values())) == ("ended", None, {"done"})


def test_a_job_whose_process_died_is_advised_to_be_collected(layout: RunLayout) -> None:
    found = look(layout, state_of(age_s=90))
    assert found["life"] == "gone"
    assert f"`kcourt job collect {layout.root}`" in found["advice"]


def test_a_run_without_a_state_says_so(said_by: Callable[..., str], layout: RunLayout) -> None:
    for record in layout.steps.iterdir():
        record.unlink()
    assert "no state recorded" in said_by("watch", str(layout.root), "--once")
    summarize(layout)
    text = said_by("watch", str(layout.root))
    assert "ended, no state recorded" in text
    assert "exit 124 (wall_clock: wall_clock, the job received SIGUSR1) after 0:12:34" in text
    assert "1 delivered, 2 owed, 0 review, 0 unmerged (2 infra)" in text
    assert set(stages(json.loads(said_by("watch", str(layout.root), "--json"))).values()) == {"done"}


def test_a_run_whose_directory_is_being_made_is_shown(layout: RunLayout) -> None:
    layout.plan.unlink()
    found = look(layout, state_of(Phase.STARTING))
    assert (found["life"], found["phase"], found["steps"]) == ("running", "starting", [])


def test_nothing_is_written_to_the_run(layout: RunLayout) -> None:
    def listing() -> set[tuple[str, int]]:
        return {(str(path), path.stat().st_mtime_ns) for path in layout.root.rglob("*")}

    layout.state.write_text(state_of().model_dump_json())
    before = listing()
    run(["watch", str(layout.root), "--once"])
    assert listing() == before


def test_an_unknown_job_is_answered_with_the_newest_runs(layout: RunLayout) -> None:
    (layout.root.parent / "adhoc").mkdir()
    with pytest.raises(UsageError, match=r"no run '4712' in .*; the newest there: 4711; name one"):
        run(["watch", "4712", "--run-root", str(layout.root.parent)])
    with pytest.raises(UsageError, match="no run is there"):
        run(["logs", "4712", "--run-root", str(layout.root)])


@given(job=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300))
def test_any_word_for_a_job_is_refused_in_words(tmp_path_factory: pytest.TempPathFactory, job: str) -> None:
    with pytest.raises(UsageError):
        run(["watch", "--run-root", str(tmp_path_factory.getbasetemp() / "empty"), "--once", "--", f"no-{job}"])


def printed(layout: RunLayout, state: JobState) -> str:
    layout.state.write_text(state.model_dump_json())
    shown = io.StringIO()
    Console(file=shown, width=200).print(watch_view(Watcher(layout, lambda: NOW).look()))
    return "\n".join(" ".join(line.split()) for line in shown.getvalue().splitlines())


def test_a_view_names_phase_budgets_and_what_was_said(layout: RunLayout) -> None:
    said = ({"at": ago(seconds=30), "text": "not ready\nlast lines of [bold]a log[/bold]: \x1b[2J"},)
    text = printed(layout, state_of(ranks=(READY, LOST), left_s=5400, quiet_s=90, said=said))
    assert "job 4711 running, working for 0:12:00, heard of 1 s ago, no event for 0:01:30" in text
    assert "episodes 1 done 1 running 1 left" in text
    assert "6 an hour in the last 10 minutes 4 an hour overall" in text
    assert "tokens 250 by 1 ended episodes, at most 250 of 1,000 wall time left 01:30:00" in text
    assert "judge-0 n1 serving 3 2 -" in text
    assert "judge-1 n1 lost 0 0 gone" in text
    assert "11:59:30 not ready\nlast lines of [bold]a log[/bold]: �[2J" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_a_job_is_followed_to_its_end(layout: RunLayout, terminal: bool) -> None:
    said = ({"at": ago(minutes=2), "text": "two judges start"},)
    layout.state.write_text(state_of(said=said).model_dump_json())
    shown, pauses = io.StringIO(), []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            summarize(layout)

    watcher = Watcher(layout, lambda: NOW)
    follow(watcher.look, Console(file=shown, force_terminal=terminal, width=200), pause)
    assert pauses == [2.0] * 3
    assert shown.getvalue().count("ended     exit 124") == 1
    if not terminal:
        assert shown.getvalue().startswith(
            "two judges start\nrunning, working | episodes: 1/3 ended, 1 running, 1 left"
        )
        assert shown.getvalue().count("1/3 ended") == 1


class Onlooker:
    """A view of a job that watches it from outside meanwhile, from when its monitor has begun to write."""

    def __init__(self, layout: RunLayout) -> None:
        self._layout = layout
        self.seen: list[dict[str, Any]] = []

    def phase(self, text: str) -> None:
        pass

    def progress(self, progress: Progress) -> None:
        while not list(self._layout.monitor.glob("*.csv")):
            time.sleep(0.05)
        self.seen.append(Watcher(self._layout).look().document())


class WithMonitor(StandIns):
    """Judges and drivers are stand-ins; the monitor is the real one."""

    def start(self, step: Step) -> Any:
        return self._local.start(step) if step.role is Role.MONITOR else super().start(step)


def test_a_job_that_lives_is_watched_to_its_end(said_by: Callable[..., str], tmp_path: Path) -> None:
    layout = RunLayout(tmp_path / "runs" / "job-1")
    onlooker = Onlooker(layout)
    live_in(tmp_path, WithMonitor(2), onlooker, JUDGES_PER_NODE=2)
    live = onlooker.seen[0]
    assert (live["life"], live["phase"], live["outcome"]) == ("running", "working", None)
    assert {name: stage for name, stage in stages(live).items() if name.startswith("judge")} == {
        "judge-0": "serving",
        "judge-1": "serving",
    }
    assert {row["host"] for row in live["steps"] if row["role"] == "judge"} == {socket.gethostname()}
    ended = json.loads(said_by("watch", str(layout.root), "--json"))
    assert (ended["life"], ended["phase"], ended["errors"]) == ("ended", "done", [])
    assert ended["outcome"]["exit_code"] == 0
    assert ended["episodes"] == {"planned": 3, "done": 3, "running": 0, "left": 0}
    assert set(stages(ended).values()) == {"done"}
    assert ended["said"][-1]["text"] == "exit 0 (ok)"
    (node,) = json.loads(said_by("monitor", "report", str(layout.root), "--json"))["nodes"]
    assert (node["node"], node["roles"]) == ("127.0.0.1", ["agent", "judge"])
    assert "judge 1" in " ".join(said_by("logs", str(layout.root)).split())


# kcourt logs


def test_logs_are_listed_with_their_sizes(
    said_by: Callable[..., str], layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = layout.root.parents[1] / "scratch" / "logs"
    slurm.mkdir(parents=True)
    (slurm / "services-4711.out").write_text("from Slurm\n")
    layout.monitor.mkdir()
    layout.monitor_csv("n1").write_text("time\n")
    monkeypatch.setenv("KCOURT_SCRATCH", str(slurm.parent))
    found = json.loads(said_by("logs", str(layout.root), "--json"))["logs"]
    assert [(log["role"], log["name"], log["bytes"]) for log in found] == [
        ("job", "4711", 11),
        ("judge", "0", 14),
        ("judge", "0", layout.upstream_log(0).stat().st_size),
        ("monitor", "n1", 5),
    ]
    assert "judge 0 14 bytes" in " ".join(said_by("logs", str(layout.root)).split())
    assert said_by("logs", str(layout.root), "--role", "job") == "from Slurm\n"


def test_the_ends_of_the_chosen_logs_are_printed(said_by: Callable[..., str], layout: RunLayout) -> None:
    where = ("4711", "--run-root", str(layout.root.parent))
    assert said_by("logs", *where, "--role", "judge", "--rank", "0", "--tail", "2") == (
        f"==> {layout.judge_log(0)} <==\nrank 0 starts\n==> {layout.upstream_log(0)} <==\nline 98\nline 99\nunfin\n"
    )
    found = json.loads(said_by("logs", *where, "--role", "judge", "--tail", "1", "--json"))["logs"]
    assert [log["lines"] for log in found] == [["rank 0 starts"], ["line 99", "unfin"]]


def test_the_log_of_an_episode_steers_no_terminal(layout: RunLayout, capsys: pytest.CaptureFixture[str]) -> None:
    log = layout.episode(0, 0, 0) / "attempt-1" / "scripted.log"
    log.write_bytes(b"\x1b[2Jgone\n10%\r100%\n\xff\n")
    run(["logs", str(layout.root), "--episode", "gold.n0.p0.w0"])
    assert capsys.readouterr().out == "�[2Jgone\n100%\n�\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param(["--role", "judge", "--rank", "1"], "there is no log of 1; there are logs of 0", id="rank"),
        pytest.param(["--role", "inference"], "it has logs of: judge", id="role"),
        pytest.param(["--role", "agent", "--rank", "0"], "--rank is for", id="rank-of-an-agent"),
        pytest.param(["--role", "judge", "--node", "0"], "--node is for", id="node-of-a-judge"),
        pytest.param(["--episode", "gold"], "is not an episode label", id="label"),
        pytest.param(["--episode", "gold.n0.p9.w0"], "is not there", id="no-episode"),
        pytest.param(["--episode", "gold.n0.p0.w0", "--rank", "0"], "--episode names", id="episode-and-rank"),
        pytest.param(["-f"], "--follow prints lines of chosen logs", id="follow-all"),
        pytest.param(["-f", "--role", "judge", "--json"], "leave --json out", id="follow-json"),
    ],
)
def test_a_log_that_is_not_there_is_refused_in_words(layout: RunLayout, options: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        run(["logs", str(layout.root), *options])


def test_a_log_is_followed_until_its_job_has_ended(layout: RunLayout, capsys: pytest.CaptureFixture[str]) -> None:
    layout.state.write_text(state_of(at=datetime.now(UTC).isoformat()).model_dump_json())

    def go_on() -> None:
        with layout.judge_log(0).open("a") as log:
            log.write("more\n")
        summarize(layout)

    timer = threading.Timer(1.0, go_on)
    timer.start()
    run(["logs", str(layout.root), "--role", "judge", "--rank", "0", "-f", "--tail", "1"])
    timer.join()
    out = capsys.readouterr().out
    assert out.endswith(f"==> {layout.judge_log(0)} <==\nmore\n")
    assert (out.count("rank 0 starts"), "unfin" in out) == (1, False)


def test_an_interrupt_ends_following_quietly(layout: RunLayout) -> None:
    argv = [Path(sys.executable).with_name("kcourt"), "logs", str(layout.root), "--role", "judge", "-f"]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert child.stdout is not None
    assert child.stdout.readline().startswith("==> ")
    child.send_signal(2)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err.strip()) == (130, "")


@given(
    lines=st.lists(st.binary(max_size=90).map(lambda text: text.replace(b"\n", b"")), max_size=60),
    wanted=st.integers(0, 70),
)
def test_a_tail_is_the_last_lines_and_where_to_go_on(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], wanted: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "tail.log"
    text = b"\n".join(lines)
    path.write_bytes(text)
    found = tail(path, wanted)
    *whole, rest = text.split(b"\n")
    assert found.whole == (whole[-wanted:] if wanted else [])
    assert (found.rest, found.offset) == (rest if wanted else b"", len(text) - len(rest))


def test_a_tail_of_a_long_file_reads_its_end_alone(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(b"x" * 999_999 + b"\n" + b"y" * 200_000 + b"\nend\n")
    assert [len(line) for line in tail(path, 2).whole] == [200_000, 3]
