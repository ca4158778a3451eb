"""Grades on a GPU, which this machine plays: buffers of the device, the device's runner, checks and clocks."""

import shutil
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import HONEST_C, HONEST_HIP, order
from played import played_court, played_gpu
from test_emulated import LAUNCH, RIGHT, axpy_hip

from bench.devices.gpu import DeviceArray
from bench.dtypes import FLOATS as FLOAT_TYPES
from bench.dtypes import numpy_dtype
from bench.errors import UsageError
from bench.grade import grade
from bench.judge.schemas import Device, Kind, Language, Outcome
from bench.native import helper
from bench.runner.memory import DeviceMemory
from bench.task import INTEGER_FAMILIES, Family, find_task

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")

FLOATS = [family for family in Family if family not in INTEGER_FAMILIES]


def on_gpu(source, **changes):
    """The report of a HIP source that is graded on the played GPU."""
    return grade(order(source, Language.HIP, **changes), played_court())


@pytest.mark.parametrize(("protocol", "inputs"), [("mw2x5", 2), ("mw4x5", 4)])
def test_what_is_right_is_solved_and_timed(protocol, inputs):
    report = on_gpu(HONEST_HIP, protocol=protocol, kind=Kind.SUBMIT)
    assert (report.outcome, report.device) == (Outcome.SOLVED, Device.CUDA), report
    assert len(report.cells) == inputs and report.score is not None
    assert report.denominator == "baseline.hip"
    assert report.provenance["machine"]["gpu"]["name"] == "emulated"
    assert ("reverify" in report.provenance) == (protocol == "mw4x5")


def test_the_kernel_is_that_of_the_gpu_track():
    report = on_gpu(HONEST_HIP)
    assert report.task_hash == find_task("axpy").gpu_track.hash
    assert {source.role for source in report.sources} >= {"baseline:baseline.hip"}


WORKSPACE = axpy_hip("if (i < n) out[i] = a * x[i] + y[i];").replace(
    "float a, hipStream_t", "float a, void *workspace, int64_t workspace_bytes, hipStream_t"
)
CLEARS = "{ hipMemsetAsync(workspace, 0, BYTES, stream); each<<<"


@pytest.mark.parametrize(
    ("nbytes", "outcome"),
    [("workspace_bytes", Outcome.SOLVED), ("workspace_bytes + 64", Outcome.TAMPERED)],
    ids=["within", "beyond"],
)
def test_a_workspace_is_memory_of_the_device(nbytes, outcome):
    source = WORKSPACE.replace("{ each<<<", CLEARS.replace("BYTES", nbytes))
    assert on_gpu(source, workspace_bytes=4096).outcome is outcome


@pytest.mark.parametrize(
    ("source", "outcome", "words"),
    [
        (axpy_hip(RIGHT.replace("i < n", "i < n - 1")), Outcome.WRONG, ""),
        (axpy_hip(launch=LAUNCH.replace("256, 0", "2048, 0")), Outcome.WRONG, ""),
        (axpy_hip(f"{RIGHT} if (n > 70) out[n] = 0;"), Outcome.TAMPERED, "wrote outside the array 'out'"),
        (axpy_hip(f"{RIGHT} if (i == 0) out[n + 5000000] = 0;"), Outcome.CRASHED, "ended in SIGSEGV"),
        (axpy_hip("((float *)x)[i < n ? i : 0] = 0;"), Outcome.CRASHED, ""),
        (axpy_hip('while (n) asm volatile("");'), Outcome.TIMEOUT, ""),
        (axpy_hip("mistake"), Outcome.BUILD_FAILED, ""),
        (axpy_hip(before='#include "/etc/alternatives/README"'), Outcome.POLICY, "reads the file"),
        (axpy_hip(before="#include <unistd.h>", launch="sleep(0);" + LAUNCH), Outcome.POLICY, "uses 'sleep'"),
        (
            axpy_hip(before="int begun; __attribute__((constructor)) static void early(void) { begun = 1; }"),
            Outcome.POLICY,
            "runs when it is loaded",
        ),
    ],
    ids=[
        *("last element", "a launch that fails", "beside the array", "far away", "writes to an input", "endless"),
        *("an error", "another file", "sleep", "constructor"),
    ],
)
def test_what_is_wrong_or_forbidden_is_not_solved(source, outcome, words):
    report = on_gpu(source, disclose=True)
    assert (report.outcome, report.score) == (outcome, None), report
    assert words in str(report.detail)


IN_TRITON = """\
import triton
import triton.language as tl

@triton.jit
def scale(x, y, out, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, a * tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

def axpy(x, y, out, n, a):
    scale[(triton.cdiv(n, 1024),)](x, y, out, n, a, BLOCK=1024)
"""
CALLS = """\
calls = []
def counted(call):
    def wrapped(x, y, out, n, a):
        calls.append(n)
        if len(calls) > 60:
            raise ValueError("enough")
        call(x, y, out, n, a)
    return wrapped
axpy = counted(axpy)
"""
ALLOCATES = """\
def kept(call):
    def wrapped(x, y, out, n, a):
        held, flags = torch.full((n + 2,), 0.5, dtype=x.dtype, device=x.device), torch.tensor([1, 2], device=x.device)
        call(x, y, held[1:-1], n, a)
        out.zero_()
        out.copy_(held[1:-1].clone().view(-1))
    return wrapped
axpy = kept(axpy)
"""


def triton_on_gpu(source):
    """The report of a Triton source, which its interpreter runs on the played GPU."""
    return grade(order(source, Language.TRITON, disclose=True), played_court())


@pytest.mark.parametrize(
    ("source", "outcome", "words"),
    [
        (IN_TRITON, Outcome.SOLVED, ""),
        ("import torch\n" + IN_TRITON + ALLOCATES, Outcome.SOLVED, ""),
        (IN_TRITON.replace("(n, 1024)", "(n - 1, 1024)"), Outcome.WRONG, "'output': 'out'"),
        (IN_TRITON + CALLS, Outcome.CRASHED, "ValueError: enough"),
        (IN_TRITON.replace("def axpy", "def other"), Outcome.BUILD_FAILED, "name and signature of the contract"),
        (IN_TRITON.replace("a * tl.load(x + i, i < n)", "a * nothing"), Outcome.BUILD_FAILED, "does not load"),
        ("import socket\n" + IN_TRITON, Outcome.POLICY, "imports 'socket'"),
    ],
    ids=["right", "allocates and copies", "wrong", "raises", "another name", "does not compile", "socket"],
)
def test_triton_is_called_on_tensors_of_the_judges_memory(source, outcome, words):
    if not (find_spec("torch") and find_spec("triton")):
        pytest.skip("torch and triton are not installed")
    report = triton_on_gpu(source)
    assert (report.outcome, words in str(report.detail)) == (outcome, True), report


def test_a_judge_without_torch_says_so():
    if find_spec("torch"):
        pytest.skip("torch is installed")
    report = triton_on_gpu(IN_TRITON)
    assert report.outcome is Outcome.JUDGE_FAULT and "need torch and triton" in report.detail["message"]


def test_a_language_of_cpus_is_refused_in_words():
    with pytest.raises(UsageError, match="c is not graded on cuda, which takes hip, cuda"):
        grade(order(HONEST_C, Language.C), played_court())


def placed(values: np.ndarray) -> DeviceArray:
    """A copy of an array on the device."""
    return DeviceMemory(played_gpu()).taken(values)


@pytest.mark.parametrize("dtype", [*FLOAT_TYPES])
@pytest.mark.parametrize("family", FLOATS)
@settings(max_examples=5)
@given(count=st.integers(1, 2000), key=st.tuples(*[st.integers(0, 2**64 - 1)] * 2))
def test_values_on_the_device_are_those_of_the_cpu(dtype, family, count, key):
    here = np.zeros(count, numpy_dtype(dtype))
    there = placed(here)
    helper.fill(here, family.value, key)
    played_gpu().fill(there, family.value, key)
    assert np.array_equal(here.view(np.uint8), played_gpu().get(there).view(np.uint8))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("family", [Family.BELOW, Family.SKEWED])
@settings(max_examples=5)
@given(count=st.integers(1, 2000), bound=st.integers(1, 2**31 - 1), key=st.tuples(*[st.integers(0, 2**64 - 1)] * 2))
def test_indices_on_the_device_are_those_of_the_cpu(dtype, family, count, bound, key):
    here, there = np.empty(count, dtype), placed(np.zeros(count, dtype))
    helper.fill(here, family.value, key, bound)
    played_gpu().fill(there, family.value, key, bound)
    assert np.array_equal(here, played_gpu().get(there))


@settings(max_examples=20)
@given(start=st.integers(0, 40), length=st.integers(1, 300), key=st.integers(0, 2**64 - 1), data=st.data())
def test_poison_on_the_device_is_that_of_the_cpu_and_shows_every_change(start, length, key, data):
    gpu, here = played_gpu(), np.empty(length, np.uint8)
    area = placed(np.zeros(400, np.uint8))[start : start + length]
    helper.poison(here, key)
    gpu.poison(area, key)
    assert np.array_equal(gpu.get(area), here) and gpu.poison_intact(area, key)
    place = data.draw(st.integers(0, length - 1))
    here[place] ^= 1
    gpu.put(area, here)
    assert not gpu.poison_intact(area, key)


@settings(max_examples=30)
@given(
    st.lists(st.floats(width=32) | st.floats(-1, 1, width=32), min_size=1, max_size=50),
    st.floats(0, 1e-3),
    st.data(),
)
def test_the_device_compares_as_the_cpu_does(values, factor, data):
    got = np.array(values, np.float32)
    expected = got.astype(np.float64)
    expected[data.draw(st.integers(0, got.size - 1))] += data.draw(st.floats(-1, 1) | st.just(np.nan))
    scale = data.draw(st.sampled_from([None, np.abs(expected) + 1]))
    here = helper.compare(got, expected, scale, factor, 1e-12)
    on_device = [None if array is None else placed(array) for array in (got, expected, scale)]
    there = played_gpu().compare(*on_device, factor, 1e-12)
    assert there.count == here.count and (not here.count or there.first == here.first)


def test_a_digest_shows_every_byte_that_changes():
    gpu, values = played_gpu(), np.arange(1003, dtype=np.uint8)
    area = placed(values)
    before = gpu.digest(area)
    for place in (0, 7, 8, 500, 1002):
        changed = values.copy()
        changed[place] ^= 0x80
        gpu.put(area, changed)
        assert gpu.digest(area) != before
    gpu.put(area, values)
    assert gpu.digest(area) == before
