"""What agents are told of a kernel for GPUs: sizes, device, waves and build command, by the device of their judge."""

import json

import pytest

from agent.prompts.render import shipped_sections
from bench.config import JudgeConfig
from bench.judge.admission import admit
from bench.judge.caller import identify
from bench.judge.contract import contract
from bench.judge.refusal import Refused
from bench.judge.schemas import GPU_LANGUAGES, Device, Kind, Language, Preset, graded_on
from bench.task import find_task
from cluster.study.briefing import contract_of, enforced_for, launch_material, told
from cluster.study.problems import make_problem
from cluster.study.settings import JobSettings
from cluster.study.treatments import read_treatment

AXPY = find_task("axpy")
CPU_XL, GPU_XL, CPU_S = (AXPY.size(Preset.XL)["n"], AXPY.gpu_track.size(Preset.XL)["n"], AXPY.size(Preset.S)["n"])
JUDGES = [Device.CPU, Device.CUDA, Device.HIP]


@pytest.mark.parametrize(
    ("judge", "language", "device", "timed_to", "largest", "waves", "on", "built_by"),
    [
        (Device.CPU, Language.C, "cpu", CPU_XL, CPU_XL, [], "", "gcc"),
        (Device.CPU, Language.HIP, "emulated", None, CPU_S, [32, 64], "a CPU plays, where nothing is timed", "g++"),
        (Device.CPU, Language.CUDA, None, GPU_XL, GPU_XL, [32, 64], "", "nvcc -arch=native"),
        (Device.CUDA, Language.HIP, "cuda", GPU_XL, GPU_XL, [32, 64], "NVIDIA (H200); its waves have 32", "nvcc -x cu"),
        (Device.CUDA, Language.CUDA, "cuda", GPU_XL, GPU_XL, [32, 64], "NVIDIA (H200)", "nvcc -arch=native"),
        (Device.CUDA, Language.TRITON, "cuda", GPU_XL, GPU_XL, [32, 64], "NVIDIA (H200)", "none: axpy_triton.py"),
        (Device.HIP, Language.HIP, "hip", GPU_XL, GPU_XL, [32, 64], "AMD (H200); its waves have 64", "hipcc"),
    ],
)
def test_a_contract_is_that_of_the_device(judge, language, device, timed_to, largest, waves, on, built_by):
    found = contract(AXPY, language, Preset.XL, judge, "H200" if judge is not Device.CPU else "")
    assert CPU_S < CPU_XL < GPU_XL
    assert found["device"] == device and found["waves"] == waves
    assert found["timed_sizes"] == ({"n": [timed_to * 3 // 4, timed_to]} if timed_to else {})
    assert found["sizes"] == {"n": [1, largest]}
    assert on in found["graded_on"] and bool(on) == bool(found["graded_on"])
    assert found["build"].startswith(built_by)
    json.dumps(found)


def setup(**settings):
    chosen = JobSettings(setup="s", kernels="axpy", hardware="h200", **settings)
    return chosen, make_problem(chosen, AXPY)


@pytest.mark.parametrize("device", ["cpu", "cuda", "hip"])
def test_a_prompt_says_what_grades_and_what_is_timed(device):
    settings, problem = setup(device=device, language="hip", agent_start="hip")
    text = told(launch_material(settings, read_treatment("none")), settings, problem).prompt
    timed = f"* `n`: 1 to {GPU_XL}, timed at {GPU_XL * 3 // 4} to {GPU_XL}\n"
    assert (timed in text, f"* `n`: 1 to {CPU_S}\n" in text) == (device != "cpu", device == "cpu")
    assert f"It is graded on {contract_of(settings, problem)['graded_on']}.\n" in text
    assert f"    {enforced_for(settings, problem).build}\n" in text
    assert ("that it is timed at" in text) == (device != "cpu")
    assert "task.graded_on" in shipped_sections()["task"]


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("language", sorted({*GPU_LANGUAGES, Language.C}))
def test_a_judge_takes_the_languages_of_its_device(tmp_path, judge, language):
    config = JudgeConfig(shard=tmp_path / "s.db", log_dir=tmp_path, cache_dir=tmp_path, device=judge)
    body = json.dumps({"kernel": "axpy", "language": language, "source": "x"}).encode()
    takes = any(language in device.languages for device in graded_on(judge))
    try:
        assert admit(Kind.SCORE, body, {}, identify({}, config, None), config).language is language and takes
    except Refused as refused:
        assert not takes and refused.code == "wrong_language" and f"not graded on {judge}" in refused.message


def test_show_has_the_sizes_of_both_tracks(kcourt):
    ran, found = kcourt("task", "show", "axpy"), kcourt("task", "show", "axpy", "--json").json
    assert f"n={CPU_XL}" in ran.out and "on a GPU, right with waves of 32 and 64 lanes:" in ran.out
    assert f"n={GPU_XL}" in ran.out.partition("on a GPU")[2]
    assert (found["sizes"]["XL"], found["gpu"]["sizes"]["XL"]) == ({"n": CPU_XL}, {"n": GPU_XL})
    assert found["gpu"]["task_hash"] == AXPY.gpu_track.hash != found["task_hash"]


@pytest.mark.parametrize(
    ("device", "says"), [("cuda", f"n: {GPU_XL * 3 // 4} to {GPU_XL}"), ("cpu", "where nothing is timed")]
)
def test_stage_shows_the_sizes_of_a_judges_device(kcourt, device, says):
    ran = kcourt("task", "stage", "axpy", "--start", "none", "--language", "hip", "--device", device)
    assert says in ran.out, ran.out
