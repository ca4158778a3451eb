"""The demo study on real judges: three scripted agents, two ranks, and a judge that dies in the middle."""

import json
import subprocess
import sys
import threading
import time

import pytest
from living import family
from typer.testing import CliRunner

from bench.results.queries import opened, verdicts
from cluster.commands.study import app
from cluster.job.layout import RunLayout
from cluster.job.progress import count_grades
from cluster.study.status import Part

pytestmark = pytest.mark.timing

KERNELS = "sgemm,gelu,nbody"
LIMIT_S = 600


def start_demo(folder):
    """Start `kcourt demo` on few kernels, at the smallest preset whose calls are long enough to be told apart."""
    options = {"--kernels": KERNELS, "--preset": "M", "--run-root": folder / "runs", "--render-to": folder}
    words = [str(word) for pair in options.items() for word in pair]
    command = [sys.executable, "-c", "from bench.cli import main; main()", "demo", "--json", *words]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(demo):
    out, err = demo.communicate(timeout=LIMIT_S)
    assert demo.returncode == 0, err.decode()
    return json.loads(out)


def accounts(folder):
    """What `kcourt study status` says of the demo as it was rendered here."""
    options = ["--render-to", folder, "--run-root", folder / "runs", "--json"]
    done = CliRunner().invoke(app, ["status", "demo", *map(str, options)])
    found = json.loads(done.output)
    return {part: found[part] for part in ("planned", *Part)}


def found_in(layout):
    with opened([layout.results]) as database:
        return {(one.assignment.setup, one.assignment.kernel): one for one in verdicts(database)}


def acknowledged(layout):
    """Grade ids that an agent was given, by tool."""
    calls = [
        json.loads(line)
        for path in layout.agents.rglob("answers.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return {call["answer"]["grade_id"] for call in calls if call.get("answer")}


def test_the_demo_tells_its_three_agents_apart_and_survives_a_dead_judge(tmp_path):
    demo = start_demo(tmp_path)
    layout = RunLayout(killed_after_a_submit(tmp_path / "runs", demo))
    assert accounts(tmp_path) == {"planned": 9, "delivered": 0, "running": 9, "queued": 0, "review": 0, "owed": 0}
    summary = finish(demo)
    assert accounts(tmp_path) == {"planned": 9, "delivered": 9, "running": 0, "queued": 0, "review": 0, "owed": 0}
    found = found_in(layout)
    assert (summary["planned"], summary["delivered"], summary["owed"]) == (9, 9, 0)
    assert all(found["gold", kernel].solved and found["gold", kernel].faster for kernel in KERNELS.split(","))
    assert all(found["noop", kernel].solved for kernel in KERNELS.split(","))
    assert all(found["stumbler", kernel].solved for kernel in KERNELS.split(","))
    assert summary["grades"]["submit"] == 9
    with opened([layout.results]) as database:
        rows = database.exec_driver_sql("SELECT grade_id, setup, kind, outcome FROM grades").all()
        assert database.exec_driver_sql("PRAGMA foreign_key_check").all() == []
    assert acknowledged(layout)
    assert acknowledged(layout) <= {row[0] for row in rows}
    stumbled = [outcome for _, setup, kind, outcome in rows if (setup, kind) == ("stumbler", "score")]
    assert sorted(stumbled) == sorted(["wrong", "build_failed", "crashed"] * 3)
    assert not layout.merge_failed.exists()
    report = layout.report.read_text()
    assert all(verdict.grade_id in report for verdict in found.values())


def killed_after_a_submit(runs, demo):
    """Kill rank 0's judge process once it has graded a submit; returns the run directory."""
    pause, deadline = threading.Event(), time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and demo.poll() is None:
        for layout in map(RunLayout, runs.glob("*")):
            if any(kind == "submit" for kind, _ in count_grades(layout.shard(0))):
                judge_of(demo.pid, layout.judge_config(0)).kill()
                return layout.root
        pause.wait(0.05)
    raise AssertionError("no submit was graded")


def judge_of(pid, config):
    """The judge process that serves a config file, behind the router that started it."""
    serving = family(pid, str(config))
    return next(process for process in family(pid, "bench.judge.app") if process in serving)
