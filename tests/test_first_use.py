"""`kcourt init` and `kcourt study import`: what they write can be planned, and nothing is overwritten unasked."""

import json
import re
from pathlib import Path

import pytest
import typer
from goldens import check_golden
from typer.testing import CliRunner, Result

from bench.errors import ConfigError, UsageError
from bench.judge.schemas import Language
from bench.task import select
from cluster.commands.init import app as init_app
from cluster.commands.study import app as study_app
from cluster.study.arena import import_study
from cluster.study.studies import read_study
from cluster.study.systems import choose_system

RUN = """agent:
  template: claude_code
  model: qwen3coder
  budget_mode: time
  timeout_seconds: 1800
  max_turns: 5
tasks:
  - hip2hip/GELU
  - triton2triton/vllm/triton_rms_norm
  - hip2hip/gpumode
  - torch2flydsl
target_gpu_model: MI300X
log_directory: logs
workspace_directory_prefix: workspace
evaluation_tools: {enabled: [gpu_asan]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder of experiments and a home of one's own, in an environment that says nothing."""
    for name in ("KCOURT_SYSTEM", "KCOURT_SYSTEMS_FILE", "SLURM_CLUSTER_NAME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def call(app: typer.Typer, *arguments: str | Path, answers: str | None = None) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], input=answers)


def init(*arguments: str, answers: str | None = None) -> str:
    done = call(init_app, *arguments, answers=answers)
    assert done.exit_code == 0, f"{done.output}{done.exception}"
    return done.output


def plan(name: str) -> list[str]:
    """Setups of a study that is planned by its name."""
    done = call(study_app, "plan", name, "--json")
    assert done.exit_code == 0, done.exception
    return [setup["setup"] for setup in json.loads(done.stdout)["setups"]]


# init


def test_a_laptop_needs_no_answers_and_no_site_file(folder):
    printed = init("--yes")
    assert printed.splitlines()[-1] == "  kcourt study plan first"
    assert [path.name for path in folder.rglob("*.yaml")] == ["first.yaml"]
    assert plan("first") == ["first-gold", "first-noop"]


def test_a_cluster_gets_a_site_file_and_a_study_that_is_planned(folder, monkeypatch):
    site = folder / "site.yaml"
    options = ["--system", "beverin", "--account", "g123", "--model", "qwen3coder", "--study", "two"]
    printed = init("--yes", "--site", str(site), *options, "--treatment", "skills")
    assert printed.splitlines()[-1] == f"  KCOURT_SYSTEMS_FILE={site} kcourt study plan two"
    check_golden("init-site.yaml", site.read_text())
    check_golden("init-study.yaml", (folder / "experiments" / "studies" / "two.yaml").read_text())
    monkeypatch.setenv("KCOURT_SYSTEMS_FILE", str(site))
    assert plan("two") == ["short-qwen3coder-c", "short-qwen3coder-c-skills"]


def test_questions_are_answered_in_turn(folder):
    printed = init(answers="mine\ng5\nlong\n8\nthree\naxpy\nqwen3coder\nhints\n")
    site = folder / "home" / ".config" / "kernelcourt" / "systems.yaml"
    assert f"export KCOURT_SYSTEMS_FILE={site}" in printed
    facts = choose_system({"KCOURT_SYSTEMS_FILE": str(site)}).facts
    assert (facts.account, facts.partition, facts.nodes.gpus, facts.launcher) == ("g5", "long", 8, "slurm")
    study = read_study("three")
    assert (study.tag, study.models, study.treatments) == ("axpy", ("qwen3coder",), ("none", "hints"))


def test_a_cluster_that_is_unknown_is_found_again(folder, monkeypatch):
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "new")
    init("--yes", "--gpus", "4", "--site", str(folder / "site.yaml"))
    monkeypatch.setenv("KCOURT_SYSTEMS_FILE", str(folder / "site.yaml"))
    system = choose_system({"KCOURT_SYSTEMS_FILE": str(folder / "site.yaml"), "SLURM_CLUSTER_NAME": "new"})
    assert (system.name, system.facts.clusters) == ("new", ("new",))
    before = (folder / "site.yaml").read_bytes()
    assert "site.yaml" not in init("--yes", "--study", "second")
    assert (folder / "site.yaml").read_bytes() == before


def test_another_system_than_the_guessed_one_is_named_in_the_command(folder, monkeypatch):
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "beverin")
    printed = init("--yes", "--system", "beverin-mi200", "--site", str(folder / "site.yaml"))
    assert "KCOURT_SYSTEM=beverin-mi200 kcourt study plan first" in printed


def test_nothing_is_overwritten_unasked(folder):
    init("--yes")
    study = folder / "experiments" / "studies" / "first.yaml"
    study.write_text("mine")
    done = call(init_app, "--yes", "--site", folder / "site.yaml", "--account", "x", "--system", "beverin")
    assert (study.read_text(), (folder / "site.yaml").exists()) == ("mine", False)
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception).startswith(f"{study}: there already; --force overwrites")
    init("--yes", "--force")
    assert study.read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        pytest.param([], 2, "nobody answers the question for --system; give it, or --yes", id="no-answer"),
        pytest.param(["--yes", "--study", "My Study"], 2, "such as my_study", id="name"),
        pytest.param(["--yes", "--tag", "dmo"], 2, "'dmo' is no kernel, suite or tag", id="tag"),
        pytest.param(["--yes", "--model", "qwen3"], 64, "did you mean 'qwen3coder'?", id="model"),
        pytest.param(["--yes", "--model", "gpt5", "--treatment", "hint"], 64, "did you mean 'hints'?", id="treatment"),
        pytest.param(["--yes", "--system", "mine"], 2, "--gpus: say how many", id="gpus"),
        pytest.param(["--yes", "--system", "lcoal"], 2, "a new system, did you mean 'local'?", id="system"),
        pytest.param(["--yes", "--system", "beverin", "--site", "/proc/x/y"], 64, "/proc/x/y: cannot be", id="site"),
    ],
)
def test_a_wrong_answer_is_refused_and_nothing_is_written(folder, arguments, code, expected):
    done = call(init_app, *arguments)
    assert isinstance(done.exception, UsageError)
    assert (done.exception.exit_code, expected in str(done.exception)) == (code, True)
    assert [*folder.rglob("*.yaml")] == []


def test_init_prints_one_object(kcourt, folder):
    found = kcourt("init", "--json", "--tag", "axpy").json
    assert found["next"] == "kcourt study plan first"
    assert [Path(path).name for path in found["written"]] == ["first.yaml"]


# Run configurations of AgentKernelArena


@pytest.fixture
def run(folder) -> Path:
    path = folder / "run.yaml"
    path.write_text(RUN)
    return path


def test_a_run_configuration_becomes_a_study(run):
    text, missing = import_study(run, "arena", Language.C, ["baseline", "hints"])
    check_golden("arena-study.yaml", text)
    # Which harnesses are installed is another matter.
    check_golden("arena-missing.txt", "".join(f"{line}\n" for line in missing if "harness" not in line))


def test_an_imported_study_is_planned(run):
    done = call(study_app, "import", run, "--language", "c", "--run-suffix", "baseline", "--run-suffix", "hints")
    assert done.exit_code == 0, done.exception
    assert "no counterpart: log_directory: " in done.stdout
    assert plan("run") == ["standard-qwen3coder-c", "standard-qwen3coder-c-hints"]
    assert isinstance(call(study_app, "import", run).exception, ConfigError)


def test_import_prints_one_object(run):
    done = call(study_app, "import", run, "--name", "other", "--json")
    found = json.loads(done.stdout)
    assert Path(found["written"]).name == "other.yaml"
    assert any("in every language of the study: hip, triton" in line for line in found["without_counterpart"])


@pytest.mark.parametrize(
    ("kind", "start", "language"),
    [
        ("hip2hip", "hip", "hip"),
        ("cuda2hip", "cuda", "hip"),
        ("torch2hip", "torch", "hip"),
        ("triton2triton", "triton", "triton"),
        ("torch2triton", "torch", "triton"),
        ("instruction2triton", "none", "triton"),
    ],
)
def test_a_kind_of_task_is_a_direction(run, kind, start, language):
    run.write_text(f"agent: {{template: codex, model: qwen3coder}}\ntasks: [{kind}/rmsnorm]\n")
    text, missing = import_study(run, "arena")
    assert f"languages: [{language}]" in text and f"AGENT_START: {start}" in text
    assert not any(kind in line for line in missing)


def test_kinds_that_start_from_other_material_are_named(run):
    text, missing = import_study(run, "arena")
    assert "AGENT_START: hip" in text
    named = "tasks: triton2triton: agents start there from triton, here from hip, as all of this study; import it alone"
    assert named in missing and not any("tasks: hip2hip:" in line for line in missing if "start there" in line)


def test_a_kernel_without_the_start_material_is_not_asked_for(run):
    kernel = next(task.name for task in select("all") if task.baselines and not task.triton_baseline)
    run.write_text(f"agent: {{template: claude_code, model: qwen3coder}}\ntasks: [triton2triton/{kernel}]\n")
    assert call(study_app, "import", run).exit_code == 0
    planned = call(study_app, "plan", "run")
    assert "0 kernels of" in str(planned.exception) and "start material triton" in str(planned.exception)


def test_a_study_of_one_direction_is_planned(run):
    run.write_text("agent: {template: claude_code, model: qwen3coder}\ntasks: [torch2triton/rmsnorm]\n")
    assert call(study_app, "import", run).exit_code == 0
    assert plan("run") == ["standard-qwen3coder-triton"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            RUN.replace("  - hip2hip/gpumode\n  - torch2flydsl\n", "  - all\n"), "tag: all", id="every-kernel"
        ),
        pytest.param(RUN.replace("MI300X", "H200"), "hardware: h200", id="hardware"),
        pytest.param(RUN.replace("claude_code", "geak_v4"), "harnesses: [geak]", id="registry-alias"),
        pytest.param(RUN.replace("max_turns: 5", "effort: high"), "efforts: [high]", id="effort"),
    ],
)
def test_what_has_a_counterpart_is_in_the_study(run, text, expected):
    run.write_text(text)
    assert expected in import_study(run, "arena")[0]


@pytest.mark.parametrize(
    ("text", "suffixes", "expected"),
    [
        pytest.param(RUN.replace("MI300X", "MI355X"), [], "MI355X has no profile in hardware.yaml", id="gpu"),
        pytest.param(RUN, ["with_mcp"], "treatments/with_mcp/treatment.yaml", id="suffix"),
        pytest.param(RUN.replace("qwen3coder", "opus"), [], "agent.model: 'opus' has no layer", id="model"),
        pytest.param(
            RUN.replace("claude_code", "cursr"), [], "cursr is no agent .*; did you mean 'cursor'", id="agent"
        ),
        pytest.param(RUN.replace("torch2flydsl", "hip2hi/x"), [], "did you mean 'hip2hip'", id="kind"),
        pytest.param(RUN + "resume: true\n", [], "resume: unknown here", id="key"),
    ],
)
def test_what_has_none_is_listed(run, text, suffixes, expected):
    run.write_text(text)
    missing = import_study(run, "arena", None, suffixes)[1]
    assert any(re.search(expected, line) for line in missing), missing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(RUN.replace("claude_code", "task_validator"), "kcourt task validate all", id="validator"),
        pytest.param("agent: {template: codex}\ntasks: [repository/rocprim]\n", "none of its tasks", id="no-kernel"),
        pytest.param("tasks: [all]\n", "agent: Field required", id="no-agent"),
        pytest.param("agent: {template: codex}\ntasks: all\n", ":2: tasks", id="tasks-no-list"),
        pytest.param("agent: [\n", ":2: not valid YAML", id="no-yaml"),
    ],
)
def test_what_is_no_study_is_refused(run, text, expected):
    run.write_text(text)
    with pytest.raises(ConfigError, match=f"^{run}.*{expected}"):
        import_study(run, "arena")
