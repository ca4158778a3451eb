"""`kcourt owed`: run directories of every kind are read or named, the sums hold, and declarations are rows."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, run_program
from results_rows import ROOT, episode, origin, report

from bench.cli import run
from bench.errors import ConfigError, EnvironmentFault, ShardError, UsageError
from bench.judge.schemas import End, Kind, Outcome, SetupRecord
from bench.results.merge import merge
from bench.results.shard import Shard
from bench.seeds import write_root
from bench.task import find_task
from cluster.job.collect import collect
from cluster.job.documents import write_json, write_public
from cluster.job.launched import Launched
from cluster.job.layout import RunLayout
from cluster.job.state import Phase, StateFile
from cluster.study.problems import make_problem, render_problems
from cluster.study.settings import read_settings

KERNELS = ("axpy", "sgemm", "gelu")
ENV = """\
SETUP={setup}
STUDY=s
MODEL=m
LANGUAGE=c
HARNESS=scripted
AGENT_SCRIPT_RULE=noop
PRESET=M
PROBLEMS_FILE=problems-{setup}.jsonl
GPUS_PER_NODE=0
INFERENCE_NODES=0
"""


@dataclass(frozen=True)
class Home:
    """An operator's folder of experiments with one rendered setup, `one`, and a folder of runs."""

    experiments: Path
    runs: Path

    @property
    def record(self) -> SetupRecord:
        return read_settings(self.experiments / ".env.one").record

    def render(self, setup: str, slots: int = 1) -> None:
        """Three kernels in so many repeat slots."""
        env, problems = self.experiments / f".env.{setup}", self.experiments / f"problems-{setup}.jsonl"
        write_public(env, ENV.format(setup=setup))
        settings = read_settings(env)
        every = [make_problem(settings, find_task(name), slot) for slot in range(slots) for name in KERNELS]
        write_public(problems, render_problems(every))

    def run(
        self, job_id: str, made: Sequence[tuple[str, End | None, dict[str, Any] | None]], merged: bool = True
    ) -> RunLayout:
        """A run with one rank. Of each kernel: how its episode ended (None: no record), and what was submitted."""
        layout = RunLayout(self.runs / job_id)
        layout.create()
        write_root(layout.secret, ROOT)
        write_json(layout.plan, Launched(job_id=job_id, ranks=1, setups={"one": self.record}).model_dump(mode="json"))
        with Shard.open(layout.shard(0), job_id, 0, {"one": self.record}) as shard:
            for number, (kernel, end, submit) in enumerate(made):
                label = f"one.n0.p{number}.w{number}"
                asked = {"requested_at": f"2026-01-{int(job_id):02}T00:00:{number:02}"}
                if submit is not None:
                    found = {"task_hash": find_task(kernel).hash} | submit
                    kind = {
                        "kind": found.pop("kind", Kind.SUBMIT),
                        "kernel": kernel,
                        "reason": found.pop("reason", None),
                    }
                    shard.record(origin(label, **asked, **kind), report(f"{job_id}-{number}", label, **found))
                if end:
                    record = episode(label, kernel=kernel, end=end, started_at=asked["requested_at"])
                    write_public(layout.episode(0, number, number) / "tokens.json", record.model_dump_json())
        if merged:
            collect(layout)
        return layout


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path / "experiments", tmp_path / "runs")
    home.experiments.mkdir()
    home.runs.mkdir()
    home.render("one")
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(home.experiments))
    monkeypatch.setenv("KCOURT_SYSTEM", "local")
    return home


@pytest.fixture
def owed(kcourt: Callable[..., Any], home: Home) -> Callable[..., Any]:
    """Runs `kcourt owed collect … --json`; what a slot counts as is under `found`, by kernel."""

    def collected(*words: str | Path) -> Any:
        ran = kcourt("owed", "collect", *(words or ("one",)), "--runs", home.runs, "--json")
        assert ran.code == 0, ran.err
        sums = ran.json
        assert sums["planned"] == sums["delivered"] + sums["owed"] + sums["running"] + sums["review"]
        found = {slot["kernel"]: " ".join(filter(None, (slot["part"], slot["class"]))) for slot in sums["slots"]}
        return sums | {"found": found, "err": ran.err}

    return collected


WRONG_THEN = {"outcome": Outcome.WRONG, "task_hash": "an earlier task"}


@pytest.mark.parametrize("merged", [True, False], ids=["merged", "shards"])
def test_a_run_is_read_whether_it_was_merged_or_not(home: Home, owed: Callable[..., Any], merged: bool) -> None:
    layout = home.run("1", [("axpy", End.SUBMITTED, {}), ("sgemm", End.TIME, None), ("gelu", None, WRONG_THEN)], merged)
    found = owed()
    assert found["found"] == {"axpy": "delivered", "sgemm": "owed budget", "gelu": "owed task"}
    assert found["damage"] == []
    slots = {slot["kernel"]: slot for slot in found["slots"]}
    assert slots["sgemm"] | {"why": ""} == {
        **{"setup": "one", "kernel": "sgemm", "slot": 0, "part": "owed", "class": "budget", "why": ""},
        **{"job": "1", "episode": "one.n0.p1.w1", "end": "time", "end_code": 124, "grade": None},
        "log": str(layout.episode(0, 1, 1)),
    }
    assert slots["gelu"]["grade"] == "1-2"


def test_a_rerun_counts_and_one_without_an_answer_leaves_the_earlier(home: Home, owed: Callable[..., Any]) -> None:
    home.run("1", [("axpy", End.SUBMITTED, {}), ("sgemm", End.TIME, None), ("gelu", End.TIME, None)])
    home.run("2", [("axpy", End.TIME, None), ("sgemm", End.SUBMITTED, {}), ("gelu", End.CRASH, None)], merged=False)
    assert owed()["found"] == {"axpy": "delivered", "sgemm": "delivered", "gelu": "owed infra"}


def test_each_repeat_slot_is_owed_for_itself_and_listed(home: Home, kcourt: Callable[..., Any]) -> None:
    home.render("one", slots=2)
    home.run("1", [("axpy", End.SUBMITTED, {})])
    ran = kcourt("owed", "collect", "--runs", home.runs, "--lists")
    assert "6 planned = 1 delivered + 5 owed + 0 running + 0 review" in ran.out
    listed = home.experiments / "owed" / "one.txt"
    assert listed.read_text() == "sgemm 0\ngelu 0\naxpy 1\nsgemm 1\ngelu 1\n"
    home.render("one")
    home.run("2", [("sgemm", End.SUBMITTED, {}), ("gelu", End.SUBMITTED, {"outcome": Outcome.WRONG})])
    kcourt("owed", "collect", "--runs", home.runs, "--lists")
    assert not listed.exists(), "a list of what is owed no longer would be run again"


def test_a_setup_that_runs_is_not_planned_again(
    home: Home, owed: Callable[..., Any], kcourt: Callable[..., Any]
) -> None:
    layout = home.run("1", [("axpy", None, {}), ("sgemm", None, {"kind": Kind.SCORE})], merged=False)
    StateFile(layout).note(Phase.WORKING)
    found = owed()
    assert found["found"] == {"axpy": "delivered", "sgemm": "running", "gelu": "running"}
    assert found["skipped"] == {"one": "job 1 runs"}
    write_json(layout.state, json.loads(layout.state.read_text()) | {"pid": 1 << 30})
    assert owed()["found"]["sgemm"] == "owed infra"


@pytest.mark.parametrize(("state", "words"), [("RUNNING", "job 77 runs"), ("PENDING", "job 77 waits")])
def test_a_setup_in_the_queue_is_skipped_and_said(
    home: Home, kcourt: Callable[..., Any], tmp_path: Path, state: str, words: str
) -> None:
    ran = kcourt("owed", "collect", "one", "--runs", home.runs, env=squeue(tmp_path, f"echo 77 {state} other,one"))
    assert ran.code == 0, ran.err
    assert "3 planned = 0 delivered + 0 owed + 3 running + 0 review" in ran.out
    assert f"skipped: one: {words}" in ran.out


def test_nothing_is_called_owed_while_the_queue_cannot_be_read(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in squeue(tmp_path, "echo no controller >&2; exit 1").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentFault, match="squeue failed: no controller"):
        run(["owed", "collect", "one"])


def squeue(folder: Path, script: str) -> dict[str, str]:
    """Variables of a machine whose Slurm is a script."""
    program = folder / "bin" / "squeue"
    write_public(program, f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "KCOURT_SYSTEM": "beverin"}


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGE: dict[str, tuple[Callable[[RunLayout], Path], Callable[[Path], None]]] = {
    "half-a-database": (lambda run: run.results, half),
    "no-database-of-ours": (lambda run: run.results, lambda path: path.write_text("gone") and None),
    "half-a-plan": (lambda run: run.plan, half),
    "no-plan": (lambda run: run.plan, Path.unlink),
    "half-a-state": (lambda run: run.state, lambda path: path.write_text("{") and None),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_run_is_named_and_what_else_is_there_counts(home: Home, owed: Callable[..., Any], what: str) -> None:
    """The grades of a run are in its shards too, so that nothing is lost with one of its files."""
    home.run("1", [("sgemm", End.SUBMITTED, {})])
    layout = home.run("2", [("axpy", End.SUBMITTED, {}), ("gelu", End.TIME, None)])
    of, damaged = DAMAGE[what]
    damaged(of(layout))
    found = owed()
    assert found["found"] == {"axpy": "delivered", "sgemm": "delivered", "gelu": "owed budget"}
    assert len(found["damage"]) == 1 and str(of(layout)) in found["damage"][0]
    assert f"warning: {found['damage'][0]}" in found["err"]


@pytest.mark.parametrize("what", ["record", "shard"])
def test_what_a_run_without_its_merge_lost_is_named(home: Home, owed: Callable[..., Any], what: str) -> None:
    layout = home.run("1", [("axpy", End.SUBMITTED, {}), ("gelu", End.TIME, None)], merged=False)
    lost = layout.episode(0, 1, 1) / "tokens.json" if what == "record" else layout.shard(0)
    half(lost)
    found = owed()
    assert [str(lost) in text for text in found["damage"]] == [True]
    expected = {"record": ("delivered", "owed infra"), "shard": ("owed infra", "owed budget")}[what]
    assert (found["found"]["axpy"], found["found"]["gelu"]) == expected


def test_where_nothing_can_be_read_the_exit_code_says_so(home: Home, kcourt: Callable[..., Any]) -> None:
    layout = home.run("1", [("axpy", None, {})], merged=False)
    half(layout.shard(0))
    ran = kcourt("owed", "collect", "one", "--runs", home.runs)
    assert (ran.code, str(layout.shard(0)) in ran.err) == (75, True)
    assert "3 planned = 0 delivered + 3 owed" in ran.out


def test_a_setup_of_another_definition_does_not_count_and_that_is_said(home: Home, owed: Callable[..., Any]) -> None:
    home.run("1", [("axpy", End.SUBMITTED, {})])
    env = home.experiments / ".env.one"
    env.write_text(env.read_text().replace("PRESET=M", "PRESET=S"))
    found = owed()
    assert found["found"]["axpy"] == "owed infra"
    assert found["notes"] == [
        f"{home.runs / '1'}: setup 'one' was another one (preset was M, is S): its answers do not count"
    ]
    env.write_text(env.read_text().replace("PRESET=S", "PRESET=M").replace("STUDY=s", "STUDY=another"))
    assert owed()["found"]["axpy"] == "delivered", "a setup belongs to its experiment, not to one study"


def test_a_merged_database_counts_beside_the_runs_and_only_once(
    home: Home, owed: Callable[..., Any], tmp_path: Path
) -> None:
    one = home.run("1", [("axpy", End.SUBMITTED, {"suspect": "too fast"}), ("gelu", End.SUBMITTED, {})])
    kept = shutil.copy(one.results, tmp_path / "kept.db")
    shutil.rmtree(one.root)
    home.run("2", [("sgemm", End.SUBMITTED, {})])
    assert owed()["delivered"] == 1
    expected = {"axpy": "review", "sgemm": "delivered", "gelu": "delivered"}
    assert owed("one", "--db", kept)["found"] == owed("one", "--db", kept, "--db", kept)["found"] == expected
    with pytest.raises(ShardError, match="no such file"):
        run(["owed", "collect", "one", "--db", str(tmp_path / "nowhere.db")])


def test_a_final_verdict_in_another_database_replaces_that_of_the_answer(
    home: Home, owed: Callable[..., Any], tmp_path: Path
) -> None:
    home.run("1", [("axpy", End.SUBMITTED, {"task_hash": "an earlier task"})])
    facts = {"of_grade_id": "1-0", "setup": "one", "requested_at": "2026-02-01"}
    with Shard.open(tmp_path / "regraded.db", "9", 0, {"one": home.record}) as shard:
        now = {"task_hash": find_task("axpy").hash, "outcome": Outcome.WRONG}
        shard.record(origin(None, Kind.FINAL, **facts), report("final", None, **now))
    assert owed()["found"]["axpy"] == "delivered"
    assert owed("one", "--db", tmp_path / "regraded.db")["found"]["axpy"] == "owed task"


def test_a_declaration_is_a_row_and_so_is_its_withdrawal(
    home: Home, owed: Callable[..., Any], kcourt: Callable[..., Any]
) -> None:
    layout = home.run("1", [("axpy", End.SUBMITTED, {})])
    before = layout.results.read_bytes()
    words = ("owed", "declare", "one", "axpy", "--runs", home.runs, "--why", "the clock was wrong")
    said = kcourt(*words, "--class", "budget", "--json").json
    slot = next(slot for slot in owed()["slots"] if slot["kernel"] == "axpy")
    assert (slot["class"], slot["why"], slot["grade"]) == (
        "budget",
        "declared: budget: the clock was wrong",
        said["grade"],
    )
    assert kcourt(*words, "--withdraw").code == 0
    assert owed()["found"]["axpy"] == "delivered"
    assert layout.results.read_bytes() == before
    merge(home.runs / "all.db", [*(home.runs / "declared").glob("*.db"), layout.results])


def test_what_an_operator_ruled_counts(home: Home, owed: Callable[..., Any], kcourt: Callable[..., Any]) -> None:
    layout = home.run("1", [("axpy", End.SUBMITTED, {}), ("sgemm", End.SUBMITTED, {"suspect": "too fast"})])
    to = ("--db", layout.results, "--why", "it was read")
    assert kcourt("disqualify", "1-0", *to).code == kcourt("accept", "1-1", *to).code == 0
    assert owed()["found"] == {"axpy": "owed infra", "sgemm": "delivered", "gelu": "owed infra"}
    assert kcourt("disqualify", "1-0", *to, "--withdraw").code == kcourt("accept", "1-1", *to, "--withdraw").code == 0
    assert owed()["found"] == {"axpy": "delivered", "sgemm": "review", "gelu": "owed infra"}


def test_two_operators_declare_at_once(
    home: Home, owed: Callable[..., Any], kcourt_process: Callable[..., Any]
) -> None:
    home.run("1", [(kernel, End.SUBMITTED, {}) for kernel in KERNELS])

    def declare(kernel: str) -> Any:
        return kcourt_process("owed", "declare", "one", kernel, "--class", "task", "--why", "x", "--runs", home.runs)

    with ThreadPoolExecutor() as operators:
        assert [ran.code for ran in operators.map(declare, KERNELS[:2])] == [0, 0]
    assert owed()["found"] == {"axpy": "owed task", "sgemm": "owed task", "gelu": "delivered"}


READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99
shift; exec "$@"
"""


def test_runs_on_a_read_only_file_system_are_read_and_nothing_is_declared_there(home: Home) -> None:
    home.run("1", [("axpy", End.SUBMITTED, {})])
    home.run("2", [("sgemm", End.SUBMITTED, {})], merged=False)
    kcourt = Path(sys.executable).with_name("kcourt")

    def mounted(*words: str) -> Ran:
        shell = ("unshare", "-rm", "sh", "-c", READ_ONLY, "sh", home.runs, kcourt, "owed")
        return run_program(*shell, *words, "--runs", home.runs, "--json")

    read = mounted("collect", "one")
    if read.code in (1, 99) and not read.out:
        pytest.skip(f"nothing can be mounted read-only here: {read.err}")
    assert (read.code, read.json["delivered"], read.json["damage"]) == (0, 2, [])
    refused = mounted("declare", "one", "axpy", "--class", "task", "--why", "x")
    assert refused.code == 75
    assert "Read-only file system" in refused.err


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["collect", "nosuch"], ConfigError, "no setup 'nosuch' is rendered"),
        (["declare", "one", "axpi", "--class", "task", "--why", "x"], UsageError, "did you mean 'axpy'"),
        (["declare", "one", "axpy:3", "--class", "task", "--why", "x"], UsageError, "has the slots 0; write axpy:0"),
        (["declare", "one", "axpy", "--why", "x"], UsageError, "--class infra, budget or task, or --withdraw"),
        (["declare", "one", "axpy", "--class", "task", "--why", " "], UsageError, "--why is empty"),
    ],
    ids=["setup", "kernel", "slot", "class", "why"],
)
def test_a_wrong_name_is_said(home: Home, words: list[str], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        run(["owed", *words])


def test_without_a_rendered_setup_the_next_step_is_named(home: Home) -> None:
    (home.experiments / ".env.one").unlink()
    with pytest.raises(ConfigError, match="kcourt study plan STUDY"):
        run(["owed", "collect"])


def test_declarations_of_two_definitions_of_a_setup_do_not_meet(home: Home, owed: Callable[..., Any]) -> None:
    home.run("1", [("axpy", End.SUBMITTED, {})])
    words = ("declare", "one", "axpy", "--class", "task", "--why", "x", "--runs", str(home.runs))
    env = home.experiments / ".env.one"
    text = env.read_text()
    env.write_text(text.replace("PRESET=M", "PRESET=S"))
    run(["owed", *words])
    env.write_text(text)
    assert owed()["found"]["axpy"] == "delivered"
    run(["owed", *words])
    assert owed()["found"]["axpy"] == "owed task"
