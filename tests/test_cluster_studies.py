"""Studies: what is rendered can be run, scripts follow from the controls, and mistakes are named."""

import json
import shutil
import stat
import time
from pathlib import Path

import pytest
import yaml
from goldens import check_golden

from bench.errors import ConfigError
from bench.judge.schemas import Language, Preset
from bench.task import find_task
from cluster.study import render as render_module
from cluster.study.layers import known_layers
from cluster.study.places import layers_root
from cluster.study.render import Choices, build, write
from cluster.study.scripts import ScriptRule, make_script
from cluster.study.studies import Axis, Study, cells, compares_with, known_studies, read_study
from cluster.study.systems import choose_system
from cluster.study.wave import read_wave

LOCAL = Choices(choose_system({}, "local"))


def study(**changes):
    """Three scripted setups on three kernels."""
    values = {
        "study": "small",
        "question": "?",
        "tag": "sgemm,spmv_csr,nbody",
        "control": "noop",
        "settings": {"HARNESS": "scripted", "INFERENCE_NODES": 0, "PRESET": "S", "SANDBOX_ALLOW": "limits"},
        "setups": {
            "gold": {"script": "gold"},
            "noop": {"script": "noop", "settings": {"MODEL": "idle"}},
            "stumbler": {"script": "stumbler", "kernels": 2},
        },
    }
    return Study.model_validate(values | changes)


CROSSED = {
    "study": "crossed",
    "question": "?",
    "experiment": "short",
    "tag": "demo",
    "models": ["sonnet45", "qwen3coder"],
    "treatments": ["none", "hints"],
    "temperatures": [None, 0.7],
    "control": {"treatment": "none"},
}


def written(folder, text, name="mine"):
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return read_study(name, folder)


@pytest.fixture
def rendered(tmp_path):
    return [setup.env for setup in write(build(study(), tmp_path, LOCAL))]


# Setups that are written out


def test_a_rendered_study_is_a_wave_that_can_be_run(rendered):
    wave = read_wave(rendered)
    assert [setup.name for setup in wave.setups] == ["gold", "noop", "stumbler"]
    assert [len(setup.problems) for setup in wave.setups] == [3, 3, 2]
    assert {problem.setup for problem in wave.problems} == {"gold", "noop", "stumbler"}
    assert wave.records["noop"].model == "idle"
    assert wave.records["gold"].preset is Preset.S
    assert wave.records["gold"].study == "small"


def test_rendered_files_are_the_owners_alone(rendered):
    folder = rendered[0].parent
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == dict.fromkeys(
        [name for setup in ("gold", "noop", "stumbler") for name in (f".env.{setup}", f"problems-{setup}.jsonl")], 0o600
    )


def test_rendering_again_leaves_unchanged_files_alone(tmp_path, rendered):
    rendered[0].write_text("changed")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    write(build(study(), tmp_path, LOCAL))
    changed = [path for path, time_ns in before.items() if path.stat().st_mtime_ns != time_ns]
    assert changed == [rendered[0]]
    assert "SETUP=gold" in rendered[0].read_text()


def test_overrides_win_over_every_layer(tmp_path):
    setups = write(build(study(), tmp_path, Choices(LOCAL.system, overrides={"PRESET": "XL"})))
    assert {record.preset for record in read_wave([setup.env for setup in setups]).records.values()} == {Preset.XL}
    assert [origin.layer for origin in setups[0].origins["PRESET"]] == ["study small", "--set"]


@pytest.mark.parametrize("treatment", ["none", "hints", "profile"])
def test_a_treatment_of_the_command_line_is_what_agents_get(tmp_path, treatment):
    settled = study(settings={"HARNESS": "scripted", "INFERENCE_NODES": 0, "TREATMENT": "skills"})
    for setup in build(settled, tmp_path, Choices(LOCAL.system, overrides={"TREATMENT": treatment})):
        assert (setup.settings.treatment, setup.treatment.name) == (treatment, treatment)


def steps_of(rule, kernel):
    return make_script(rule, [find_task(kernel)], Language.C, find_task(kernel).folder / "made").steps[kernel]


def test_gold_scores_and_submits_a_fast_solution():
    best = str(find_task("sgemm").controls("fast")[0])
    assert steps_of(ScriptRule.GOLD, "sgemm") == [{"tool": "score", "file": best}, {"tool": "submit", "file": best}]


def test_noop_submits_the_start_material():
    start = str(find_task("sgemm").baselines[0])
    assert steps_of(ScriptRule.NOOP, "sgemm") == [{"tool": "submit", "file": start}]


def test_in_hip_baseline_and_controls_are_those_for_gpus():
    task = find_task("sgemm")
    for rule, file in ((ScriptRule.NOOP, task.gpu_baselines[0]), (ScriptRule.GOLD, task.folder / "controls")):
        script = make_script(rule, [task], Language.HIP, Path("unused"))
        sent = {step["file"] for step in json.loads(script.text)["sgemm"]}
        assert all(name.startswith(str(file)) and name.endswith(".hip") for name in sent) and sent


def test_the_stumbler_is_wrong_then_broken_then_crashing_then_right(tmp_path):
    script = make_script(ScriptRule.STUMBLER, [find_task("sgemm")], Language.C, tmp_path)
    steps = json.loads(script.text)["sgemm"]
    assert [step["tool"] for step in steps] == ["score", "score", "score", "submit"]
    names = [step["file"].rsplit("/", 1)[1] for step in steps]
    assert names[0].startswith("wrong_")
    assert names[1:3] == ["sgemm-broken.c", "sgemm-crashing.c"]
    assert names[3].startswith(("fast_", "honest_"))
    assert "void sgemm(const float *A" in script.candidates[tmp_path / "sgemm-crashing.c"]
    assert list(tmp_path.iterdir()) == []


# Setups that are crossed


def test_axes_are_crossed_in_the_order_of_the_file_and_named_by_what_varies():
    names = [cell.setup for cell in cells(Study.model_validate(CROSSED))]
    assert names[:4] == [
        "short-sonnet45-c",
        "short-sonnet45-c-t0.7",
        "short-sonnet45-c-hints",
        "short-sonnet45-c-hints-t0.7",
    ]
    assert len(names) == len(set(names)) == 8


def test_a_setup_is_compared_with_the_control_that_differs_in_the_declared_axis_alone():
    crossed = Study.model_validate(CROSSED)
    every = cells(crossed)
    pairs = {cell.setup: compares_with(cell, crossed, every) for cell in every}
    assert pairs["short-qwen3coder-c-hints-t0.7"] == "short-qwen3coder-c-t0.7"
    assert pairs["short-qwen3coder-c-t0.7"] is None
    points = {cell.setup: cell.point for cell in every}
    for setup, control in pairs.items():
        if control:
            assert {axis for axis in Axis if points[setup][axis] != points[control][axis]} == {Axis.TREATMENT}


def test_a_crossed_setup_has_its_layers_and_its_axes(tmp_path):
    setup = build(Study.model_validate(CROSSED), tmp_path, LOCAL)[3]
    record = setup.settings.record
    assert (record.setup, record.model, record.treatment) == ("short-sonnet45-c-hints-t0.7", "sonnet45", "hints")
    assert (record.study, record.experiment, record.temperature) == ("crossed", "short", 0.7)
    assert setup.settings.inference_source == "service"
    assert setup.settings.agent_timeout_seconds == 3600
    assert list(tmp_path.iterdir()) == []


def test_repeats_are_slots_of_each_kernel_and_each_kernel_comes_once_before_any_twice(tmp_path):
    crossed = Study.model_validate({**CROSSED, "tag": "sgemm,axpy", "repeats": 2})
    setup = build(crossed, tmp_path, LOCAL)[0]
    assert [(problem.kernel, problem.slot) for problem in setup.problems] == [
        *(("sgemm", 0), ("axpy", 0)),
        *(("sgemm", 1), ("axpy", 1)),
    ]
    assert (setup.kernels, setup.slots) == (2, 2)


def test_the_problems_file_is_golden(tmp_path):
    crossed = Study.model_validate({**CROSSED, "tag": "sgemm,axpy", "repeats": 2})
    check_golden("problems-short-sonnet45-c.jsonl", build(crossed, tmp_path, LOCAL)[0].problems_text)


def test_other_hardware_is_in_the_name_so_that_two_machines_share_no_setup(tmp_path):
    crossed = Study.model_validate(CROSSED)
    of_study, of_flag, of_system = (
        build(given, tmp_path, choices)[0]
        for given, choices in (
            (crossed.model_copy(update={"hardware": "h200"}), LOCAL),
            (crossed, Choices(LOCAL.system, hardware="h200")),
            (crossed, Choices(choose_system({}, "daint.alps"))),
        )
    )
    assert of_study.name == of_flag.name == "short-h200-sonnet45-c"
    assert (of_system.name, of_system.settings.hardware) == ("short-gh200-sonnet45-c", "gh200")
    assert of_study.settings.judge_edf == "kcourt-judge-h200"
    on_base = build(crossed, tmp_path, Choices(choose_system({}, "beverin")))[0]
    assert (on_base.name, on_base.settings.hardware) == ("short-sonnet45-c", "mi300")
    assert on_base.settings.gpus_per_node == 4


def test_a_kernel_that_is_not_written_in_a_language_is_left_out_and_named(tmp_path, monkeypatch):
    for name in ("axpy", "sgemm"):
        shutil.copytree(find_task(name).folder, tmp_path / "tasks" / "dense" / name)
    manifest = tmp_path / "tasks" / "dense" / "axpy" / "task.yaml"
    written = yaml.safe_load(manifest.read_text()) | {"languages": ["c"], "gpu": None}
    manifest.write_text(yaml.safe_dump(written))
    monkeypatch.setenv("KCOURT_TASKS_DIR", str(tmp_path / "tasks"))
    crossed = Study.model_validate({**CROSSED, "tag": "all", "languages": ["fortran"]})
    setup = build(crossed, tmp_path, LOCAL)[0]
    assert ([problem.kernel for problem in setup.problems], setup.left_out) == (["sgemm"], ("axpy",))


# Mistakes


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"settings": {"JUDGE_PROT": 1}}, "did you mean 'JUDGE_PORT'", id="unknown-key"),
        pytest.param({"setups": {"noop": {"script": "stumbler", "kernels": 9}}}, "9 are needed", id="too-few"),
        pytest.param({"tag": "demmo"}, "'demmo' is no kernel, suite or tag", id="tag"),
        pytest.param({"hardware": "mi301"}, "no hardware 'mi301'.*did you mean 'mi300'", id="hardware"),
    ],
)
def test_a_study_that_cannot_be_rendered(tmp_path, changes, expected):
    with pytest.raises(ConfigError, match=expected):
        write(build(study(**changes), tmp_path, LOCAL))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"models": ["sonnet46"]}, "model 'sonnet46' has no layer", id="model"),
        pytest.param({"experiment": "shrt"}, "did you mean 'short'", id="experiment"),
        pytest.param({"treatments": ["none", "hint"]}, "did you mean 'hints'", id="treatment"),
        pytest.param({"settings": {"AGENT_TIMEOUT_SECONDS": "soon"}}, "AGENT_TIMEOUT_SECONDS", id="value"),
    ],
)
def test_an_axis_that_names_nothing(tmp_path, changes, expected):
    with pytest.raises(ConfigError, match=expected):
        write(build(Study.model_validate(CROSSED | changes), tmp_path, LOCAL))
    assert list(tmp_path.iterdir()) == []


HEAD = "study: mine\nquestion: q\nexperiment: short\ntag: demo\nmodels: [sonnet45]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("study: [", "mine.yaml:1: not valid YAML", id="yaml"),
        pytest.param("study: mine", "question", id="missing"),
        pytest.param("- a", "mine.yaml:1: ", id="list"),
        pytest.param("study: é", "not UTF-8", id="not-utf8"),
        pytest.param(
            HEAD + "control: {treatment: none}\nmodells: [a]",
            ":7: modells: unknown key; did you mean 'models'",
            id="unknown-key",
        ),
        pytest.param(HEAD + "control: {treatmnt: none}", ":6: control.treatmnt: is no axis; .*treatment", id="axis"),
        pytest.param(HEAD + "control: {treatment: hints}", ":6: control.treatment: 'hints' is none of", id="value"),
        pytest.param(
            HEAD + "languages: [c, cpp]\ncontrol: {treatment: none}", "what varies is language", id="does-not-vary"
        ),
        pytest.param(HEAD + "control: noop", ":6: control: name one axis", id="no-axis"),
        pytest.param(HEAD + "control: {treatment: none}\ntreatments: [none, none]", ":7: treatments", id="twice"),
        pytest.param(HEAD + "control: {treatment: none}\nsetups: {a: {}}", ":5: models: .*not both", id="both"),
        pytest.param(HEAD + "control: {treatment: none}\nkernels: [axpy]", ":4: tag: .*not both", id="tag-twice"),
        pytest.param(
            HEAD + "control: {treatment: none}\nsettings: {LANGUAGE: c}", ":7: .*say it as 'languages'", id="axis-key"
        ),
        pytest.param(
            HEAD.replace("experiment: short\n", "") + "control: {treatment: none}", "experiment: name", id="experiment"
        ),
        pytest.param(
            "study: mine\nquestion: q\ntag: demo\nsetups: {a: {}}\ncontrol: b", ":5: control: 'b' is none", id="setup"
        ),
        pytest.param(
            HEAD.replace("mine", "other") + "control: {treatment: none}", "must be the file's name", id="name"
        ),
    ],
)
def test_a_broken_study_file_is_named(tmp_path, text, expected):
    (tmp_path / "mine.yaml").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=expected) as caught:
        read_study("mine", tmp_path)
    assert "mine.yaml" in str(caught.value)


def test_a_wrong_setting_is_named_with_its_line(tmp_path):
    found = written(tmp_path, HEAD + "control: {treatment: none}\nsettings:\n  PRESET: XXL\n")
    with pytest.raises(ConfigError, match=r"mine.yaml:8: PRESET: "):
        write(build(found, tmp_path / "out", LOCAL))


def test_an_unknown_study_names_the_nearest(tmp_path):
    (tmp_path / "demo.yaml").touch()
    with pytest.raises(ConfigError, match="did you mean 'demo'"):
        read_study("demmo", tmp_path)


# What ships


@pytest.mark.parametrize("name", known_studies())
def test_every_shipped_study_can_be_planned(tmp_path, name):
    found = read_study(name)
    setups = build(found, tmp_path, LOCAL)
    names = [setup.name for setup in setups]
    controls = [setup.name for setup in setups if setup.compares_with is None]
    assert controls
    assert {setup.compares_with for setup in setups} <= {*names, None}
    assert all(setup.problems for setup in setups)


def test_the_demo_study_ships():
    demo = read_study("demo")
    assert list(demo.setups) == ["gold", "noop", "stumbler"]
    assert demo.setups["stumbler"].kernels == 3
    assert demo.settings["PRESET"] == "M"


def test_two_hundred_setups_cost_little_more_than_their_files(tmp_path, monkeypatch):
    """Reading layers and treatments is paid once a study, not once a setup."""
    models = [name.removeprefix("model-") for name in known_layers(layers_root() / "layers") if "model-" in name][:2]
    many = {**CROSSED, "models": models, "temperatures": [step / 50 for step in range(50)]}
    read = []
    for name in ("read_treatment", "experiment_layers"):
        original = getattr(render_module, name)
        counted = lambda *words, name=name, original=original: (read.append((name, words)), original(*words))[1]  # noqa: E731
        monkeypatch.setattr(render_module, name, counted)
    start = time.process_time()
    setups = write(build(Study.model_validate(many), tmp_path, LOCAL))
    assert time.process_time() - start < 3
    assert len(setups) == 200
    assert len(read) == len(set(read)) == len(models) + len(CROSSED["treatments"])


# Waves


def test_setups_of_one_job_must_agree(tmp_path, rendered):
    rendered[1].write_text(rendered[1].read_text() + "AGENTS_PER_NODE=9\n")
    with pytest.raises(ConfigError, match="AGENTS_PER_NODE is 9, and 4"):
        read_wave(rendered)


def test_a_setup_is_given_once(rendered):
    with pytest.raises(ConfigError, match=r"'gold' is also that of"):
        read_wave([rendered[0], rendered[0]])


def test_an_unknown_harness_names_those_that_are_installed(tmp_path):
    env = tmp_path / ".env.x"
    env.write_text("SETUP=x\nHARNESS=scriptd\nKERNELS=axpy\n")
    with pytest.raises(ConfigError, match=r"unknown harness 'scriptd'; did you mean 'scripted'"):
        read_wave([env])


def test_a_script_that_is_not_there_is_named(tmp_path):
    env = tmp_path / ".env.x"
    env.write_text("SETUP=x\nHARNESS=scripted\nAGENT_SCRIPT=plan.json\nKERNELS=axpy\n")
    with pytest.raises(ConfigError, match=r"\.env\.x: HARNESS=scripted: .*plan\.json"):
        read_wave([env])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param("HARNESS=claude_code\nAGENT_SCRIPT_RULE=gold\n", "is for HARNESS=scripted", id="harness"),
        pytest.param("HARNESS=scripted\nAGENT_SCRIPT=p.json\nAGENT_SCRIPT_RULE=gold\n", "AGENT_SCRIPT", id="both"),
        pytest.param(
            "HARNESS=scripted\nLANGUAGE=fortran\nAGENT_SCRIPT_RULE=stumbler\n", "LANGUAGE is fortran", id="language"
        ),
    ],
)
def test_a_rule_that_does_not_fit_its_setup(tmp_path, lines, expected):
    env = tmp_path / ".env.x"
    env.write_text(f"SETUP=x\nKERNELS=axpy\n{lines}")
    with pytest.raises(ConfigError, match=expected):
        read_wave([env])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("{", r"problems.jsonl:2: ", id="json"),
        pytest.param('{"setup": "x", "kernel": "axpy"}', "language", id="missing"),
        pytest.param('{"setup": "y", "kernel": "axpy", "language": "c"}', "setup 'y'", id="other-setup"),
        pytest.param('{"setup": "x", "kernel": "axpi", "language": "c"}', "unknown kernel 'axpi'", id="kernel"),
    ],
)
def test_a_wrong_problem_is_named(tmp_path, line, expected):
    env = tmp_path / ".env.x"
    good = '{"setup": "x", "kernel": "axpy", "language": "c"}'
    (tmp_path / "problems.jsonl").write_text(f"{good}\n{line}\n")
    (tmp_path / "plan.json").write_text("{}")
    env.write_text("SETUP=x\nHARNESS=scripted\nAGENT_SCRIPT=plan.json\nPROBLEMS_FILE=problems.jsonl\n")
    with pytest.raises(ConfigError, match=expected):
        read_wave([env])


def test_setups_of_one_job_share_their_start_material(tmp_path):
    (tmp_path / "p.json").write_text("{}")
    for name, start in (("a", "c"), ("b", "numpy")):
        text = f"SETUP={name}\nHARNESS=scripted\nAGENT_SCRIPT=p.json\nKERNELS=axpy\nAGENT_START={start}\n"
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match="run two jobs"):
        read_wave([tmp_path / "a", tmp_path / "b"])
