"""Studies: what is rendered can be run, scripts follow from the controls, and mistakes are named."""

import json
import stat

import pytest

from bench.errors import ConfigError
from bench.judge.schemas import Language, Preset
from bench.task import find_task
from cluster.study.studies import Study, read_study, render_study
from cluster.study.wave import read_wave


def study(**changes):
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


@pytest.fixture
def rendered(tmp_path):
    return render_study(study(), tmp_path)


def script_of(env, setup):
    return json.loads((env.parent / ".rendered" / f"script-{setup}.json").read_text())


def test_a_rendered_study_is_a_wave_that_can_be_run(rendered):
    wave = read_wave(rendered)
    assert [setup.name for setup in wave.setups] == ["gold", "noop", "stumbler"]
    assert [len(setup.problems) for setup in wave.setups] == [3, 3, 2]
    assert {problem.setup for problem in wave.problems} == {"gold", "noop", "stumbler"}
    assert wave.records["noop"].model == "idle"
    assert wave.records["gold"].preset is Preset.S
    assert wave.records["gold"].study == "small"


def test_env_files_are_the_owners_alone(rendered):
    assert [stat.S_IMODE(env.stat().st_mode) for env in rendered] == [0o600] * 3
    assert [env.name for env in rendered] == [".env.gold", ".env.noop", ".env.stumbler"]


def test_gold_scores_and_submits_a_fast_solution(rendered):
    steps = script_of(rendered[0], "gold")["sgemm"]
    assert [step["tool"] for step in steps] == ["score", "submit"]
    assert steps[0]["file"] == steps[1]["file"] == str(find_task("sgemm").controls("fast")[0])


def test_noop_submits_the_start_material(rendered):
    task = find_task("sgemm")
    assert script_of(rendered[1], "noop")["sgemm"] == [{"tool": "submit", "file": str(task.baselines[0])}]


def test_the_stumbler_is_wrong_then_broken_then_crashing_then_right(rendered):
    script = script_of(rendered[2], "stumbler")
    assert len(script) == 2
    steps = script["sgemm"]
    assert [step["tool"] for step in steps] == ["score", "score", "score", "submit"]
    names = [step["file"].rsplit("/", 1)[1] for step in steps]
    assert names[0].startswith("wrong_")
    assert names[1:3] == ["sgemm-broken.c", "sgemm-crashing.c"]
    assert names[3].startswith(("fast_", "honest_"))
    crashing = (rendered[2].parent / ".rendered" / "stumbler" / "sgemm-crashing.c").read_text()
    assert "void sgemm(const float *A" in crashing
    assert all(step["file"].endswith(Language.C.suffix) for step in steps)


def test_overrides_reach_every_setup(tmp_path):
    envs = render_study(study(), tmp_path, {"PRESET": "XL"})
    assert {record.preset for record in read_wave(envs).records.values()} == {Preset.XL}


def test_rendering_twice_gives_the_same(tmp_path, rendered):
    before = [env.read_text() for env in rendered]
    assert [env.read_text() for env in render_study(study(), tmp_path)] == before


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"settings": {"JUDGE_PROT": 1}}, "nearest known key is JUDGE_PORT", id="unknown-key"),
        pytest.param({"setups": {"noop": {"script": "stumbler", "kernels": 9}}}, "9 are asked for", id="too-few"),
    ],
)
def test_a_study_that_cannot_be_rendered(tmp_path, changes, expected):
    with pytest.raises(ConfigError, match=expected):
        render_study(study(**changes), tmp_path)


def test_the_demo_study_ships():
    demo = read_study("demo")
    assert list(demo.setups) == ["gold", "noop", "stumbler"]
    assert demo.setups["stumbler"].kernels == 3
    assert demo.settings["PRESET"] == "M"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("study: [", "not valid YAML", id="yaml"),
        pytest.param("study: mine", "question", id="missing"),
        pytest.param("- a", "study", id="list"),
        pytest.param("study: é", "not UTF-8", id="not-utf8"),
    ],
)
def test_a_broken_study_file_is_named(tmp_path, text, expected):
    (tmp_path / "mine.yaml").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=expected) as caught:
        read_study("mine", tmp_path)
    assert "mine.yaml" in str(caught.value)


def test_an_unknown_study_names_the_nearest(tmp_path):
    (tmp_path / "demo.yaml").touch()
    with pytest.raises(ConfigError, match="did you mean 'demo'"):
        read_study("demmo", tmp_path)


def test_setups_of_one_job_must_agree(tmp_path, rendered):
    rendered[1].write_text(rendered[1].read_text() + "AGENTS_PER_NODE=9\n")
    with pytest.raises(ConfigError, match="AGENTS_PER_NODE is 9, and 4"):
        read_wave(rendered)


def test_a_setup_is_given_once(rendered):
    with pytest.raises(ConfigError, match="'gold' is also that of"):
        read_wave([rendered[0], rendered[0]])


def test_an_unknown_harness_names_those_that_are_installed(tmp_path):
    env = tmp_path / ".env.x"
    env.write_text("SETUP=x\nHARNESS=scriptd\nKERNELS=axpy\n")
    with pytest.raises(ConfigError, match="unknown harness 'scriptd'; installed ones: scripted"):
        read_wave([env])


def test_a_script_that_is_not_there_is_named(rendered):
    (rendered[0].parent / ".rendered" / "script-gold.json").unlink()
    with pytest.raises(ConfigError, match=r"\.env\.gold: HARNESS=scripted: .*script-gold\.json"):
        read_wave(rendered)


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
