"""Profiles on a GPU that this machine plays: the runner under a tool that is played, too, and what goes wrong there."""

import copy
import dataclasses
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from kernels import HONEST_HIP
from played import played_court, played_gpu
from test_emulated import RIGHT, axpy_hip
from test_gpu_grades import IN_TRITON

from bench import profile as profiling
from bench.court import Court
from bench.judge.schemas import Device, Language, Outcome, Preset, ProfileTool
from bench.profilers import GPU_PROFILERS
from bench.records import Lacking, ProfileOrder, ProfileReport

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")

SAMPLES = Path(__file__).parent / "samples/profilers"
# Runs the program behind its options; tells kernels if the program has asked for it, and fails where that fails.
NCU = """\
options=$*
while :; do
  case $1 in
    --log-file) log=$2; shift 2;;
    --csv) shift;;
    --*) shift 2;;
    *) break;;
  esac
done
{change}
said=$("$@" 2>&1)
code=$?
{{
  echo "==PROF== ncu $options"
  test $code = 0 || echo "==ERROR== The application returned an error code ($code)."
  case $said in *hipProfilerStart*) cat '{folder}/ncu.log';; *) echo "==WARNING== No kernels were profiled.";; esac
}} >"$log"
test $code = 0 || exit 1
"""
# Its trace is told alone; each pass has to run the program.
ROCPROFV3 = """\
while test "$1" != --; do test "$1" != --output-directory || folder=$2; shift; done
shift
"$@" && mkdir -p "$folder" && cp '{folder}/trace_kernel_stats.csv' "$folder"
"""
NO_LIBRARY = 'for one; do shift; case $one in */axpy.so) one=/dev/null;; esac; set -- "$@" "$one"; done'


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a program of a tool's name on PATH, with the samples beside it; a profile is of preset S."""

    def put(name: ProfileTool, script: str, change: str = "") -> None:
        of_gpus, folder = GPU_PROFILERS[name], tmp_path / "bin"
        shutil.copytree(SAMPLES / name, folder)
        for path in folder.rglob("*_kernel_stats.csv"):
            shutil.copy(path, folder)
        program = folder / of_gpus.program
        program.write_text("#!/bin/sh\n" + script.format(folder=folder, change=change))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        monkeypatch.setitem(GPU_PROFILERS, name, dataclasses.replace(of_gpus, preset=Preset.S))

    return put


def profiled(
    source: str, tool: ProfileTool = ProfileTool.NCU, language: Language = Language.HIP, court: Court | None = None
) -> ProfileReport | Lacking:
    order = ProfileOrder(kernel="axpy", language=language, source=source, tool=tool, seed="07")
    return profiling.profile(order, court or played_court())


@pytest.mark.parametrize("language", [Language.HIP, Language.CUDA])
def test_ncu_counts_one_call_of_a_runner(language: Language, tool: Callable[..., None]) -> None:
    tool(ProfileTool.NCU, NCU)
    found = profiled(HONEST_HIP, language=language)
    assert isinstance(found, ProfileReport) and found.outcome is Outcome.SOLVED, found
    assert found.report.startswith("ncu: 1,100,000 nanoseconds in 1 call of axpy at preset S (n=")
    assert "\nrms_rows takes 91 % of the time on the GPU: begin there\n" in found.report
    for option in ("--clock-control none", "--profile-from-start off", "--set detailed"):
        assert option in found.report
    assert found.counters is not None and (found.counters.calls, found.counters.unit) == (1, "nanoseconds")


@pytest.mark.skipif(not (find_spec("torch") and find_spec("triton")), reason="torch and triton are not installed")
def test_a_kernel_in_triton_is_rehearsed_and_then_shown(tool: Callable[..., None]) -> None:
    tool(ProfileTool.NCU, NCU)
    found = profiled(IN_TRITON, language=Language.TRITON, court=played_court())
    assert isinstance(found, ProfileReport) and found.outcome is Outcome.SOLVED, found
    assert found.counters is not None and found.counters.total == 1_100_000


def test_a_tool_watches_a_runner_in_every_pass(tool: Callable[..., None]) -> None:
    tool(ProfileTool.ROCPROFV3, ROCPROFV3)
    gpu = copy.copy(played_gpu())
    gpu.kit = dataclasses.replace(gpu.kit, device=Device.HIP)
    found = profiled(HONEST_HIP, ProfileTool.ROCPROFV3, court=dataclasses.replace(played_court(), gpu=gpu))
    assert isinstance(found, ProfileReport) and found.outcome is Outcome.SOLVED, found
    assert "note:" not in found.report
    assert "kc_fill" not in found.report.partition("what rocprofv3 wrote")[0]


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (axpy_hip(RIGHT.replace("i < n", "i < n - 1")), Outcome.WRONG),
        (axpy_hip("mistake"), Outcome.BUILD_FAILED),
        (axpy_hip(before="#include <unistd.h>", launch="sleep(0);"), Outcome.POLICY),
    ],
    ids=["wrong", "mistake", "sleep"],
)
def test_what_fails_without_the_tool_is_not_run_under_it(
    source: str, outcome: Outcome, tool: Callable[..., None], tmp_path: Path
) -> None:
    tool(ProfileTool.NCU, "exit 3")
    found = profiled(source)
    assert isinstance(found, ProfileReport) and (found.outcome, found.report) == (outcome, "")


@pytest.mark.parametrize(
    ("change", "outcome", "says"),
    [
        (NO_LIBRARY, Outcome.CRASHED, "it passed a call by itself, but ended under ncu (exit code 1)"),
        ("sleep 60", Outcome.TIMEOUT, "it took more than 3 s under ncu at preset S"),
        ("exit 3", Outcome.JUDGE_FAULT, "ncu could not profile the call (exit code 3)"),
        ("set -- false", Outcome.JUDGE_FAULT, "ncu could not profile the call (exit code 1)"),
    ],
    ids=["crash", "hang", "tool", "runner"],
)
def test_what_fails_under_the_tool_alone_is_told(
    change: str, outcome: Outcome, says: str, tool: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(ProfileTool.NCU, NCU, change)
    monkeypatch.setattr(profiling, "WALL_S", 3 if change.startswith("sleep") else 60)
    found = profiled(HONEST_HIP)
    assert isinstance(found, ProfileReport) and found.outcome is outcome, found
    assert says in found.detail["message"]


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        (ProfileTool.NCU, "==ERROR== ERR_NVGPUCTRPERM - The user", "NVreg_RestrictProfilingToAdminUsers=0"),
        (ProfileTool.NCU, "==ERROR== Nsight Compute failed to connect to the CUDA driver", "update either"),
        (ProfileTool.NCU, "failed because a driver resource was unavailable.", "something else counts on this GPU"),
        (ProfileTool.ROCPROFV3, "", "rocprofv3 needs a GPU of AMD; this judge's device is cuda; use isa or ncu"),
    ],
    ids=["permission", "driver", "other", "vendor"],
)
def test_what_a_judge_lacks_is_said_with_the_remedy(
    name: ProfileTool, words: str, says: str, tool: Callable[..., None]
) -> None:
    tool(name, f"echo '{words}'; exit 1")
    found = profiled(HONEST_HIP, name)
    assert isinstance(found, Lacking) and says in found.why


def test_a_judge_without_the_tool_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert profiled(HONEST_HIP) == Lacking(why=GPU_PROFILERS[ProfileTool.NCU].lacking())
