"""Profilers of GPUs without a GPU: their command lines, what is read of their output, and how they fail."""

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import court

from bench.errors import EnvironmentFault, JudgeFault, UsageError
from bench.judge.schemas import Language, Preset, ProfileTool
from bench.process import Completed, Limits, run
from bench.profile import profile
from bench.profilers import GPU_PROFILERS, gpu_profilers
from bench.profilers.gpu import Findings, GpuVendor, Output, number, short_name, watch
from bench.profilers.gpu_report import told
from bench.profilers.rocprofv3 import limiter
from bench.records import Lacking, ProfileOrder
from bench.verdict import Rejected

# Written after the documentation: see the README there.
SAMPLES = Path(__file__).parent / "samples/profilers"
TOOLS = list(GPU_PROFILERS)
ROCPROFV3, ROCPROF_COMPUTE, NCU = TOOLS
PROGRAM = ("./replay", "3")
SIZES = {"rows": 4096, "cols": 8192}


def said(tool: ProfileTool, found: Findings) -> str:
    return told("rmsnorm", tool, found, 2, Preset.XL, SIZES).report


def here(argv: Sequence[str], limit_s: float, folder: Path) -> Completed:
    return run(argv, limits=Limits(wall_s=limit_s), cwd=folder)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Findings]:
    """Profiles nothing under a program of the tool's name, which does what a line of shell says."""

    def watch_it(tool: ProfileTool, script: str, limit_s: float = 60, in_call: bool = False) -> Findings:
        program, folder = tmp_path / "bin" / GPU_PROFILERS[tool].program, tmp_path / "profile"
        for made in (program.parent, folder):
            made.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")
        return watch(GPU_PROFILERS[tool], PROGRAM, folder, partial(here, folder=folder), lambda: in_call, limit_s)

    return watch_it


def copied(tool: ProfileTool) -> str:
    """Leaves the samples where the tool writes: all of them in the profile's folder, the tables on its output."""
    return f"cp -r '{SAMPLES / tool}/.' .; test ! -e analysis.txt || cat '{SAMPLES / tool}/analysis.txt'"


ADVICE = {
    ROCPROFV3: """\
rocprofv3: 1,200,000 nanoseconds in 2 calls of rmsnorm at preset XL (rows=4096, cols=8192)
rms_rows takes 83 % of the time on the GPU: begin there
rms_rows uses 81 % of the memory bandwidth, so that bounds it: move fewer bytes, or each byte once
rms_rows has 24 % of the waves that a GPU can hold; bytes of LDS keep more out
rms_rows loses 25 % of its shared-memory cycles to bank conflicts: pad the rows of its tiles
finish takes 17 % of the time on the GPU
finish uses 0 % of the memory bandwidth and 4 % of the arithmetic units, so it waits: more waves, or more independent \
loads a lane
finish has 24 bytes of scratch a lane: keep fewer values alive, or index local arrays by constants alone
""",
    ROCPROF_COMPUTE: """\
rocprof-compute: 1,200,000 nanoseconds in 2 calls of rmsnorm at preset XL (rows=4096, cols=8192)
rms_rows takes 83 % of the time on the GPU: begin there
rms_rows uses 81 % of the memory bandwidth, so that bounds it: move fewer bytes, or each byte once
rms_rows has 24 % of the waves that a GPU can hold; bytes of LDS keep more out
rms_rows has 16 bytes of scratch a lane: keep fewer values alive, or index local arrays by constants alone
rms_rows loses 25 % of its shared-memory cycles to bank conflicts: pad the rows of its tiles
finish takes 17 % of the time on the GPU
note: the counters are those of the slowest kernel
""",
    NCU: """\
ncu: 1,100,000 nanoseconds in 2 calls of rmsnorm at preset XL (rows=4096, cols=8192)
rms_rows takes 91 % of the time on the GPU: begin there
rms_rows uses 81 % of the memory bandwidth, so that bounds it: move fewer bytes, or each byte once
rms_rows has 36 % of the waves that a GPU can hold; registers keep more out
rms_rows loses 25 % of its shared-memory cycles to bank conflicts: pad the rows of its tiles
note: ==WARNING== Launching the workload with another clock than the base clock.
""",
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_report_begins_with_what_to_act_on(tool: ProfileTool, watched: Callable[..., Findings]) -> None:
    report = said(tool, watched(tool, copied(tool)))
    assert report.partition("\n\n")[0] + "\n" == ADVICE[tool]


@pytest.mark.parametrize(
    ("tool", "line"),
    [
        (ROCPROFV3, "memory bandwidth: 4,295 GB/s of 5,300"),
        (ROCPROFV3, "vgpr: 96"),
        (ROCPROF_COMPUTE, "L2-Fabric Read BW: 2147.50 Gb/s (40.3 % of peak)"),
        (ROCPROF_COMPUTE, "2 x void rms_rows<float>(float const*, float const*, float*, long, long)"),
        (NCU, "DRAM Throughput: 81.25 %"),
        (NCU, "Memory Throughput (byte/s): 4,020,000,000,000 byte/s"),
        (NCU, "ncu advises: A quarter of the shared memory's wavefronts are bank conflicts."),
    ],
)
def test_counters_follow_the_advice(tool: ProfileTool, line: str, watched: Callable[..., Findings]) -> None:
    assert line in [text.strip() for text in said(tool, watched(tool, copied(tool))).splitlines()]


@pytest.mark.parametrize("tool", TOOLS)
def test_the_counters_are_nanoseconds_by_kernel(tool: ProfileTool, watched: Callable[..., Findings]) -> None:
    counted = told("rmsnorm", tool, watched(tool, copied(tool)), 2, Preset.XL, SIZES).counters
    assert counted is not None and (counted.unit, counted.calls, counted.sizes) == ("nanoseconds", 2, SIZES)
    times = {short_name(entry.function): entry.count for entry in counted.functions}
    assert times == {"rms_rows": 1_000_000, "finish": counted.total - 1_000_000}


def test_commands_are_as_documented(tmp_path: Path) -> None:
    lines = {
        tool: [
            " ".join(one.argv).replace(str(tmp_path), "OUT")
            for one in profiler.passes(profiler.program, PROGRAM, tmp_path)
        ]
        for tool, profiler in GPU_PROFILERS.items()
    }
    trace, memory, *_ = lines[ROCPROFV3]
    written = "--output-format csv --output-directory"
    assert trace == f"rocprofv3 --kernel-trace --stats {written} OUT/trace --output-file trace -- ./replay 3"
    assert memory == f"rocprofv3 --pmc FETCH_SIZE WRITE_SIZE {written} OUT/memory --output-file memory -- ./replay 3"
    counted, analyzed = lines[ROCPROF_COMPUTE]
    assert counted == "rocprof-compute profile --name kernel --path OUT/workload --no-roof -- ./replay 3"
    assert analyzed.endswith("rocprof-compute analyze --path OUT/workload --kernel 0 --block 2 6 7")
    (ncu,) = lines[NCU]
    assert ncu.startswith("ncu --csv --page details ") and ncu.endswith(" ./replay 3")
    assert "--clock-control none --target-processes application-only --profile-from-start off" in ncu


def test_what_some_versions_call_after_the_gpu_is_analysed_there(tmp_path: Path) -> None:
    made = GPU_PROFILERS[ROCPROF_COMPUTE].passes("rocprof-compute", PROGRAM, tmp_path)
    next(made)
    (tmp_path / "workload/MI300X_A1").mkdir(parents=True)
    (tmp_path / "workload/MI300X_A1/sysinfo.csv").touch()
    assert f"{tmp_path}/workload/MI300X_A1" in next(made).argv


def test_the_judges_own_kernels_are_left_out(watched: Callable[..., Findings]) -> None:
    assert "kc_fill" in (SAMPLES / "rocprofv3/trace/trace_kernel_stats.csv").read_text()
    names = [kernel.name for kernel in watched(ROCPROFV3, copied(ROCPROFV3)).kernels]
    assert len(names) == 2 and not any("kc_fill" in name for name in names)


def test_times_come_from_the_trace_where_there_are_no_statistics(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "rocprofv3/trace/trace_kernel_trace.csv", tmp_path)
    found = GPU_PROFILERS[ROCPROFV3].read(Output(tmp_path))
    assert {short_name(one.name): (one.launches, one.time_ns) for one in found.kernels} == {
        "rms_rows": (2, 1_000_000),
        "finish": (2, 200_000),
    }


def test_counters_that_one_gpu_lacks_are_named_and_the_rest_is_told(watched: Callable[..., Findings]) -> None:
    refuse = 'case "$*" in *Occupancy*) echo "no such counter: OccupancyPercent"; exit 1;; esac'
    found = watched(ROCPROFV3, f"{refuse}; {copied(ROCPROFV3)}")
    assert found.notes == ("occupancy: not collected (no such counter: OccupancyPercent)",)
    assert found.kernels


@pytest.mark.parametrize("tool", TOOLS)
def test_a_program_that_launches_nothing_is_told_so(tool: ProfileTool, watched: Callable[..., Findings]) -> None:
    report = said(tool, watched(tool, "echo ==WARNING== No kernels were profiled."))
    assert report.startswith(f"{tool}: saw no launch of a kernel by rmsnorm, or its output was damaged")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("script", "in_call", "fault", "says"),
    [
        ("echo half of it; exit 3", False, JudgeFault, "could not profile the call (exit code 3): half of it"),
        ("kill -SEGV $$", False, JudgeFault, "could not profile the call (signal 11)"),
        ("kill -SEGV $$", True, Rejected, "crashed: profiler"),
        ("exit 0", True, Rejected, "crashed: profiler"),
        ("sleep 30", True, Rejected, "timeout: time"),
    ],
    ids=["exit", "signal", "kernel", "gone", "hang"],
)
def test_a_profile_that_fails_says_how(
    tool: ProfileTool, script: str, in_call: bool, fault: type[Exception], says: str, watched: Callable[..., Findings]
) -> None:
    with pytest.raises(fault) as failed:
        watched(tool, script, limit_s=1, in_call=in_call)
    assert says in str(failed.value)
    if isinstance(failed.value, Rejected):
        assert f"under {tool}" in failed.value.detail["message"]


@pytest.mark.parametrize(
    ("tool", "words", "advice"),
    [
        (ROCPROFV3, "Unable to open /dev/kfd read-write: Permission denied", "groups render and video"),
        (ROCPROF_COMPUTE, "Unable to open /dev/kfd read-write: Permission denied", "groups render and video"),
        (NCU, "==ERROR== ERR_NVGPUCTRPERM - no permission", "NVreg_RestrictProfilingToAdminUsers=0"),
    ],
)
@pytest.mark.parametrize("where", ["/dev/stdout", "ncu.log"])
def test_what_the_machine_forbids_is_named_with_the_remedy(
    tool: ProfileTool, words: str, advice: str, where: str, watched: Callable[..., Findings]
) -> None:
    with pytest.raises(EnvironmentFault, match=advice):
        watched(tool, f"echo '{words}' > {where}")


def test_a_link_that_a_submission_left_is_not_followed(tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret", tmp_path / "profile"
    secret.mkdir()
    (secret / "a_kernel_stats.csv").write_text('"Name","Calls","TotalDurationNs"\n"stolen",1,1\n')
    folder.mkdir()
    (folder / "a_kernel_stats.csv").symlink_to(secret / "a_kernel_stats.csv")
    (folder / "below").symlink_to(secret)
    (folder / "b_kernel_stats.csv").mkdir()
    assert list(Output(folder).files("_kernel_stats.csv")) == []


@pytest.mark.parametrize("tool", TOOLS)
def test_without_a_gpu_the_answer_is_in_words(tool: ProfileTool, tmp_path: Path, kcourt: Callable[..., Any]) -> None:
    order = ProfileOrder(kernel="axpy", language=Language.HIP, source="// any", tool=tool, seed="07")
    found = profile(order, court())
    vendor = GPU_PROFILERS[tool].vendor
    assert found == Lacking(why=f"{tool} needs a GPU of {vendor}; this judge's device is emulated; use isa")
    (tmp_path / "my.hip").write_text("// any")
    ran = kcourt("profile", "axpy", "my.hip", "--tool", tool, "--device", "cpu", "--allow-sandbox", "limits")
    assert (ran.code, ran.out) == (3, "") and found.why in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize("tool", TOOLS)
def test_languages_of_cpus_are_not_profiled_on_a_gpu(tool: ProfileTool) -> None:
    order = ProfileOrder(kernel="axpy", language=Language.C, source="// any", tool=tool, seed="07")
    with pytest.raises(UsageError, match=f"c is not profiled by {tool}, only hip"):
        profile(order, court())


@pytest.mark.parametrize("tool", TOOLS)
def test_a_program_that_is_not_here_is_named_with_what_to_install(
    tool: ProfileTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    package = {ROCPROFV3: "rocprofiler-sdk", ROCPROF_COMPUTE: "rocprofiler-compute", NCU: "Nsight Compute"}[tool]
    why = GPU_PROFILERS[tool].lacking()
    assert why.startswith(f"{tool} was not found; install ") and package in why


def test_each_vendor_has_its_profilers() -> None:
    assert {vendor: list(gpu_profilers(vendor)) for vendor in GpuVendor} == {
        GpuVendor.AMD: [ROCPROFV3, ROCPROF_COMPUTE],
        GpuVendor.NVIDIA: [NCU],
    }


@pytest.mark.parametrize(
    ("takes", "limit"),
    [
        ({}, ""),
        ({"vgpr": 64}, ""),
        ({"vgpr": 64, "agpr": 32}, "registers"),
        ({"lds": 32 << 10, "block": 256}, "bytes of LDS"),
        ({"lds": 8 << 10, "block": 256}, ""),
        ({"vgpr": 256, "lds": 32 << 10, "block": 512}, "registers"),
    ],
)
def test_what_keeps_waves_out_is_registers_or_lds(takes: dict[str, float], limit: str) -> None:
    assert limiter(takes, lds_bytes=64 << 10) == limit


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,234.50", 1234.5), (" -3 ", -3), ("5.7e-08", 5.7e-08), ("n/a", None), ("nan", None), ("1e999", None)],
)
def test_numbers_are_read_as_tools_write_them(text: str, value: float | None) -> None:
    assert number(text) == value


NAMES = ("t_kernel_stats.csv", "t_kernel_trace.csv", "c_counter_collection.csv", "a_agent_info.csv")
FILES = (*NAMES, "analysis.txt", "ncu.log")
ORIGINALS = tuple(path.read_text() for path in sorted(SAMPLES.rglob("*")) if path.suffix in (".csv", ".txt", ".log"))


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A sample with a stretch of it replaced."""
    text = draw(st.sampled_from(ORIGINALS))
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    return text[:start] + draw(st.text(max_size=40) | st.text('"0123456789.,e-│╒╞├╘\n', max_size=40)) + text[end:]


@settings(max_examples=60, deadline=None)
@given(text=st.text() | damaged())
def test_any_output_gives_a_report(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name in FILES:
        (folder / name).write_text(text, encoding="utf-8", errors="surrogatepass")
    for tool, profiler in GPU_PROFILERS.items():
        report = said(tool, profiler.read(Output(folder, {"pass": text})))
        assert report.startswith(f"{tool}: ") and len(report) < 60_000
    shutil.rmtree(folder)
