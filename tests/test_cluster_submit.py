"""Submitting: snapshots that nothing reaches, command lines for Slurm, a queue that is asked first, and accounts."""

import json
import os
import shutil
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from goldens import check_golden
from typer.testing import CliRunner

from bench.errors import ConfigError, EnvironmentFault, ExitCode, UsageError
from bench.judge.schemas import Language, Preset, Problem, SetupRecord
from cluster.commands import study_jobs
from cluster.commands.local_job import Done
from cluster.commands.study import app
from cluster.job.documents import write_json
from cluster.job.endings import Cause
from cluster.job.launched import Launched
from cluster.job.layout import RunLayout
from cluster.job.state import Phase, StateFile
from cluster.job.summary import Ending, Item, OwedClass, Standing, Summary
from cluster.slurm import slurm_environment
from cluster.study.briefing import given_to
from cluster.study.explained import origins_of_env
from cluster.study.places import layers_root
from cluster.study.problems import read_problems
from cluster.study.queue import QueuedJob, QueueState, parse_queue, sbatch_argv
from cluster.study.render import Choices, build, write
from cluster.study.settings import read_settings
from cluster.study.snapshots import Snapshot, snapshot
from cluster.study.status import Part, Planned, Run, account
from cluster.study.studies import Study, read_study
from cluster.study.systems import choose_system
from cluster.study.wave import read_wave

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STUDY = """\
study: mine
question: Do hints help?
experiment: short
tag: axpy,sgemm
models: [sonnet45]
treatments: [none, ours]
repeats: 2
control: {treatment: none}
"""
SETUPS = ["short-sonnet45-c", "short-sonnet45-c-ours"]
SBATCH = """#!/bin/sh
env | grep -c '^SBATCH_' >> "$FAKE/leaked"
echo "$*" >> "$FAKE/sbatch"
if [ -e "$FAKE/refuse" ] && [ "$(wc -l < "$FAKE/sbatch")" -gt 1 ]; then
  echo "sbatch: error: no such partition" >&2
  exit 1
fi
echo "sbatch: a warning" >&2
echo "$((100 + $(wc -l < "$FAKE/sbatch")));cluster"
"""
SQUEUE = """#!/bin/sh
echo "$*" >> "$FAKE/squeue"
if [ -e "$FAKE/down" ]; then echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; fi
if [ -e "$FAKE/queue" ]; then cat "$FAKE/queue"; fi
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An operator's own folder of experiments, on a machine whose Slurm is two scripts."""
    folder, fake = tmp_path / "experiments", tmp_path / "fake"
    (folder / "studies").mkdir(parents=True)
    (folder / "studies" / "mine.yaml").write_text(STUDY)
    shutil.copytree(layers_root() / "treatments" / "hints", folder / "treatments" / "ours")
    fake.mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("FAKE", str(fake))
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(folder))
    monkeypatch.setenv("KCOURT_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("SBATCH_PARTITION", "")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-of-a-test")
    for variable in ("KCOURT_SYSTEM", "KCOURT_SYSTEMS_FILE", "SLURM_CLUSTER_NAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


def kcourt_study(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def calls(home, program):
    path = home.parent / "fake" / program
    return path.read_text().splitlines() if path.exists() else []


def tree(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


# Plan


def test_plan_prints_one_table_and_writes_env_and_problems_files_alone(home):
    before = tree(home.parent)
    done = kcourt_study("plan", "mine", "--system", "beverin", "--time", "5:00:00")
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.output.splitlines() if line.lstrip().startswith("short-")]
    numbers = ["2", "x", "2", "0", "+", "1", "+", "1", "05:00:00", "10.0"]
    assert rows == [[SETUPS[0], *numbers, "(control)"], [SETUPS[1], *numbers, SETUPS[0]]]
    assert "2 setups, 8 problems, at most 20.0 node-hours" in done.output
    assert "anthropic (ANTHROPIC_API_KEY) would see up to 8 agents at once, from 2 setups" in done.output
    new = {f"experiments/{file}" for setup in SETUPS for file in (f".env.{setup}", f"problems-{setup}.jsonl")}
    assert tree(home.parent) - before == new


def test_the_shell_entry_plans_and_submits_only_when_told(home):
    entry = layers_root().parent / "cluster" / "submit.sh"
    words = [entry, "mine", "--system", "beverin"]
    planned = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert "2 setups, 8 problems" in planned.stdout, planned.stderr
    assert calls(home, "sbatch") == []
    submitted = subprocess.run([*words, "--submit"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert submitted.returncode == 0, submitted.stderr
    assert len(calls(home, "sbatch")) == 2


def test_a_folder_of_ones_own_hides_no_study_that_ships(home):
    assert {"mine", "demo"} <= {row["study"] for row in json.loads(kcourt_study("list", "--json").output)["studies"]}
    shown = json.loads(kcourt_study("show", "mine", "--json").output)
    assert (shown["setups"], shown["kernels"], shown["control"]) == (SETUPS, ["axpy", "sgemm"], "treatment: none")
    assert "control      treatment: none" in kcourt_study("show", "mine").output


def test_a_harness_that_is_not_installed_is_noted_before_anything_waits_in_the_queue(home):
    (home / "studies" / "mine.yaml").write_text(f"{STUDY}harnesses: [claude_cod]\n")
    planned = kcourt_study("plan", "mine", "--system", "beverin").output
    assert "note: no harness 'claude_cod' is installed here" in planned and "did you mean 'claude_code'?" in planned


def test_two_studies_that_share_a_setup_are_told_apart(home):
    other = STUDY.replace("mine", "other").replace("axpy,sgemm", "nbody")
    (home / "studies" / "other.yaml").write_text(other)
    assert "note:" not in kcourt_study("plan", "mine", "--system", "beverin").output
    planned = kcourt_study("plan", "other", "--system", "beverin").output
    assert f"note: {SETUPS[0]} is also a setup of study 'mine', whose env and problems files are replaced" in planned
    status = json.loads(kcourt_study("status", "mine", "--system", "beverin", "--json").output)
    assert {slot["kernel"] for slot in status["slots"]} == {"axpy", "sgemm"}


def test_a_study_that_cannot_be_read_hides_no_other(home):
    (home / "studies" / "torn.yaml").write_text("study: [")
    listed = kcourt_study("list").output
    assert "cannot be read" in listed and "Do hints help?" in listed


def test_plan_in_json_has_the_table_and_what_to_know(home):
    found = json.loads(kcourt_study("plan", "mine", "--system", "beverin", "--json").output)
    setup = found["setups"][1]
    assert (setup["kernels"], setup["slots"], setup["nodes"]["total"]) == (2, 2, 2)
    assert setup["node_hours"] == pytest.approx(2 * setup["wall_s"] / 3600)
    assert setup["compares_with"] == SETUPS[0]
    assert found["accounts"] == [{"provider": "anthropic", "key_env": "ANTHROPIC_API_KEY", "agents": 8, "setups": 2}]
    assert (found["problems"], found["warnings"]) == (8, [])


def test_a_training_tier_is_warned_of_and_wants_a_word(home):
    tier = ("--set", "INFERENCE_SERVICE_TIER=contributor", "--system", "beverin")
    before = tree(home)
    refused = kcourt_study("submit", "mine", *tier)
    assert isinstance(refused.exception, UsageError)
    assert "--accept-training-tier" in str(refused.exception)
    assert (calls(home, "sbatch"), tree(home)) == ([], before)
    assert "warning: anthropic trains on what agents send" in kcourt_study("plan", "mine", *tier).output
    assert kcourt_study("submit", "mine", *tier, "--accept-training-tier").exit_code == 0
    assert len(calls(home, "sbatch")) == 2


def test_a_key_that_is_not_exported_is_named_and_one_that_is_gets_into_no_file(home, monkeypatch):
    assert kcourt_study("submit", "mine", "--system", "beverin").exit_code == 0
    files = [path for folder in (home, home.parent / "fake") for path in folder.rglob("*") if path.is_file()]
    assert not any(b"secret-of-a-test" in path.read_bytes() for path in files)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    refused = kcourt_study("submit", "mine", "--system", "beverin")
    assert isinstance(refused.exception, ConfigError)
    assert "ANTHROPIC_API_KEY is not set" in str(refused.exception)


@pytest.mark.parametrize("key", ["SETUP", "PROBLEMS_FILE", "MODEL", "EXPERIMENT"])
def test_what_makes_a_setup_is_not_set_on_a_command_line(home, key):
    done = kcourt_study("plan", "mine", "--set", f"{key}=x")
    assert isinstance(done.exception, ConfigError)
    assert f"--set {key}: " in str(done.exception)


# Snapshots


def rendered(home, **changes):
    study = read_study("mine").model_copy(update=changes)
    return write(build(study, home, Choices(choose_system({}, "beverin"))))


def content(made):
    files = [made.env, made.problems, *(path for path in made.launch.rglob("*") if path.is_file())]
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--system", "beverin", "--run-root", "elsewhere"], "say --set RUN_ROOT=FOLDER"),
        (["--system", "beverin", "--local"], "keep one"),
    ],
    ids=["run-root", "two-systems"],
)
def test_what_would_be_dropped_is_refused(home, words, says):
    refused = kcourt_study("submit", "mine", *words)
    assert isinstance(refused.exception, UsageError) and says in str(refused.exception)
    assert tree(home) == {"studies/mine.yaml", *(name for name in tree(home) if name.startswith("treatments/"))}


def test_what_a_plan_was_told_need_not_be_said_again(home, monkeypatch):
    (home / "site.yaml").write_text("ours: {launcher: slurm}\n")
    monkeypatch.setenv("KCOURT_SYSTEMS_FILE", str(home / "site.yaml"))
    planned = kcourt_study(
        "plan", "mine", "--system", "ours", "--gpus-per-node", "4", "--set", f"RUN_ROOT={home / 'r'}"
    )
    assert planned.exit_code == 0, planned.output
    seen = kcourt_study("status", "mine", "--system", "ours", "--json")
    assert seen.exit_code == 0, seen.exception
    origins = origins_of_env(home / f".env.{SETUPS[1]}", choose_system(os.environ, "ours"))
    assert origins["TREATMENT"][-1].value == "ours"


def test_a_snapshot_is_read_only_and_whole(home):
    setup = rendered(home)[1]
    made = snapshot(setup, NOW)
    assert made.env.name.startswith("short-sonnet45-c-ours-20260102T030405Z-")
    assert made.env.parent == home / ".rendered"
    assert {stat.S_IMODE(path.stat().st_mode) for path in content(made)} == {0o400}
    assert any(path.is_relative_to(made.launch) for path in content(made))
    settings = read_settings(made.env)
    assert settings.problems_file == made.problems
    assert tuple(read_problems(made.problems)) == setup.problems
    assert settings.record == setup.settings.record


def test_a_later_render_or_edit_cannot_reach_a_snapshot(home):
    made = snapshot(rendered(home)[1], NOW)
    before = content(made)
    for page in (home / "treatments" / "ours").rglob("*.md"):
        page.write_text("Something else entirely.\n")
    changed = snapshot(rendered(home, tag="nbody", settings={"PRESET": "XL"})[1], NOW)
    assert changed.env != made.env
    assert content(made) == before
    given = given_to(made.env, read_settings(made.env), read_problems(made.problems))
    assert not any(b"Something else" in text for text in given.values())


def test_the_same_setup_has_the_same_hash_and_another_one_has_not(home):
    first, again = (snapshot(setup, NOW) for setup in (rendered(home)[0], rendered(home)[0]))
    assert first.env == again.env
    assert snapshot(rendered(home, repeats=3)[0], NOW).env != first.env


def test_a_scripted_plan_that_is_a_file_goes_with_its_snapshot(tmp_path):
    scripted = Study.model_validate(
        {
            **{"study": "replay", "question": "?", "tag": "axpy", "control": "replay"},
            "settings": {"HARNESS": "scripted", "INFERENCE_NODES": 0, "AGENT_SCRIPT": "plan.json"},
            "setups": {"replay": {}},
        }
    )
    (tmp_path / "plan.json").write_text('{"axpy": []}')
    setup = build(scripted, tmp_path, Choices(choose_system({}, "local")))[0]
    made = snapshot(setup, NOW)
    (tmp_path / "plan.json").unlink()
    assert read_wave([made.env]).setups[0].settings.agent_script == made.script


# Slurm


def test_the_command_line_is_golden(home):
    setup = rendered(home)[1]
    made = Snapshot(setup.name, Path("/e/.rendered/short-sonnet45-c-ours-20260102T030405Z-01234567.env"))
    environ = {"PATH": "/bin", "HOME": "/h", "ANTHROPIC_API_KEY": "secret", "OTHER_KEY": "x", "SLURM_NTASKS": "4"}
    argv = sbatch_argv(setup.shape, [made], Path("/k/.scratch/logs"), setup.settings, environ)
    argv[-3:-1] = [Path(word).name for word in argv[-3:-1]]
    check_golden("sbatch-command.txt", "\n".join(argv) + "\n")


def test_submit_makes_one_job_a_setup_of_a_snapshot_each(home, monkeypatch):
    monkeypatch.setenv("SBATCH_TIMELIMIT", "1:00:00")
    done = kcourt_study("submit", "mine", "--system", "beverin")
    assert done.exit_code == 0, done.output
    lines = calls(home, "sbatch")
    assert len(lines) == 2
    for line, setup in zip(lines, SETUPS, strict=True):
        words = line.split()
        env = Path(words[-1])
        assert env.parent == home / ".rendered" and env.name.startswith(setup)
        assert {"--parsable", f"--job-name={setup}", "--time=01:00:00"} <= {*words}
        assert f"--output={home.parent / 'scratch'}/logs/services-%j.out" in words
    assert (home.parent / "scratch" / "logs").is_dir()
    lines = done.output.splitlines()
    assert [line.split(",")[0] for line in lines[:2]] == [f"{SETUPS[0]}: job 101", f"{SETUPS[1]}: job 102"]
    watched = [Path(line.removeprefix("to watch the first one: kcourt watch ")) for line in lines[2:]]
    assert [(run.is_absolute(), run.name) for run in watched] == [(True, "101")]
    assert set(calls(home, "leaked")) == {"0"}


def test_a_setup_that_waits_or_runs_is_not_submitted_twice_unless_asked(home):
    (home.parent / "fake" / "queue").write_text(f"77 RUNNING {SETUPS[0]}\n78 PENDING other\n")
    done = kcourt_study("submit", "mine", "--system", "beverin", "--json")
    jobs = json.loads(done.stdout)["jobs"]
    assert [(job["setup"], job["job"], job["state"]) for job in jobs] == [
        (SETUPS[0], "77", "running"),
        (SETUPS[1], "101", "queued"),
    ]
    assert jobs[0]["snapshot"] is None
    assert len(calls(home, "sbatch")) == 1
    assert "left out, job 77 is running; --again" in kcourt_study("submit", "mine", "--system", "beverin").output
    kcourt_study("submit", "mine", "--system", "beverin", "--again")
    assert len(calls(home, "sbatch")) == 4


def test_the_setups_of_a_wave_share_a_job_and_each_is_found_in_the_queue(home):
    (home / "studies" / "mine.yaml").write_text(f"{STUDY}wave: true\n")
    assert "2 setups in 1 job, 8 problems" in kcourt_study("plan", "mine", "--system", "beverin").output
    done = kcourt_study("submit", "mine", "--system", "beverin", "--json")
    assert {job["job"] for job in json.loads(done.stdout)["jobs"]} == {"101"}
    (line,) = calls(home, "sbatch")
    words = line.split()
    assert f"--job-name={','.join(SETUPS)}" in words
    assert [Path(word).name.startswith(setup) for word, setup in zip(words[-2:], SETUPS, strict=True)] == [True, True]
    (home.parent / "fake" / "queue").write_text(f"101 RUNNING {','.join(SETUPS)}\n")
    kcourt_study("submit", "mine", "--system", "beverin")
    assert len(calls(home, "sbatch")) == 1


def test_a_refusal_names_the_jobs_that_are_there_already(home):
    (home.parent / "fake" / "refuse").touch()
    done = kcourt_study("submit", "mine", "--system", "beverin")
    assert isinstance(done.exception, EnvironmentFault)
    said = str(done.exception)
    assert "no such partition" in said and "submitted before it: 101" in said and SETUPS[1] in said


def test_nothing_is_submitted_while_the_queue_cannot_be_read(home):
    (home.parent / "fake" / "down").touch()
    done = kcourt_study("submit", "mine", "--system", "beverin")
    assert isinstance(done.exception, EnvironmentFault)
    assert "Unable to contact" in str(done.exception)
    assert calls(home, "sbatch") == []


def test_without_slurm_the_missing_program_is_named(home, monkeypatch):
    monkeypatch.setenv("PATH", str(home))
    done = kcourt_study("submit", "mine", "--system", "beverin")
    assert isinstance(done.exception, EnvironmentFault)
    assert "'squeue' was not found" in str(done.exception)


def test_wait_follows_the_jobs_and_says_how_they_ended(home, monkeypatch):
    monkeypatch.setattr(study_jobs, "LOOK_EVERY_S", 0.01)
    done = kcourt_study("submit", "mine", "--system", "beverin", "--wait")
    assert done.exit_code == ExitCode.SERVICE_LOST  # the jobs are gone, and left no summary
    assert "8 planned = 0 delivered + 0 running + 0 queued + 0 review + 8 owed" in done.output


def test_many_jobs_are_followed_by_one_question_and_seldom_after_a_while(home, monkeypatch):
    queue, now, pauses = home.parent / "fake" / "queue", [0.0], []

    def sleep(seconds):
        pauses.append(seconds)
        now[0] += seconds
        if now[0] > 3600:
            queue.write_text("")

    monkeypatch.setattr(study_jobs.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(study_jobs.time, "sleep", sleep)
    queue.write_text("101 RUNNING another\n102 PENDING yet another\n")
    kcourt_study("submit", "mine", "--system", "beverin", "--wait")
    assert (
        len(calls(home, "squeue")) == len(pauses) + 3
    )  # before the first submit, after the last look, for the accounts
    assert pauses[-100:] == [study_jobs.LOOK_EVERY_S] * 100
    assert len(pauses) < 150


@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("7 PENDING a-c\n", [("7", "a-c", QueueState.QUEUED)], id="waits"),
        pytest.param("7 COMPLETING a\n8 CONFIGURING b\n", [("7", "a", "running"), ("8", "b", "queued")], id="others"),
        pytest.param("7 COMPLETED a\n8 NODE_FAIL b\n", [], id="ended"),
        pytest.param("9_[1-4] PENDING an array\n", [("9_[1-4]", "an array", "queued")], id="array"),
        pytest.param("squeue: warning: something odd\n", [], id="warning"),
    ],
)
def test_the_queue_is_read_from_squeue(listing, expected):
    assert [(job.job_id, job.name, job.state) for job in parse_queue(listing)] == expected


def test_slurm_is_not_told_of_the_job_that_the_caller_runs_in():
    environ = {"SLURM_JOB_ID": "1", "SBATCH_ACCOUNT": "a", "SLURM_CONF": "/c", "PATH": "/bin", "SQUEUE_FORMAT": "%i"}
    assert slurm_environment(environ) == {"SLURM_CONF": "/c", "PATH": "/bin"}


# Accounts

RECORD = SetupRecord(setup="a", study="s")


def planned(*kernels):
    return Planned(RECORD, [Problem(setup="a", kernel=kernel, language=Language.C) for kernel in kernels])


def run(*items, job="1", record=RECORD):
    return Run(RunLayout(Path("/runs") / job), {"a": record}, items, lives=False)


def item(standing, owed=None, kernel="axpy"):
    return Item("a", kernel, 0, standing, owed=owed, why="why")


QUEUED, RUNNING = (QueuedJob("5", "a", state) for state in QueueState)
OWED = item(Standing.OWED, OwedClass.BUDGET)


@pytest.mark.parametrize(
    ("runs", "queue", "part", "owed"),
    [
        pytest.param([], {}, Part.OWED, OwedClass.INFRA, id="never-run"),
        pytest.param([], {"a": QUEUED}, Part.QUEUED, None, id="queued"),
        pytest.param([], {"a": RUNNING}, Part.RUNNING, None, id="running"),
        pytest.param([run(OWED)], {}, Part.OWED, OwedClass.BUDGET, id="owed"),
        pytest.param([run(OWED)], {"a": QUEUED}, Part.QUEUED, None, id="owed-and-queued-again"),
        pytest.param([run(item(Standing.DELIVERED))], {"a": RUNNING}, Part.DELIVERED, None, id="delivered-stays"),
        pytest.param([run(item(Standing.DELIVERED)), run(OWED, job="2")], {}, Part.DELIVERED, None, id="any-run"),
        pytest.param([run(OWED), run(item(Standing.REVIEW), job="2")], {}, Part.REVIEW, None, id="review"),
        pytest.param(
            [run(item(Standing.OWED, OwedClass.INFRA)), run(OWED, job="2")], {}, Part.OWED, "budget", id="latest-blame"
        ),
        pytest.param([run(item(Standing.UNMERGED))], {}, Part.OWED, OwedClass.INFRA, id="unmerged"),
        pytest.param(
            [run(item(Standing.DELIVERED), record=RECORD.model_copy(update={"preset": Preset.S}))],
            {},
            Part.OWED,
            OwedClass.INFRA,
            id="another-identity",
        ),
    ],
)
def test_what_a_slot_counts_as(runs, queue, part, owed):
    (slot,) = account("s", [planned("axpy")], runs, queue).slots
    assert (slot.part, slot.owed) == (part, owed)
    assert part is Part.DELIVERED or slot.why


def test_planned_is_the_sum_of_its_parts():
    runs = [
        run(
            item(Standing.DELIVERED),
            item(Standing.REVIEW, kernel="gelu"),
            item(Standing.OWED, OwedClass.BUDGET, "nbody"),
        )
    ]
    accounts = account("s", [planned("axpy", "gelu", "nbody", "sgemm")], runs, {})
    assert accounts.total.line == "4 planned = 1 delivered + 0 running + 0 queued + 1 review + 2 owed"
    assert accounts.total.owed_by_class == {"budget": 1, "infra": 1}


def test_a_run_that_died_before_its_summary_is_owed_and_says_what_to_do(home):
    setup = rendered(home)[0]
    layout = RunLayout(home.parent / "runs" / "local-20260101T000000000Z")
    launched = Launched(job_id=layout.job_id, ranks=1, setups={setup.name: setup.settings.record})
    write_json(layout.plan, launched.model_dump(mode="json"))
    layout.problems.write_text(setup.problems_text)
    words = ("status", "mine", "--system", "beverin", "--run-root", home.parent / "runs")
    assert f"`kcourt job collect {layout.root}` does so" in kcourt_study(*words).output
    write_json(layout.summary, {"cause": "finished"})
    damaged = kcourt_study(*words)
    assert isinstance(damaged.exception, ConfigError)
    assert "summary.json: " in str(damaged.exception)


@pytest.mark.parametrize(("pid", "part"), [(os.getpid(), "running"), (1 << 30, "owed")], ids=["lives", "was-killed"])
def test_a_local_job_runs_as_long_as_its_process(home, pid, part):
    setup = rendered(home)[0]
    layout = RunLayout(home.parent / "runs" / "local-20260101T000000000Z")
    launched = Launched(job_id=layout.job_id, ranks=1, setups={setup.name: setup.settings.record})
    write_json(layout.plan, launched.model_dump(mode="json"))
    layout.problems.write_text(setup.problems_text)
    StateFile(layout).note(Phase.WORKING)
    write_json(layout.state, json.loads(layout.state.read_text()) | {"pid": pid})
    words = ("status", "mine", "--system", "beverin", "--run-root", home.parent / "runs", "--json")
    assert json.loads(kcourt_study(*words).output)["setups"][setup.name][part] == 4


def test_status_accounts_for_a_study_that_nobody_has_run(home):
    (home.parent / "fake" / "queue").write_text(f"77 RUNNING {SETUPS[0]}\n78 PENDING {SETUPS[1]}\n")
    found = json.loads(kcourt_study("status", "mine", "--system", "beverin", "--json").output)
    assert {part: found[part] for part in ("planned", *Part)} == {
        **{"planned": 8, "delivered": 0, "running": 4, "queued": 4, "review": 0, "owed": 0}
    }
    assert found["setups"][SETUPS[0]]["running"] == 4
    (home.parent / "fake" / "queue").unlink()
    done = kcourt_study("status", "mine", "--system", "beverin")
    assert "8 planned = 0 delivered + 0 running + 0 queued + 0 review + 8 owed" in done.output
    slots = "axpy slot 0, sgemm slot 0, axpy slot 1, sgemm slot 1"
    assert f"owed infra: {SETUPS[0]} {slots}: no job has been run for it" in done.output


# This machine


def test_setups_that_share_a_job_run_in_one_and_the_others_each_in_theirs(home, monkeypatch):
    launched = []

    def live(envs, overrides, run_root, console):
        launched.append([env.name.split("-2")[0] for env in envs])
        ending = Ending(Cause.FINISHED, "", ExitCode.DEGRADED if len(launched) == 2 else ExitCode.OK, 1.0)
        return Done(RunLayout(home / "run"), Summary("run", ending, (), {}, {}, []))

    monkeypatch.setattr(study_jobs, "live", live)
    (home / "studies" / "mine.yaml").write_text(
        "study: mine\nquestion: q\ntag: axpy\ncontrol: a\nsettings: {HARNESS: scripted, INFERENCE_NODES: 0}\n"
        "setups: {a: {script: gold}, b: {script: gold, settings: {AGENTS_PER_NODE: 2}}, c: {script: noop}}\n"
    )
    done = kcourt_study("submit", "mine", "--local", "--json")
    assert launched == [["a", "c"], ["b"]]
    assert done.exit_code == ExitCode.DEGRADED
    assert [job["exit"] for job in json.loads(done.stdout)["jobs"]] == ["ok", "degraded"]
    assert calls(home, "sbatch") == calls(home, "squeue") == []
