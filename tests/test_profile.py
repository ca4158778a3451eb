"""Profiles with the real tools: what is counted where, what a submission that fails is told, what is missing."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernels import AXPY, HONEST_C, HONEST_CPP, HONEST_FORTRAN, INCLUDES, NEEDS_GFORTRAN, axpy_c, court

from bench.judge.schemas import Language, Outcome, ProfileTool
from bench.profile import profile
from bench.profilers import GPU_PROFILERS, PROFILERS, callgrind, perf
from bench.profilers.profiler import Place, Recording
from bench.records import Lacking, ProfileOrder, ProfileReport
from bench.worker import answer

CALLGRIND, PERF = ProfileTool.CALLGRIND, ProfileTool.PERF
NEEDS_CALLGRIND = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed; on Debian: apt-get install valgrind"
)
# A loop that does more than one line of work; the marks tell which line must count most.
HOT = f"""{INCLUDES}
static double bent(double v) {{
  for (int k = 0; k < 20; k++) v = v * 0.5 + 1;  // hot
  return v;
}}
{AXPY} {{
  volatile double sink = 0;
  for (int64_t i = 0; i < n; i++) {{
    sink = bent(x[i]);
    out[i] = a * x[i] + y[i];
  }}
}}
"""


def order(source: str, tool: ProfileTool, language: Language = Language.C, **changes: Any) -> ProfileOrder:
    return ProfileOrder(
        **{"kernel": "axpy", "language": language, "source": source, "tool": tool, "seed": "07" * 32} | changes
    )


def profiled(source: str, tool: ProfileTool, language: Language = Language.C, **changes: Any) -> ProfileReport:
    """A profile made in this process; the test is skipped where the tool does not work."""
    found = profile(order(source, tool, language, **changes), court())
    if isinstance(found, Lacking):
        pytest.skip(found.why)
    return found


@NEEDS_CALLGRIND
@pytest.mark.parametrize(
    ("language", "source", "statement"),
    [
        pytest.param(Language.C, HONEST_C, "out[i] = a * x[i] + y[i]", id="c"),
        pytest.param(Language.CPP, HONEST_CPP, "a * u + v", id="cpp"),
        pytest.param(Language.FORTRAN, HONEST_FORTRAN, "out = a * x + y", marks=NEEDS_GFORTRAN, id="fortran"),
    ],
)
def test_callgrind_counts_instructions_by_function_and_line(language: Language, source: str, statement: str) -> None:
    found = profiled(source, CALLGRIND, language)
    assert (found.outcome, found.property) == (Outcome.SOLVED, None)
    counters = found.counters
    assert counters is not None and (counters.unit, counters.calls, counters.preset) == ("instructions", 1, "S")
    assert counters.sizes == {"n": 20000}
    # Vectorised or not: at least one instruction for eight elements, and no loader among them.
    assert 20000 // 8 < counters.total < 20000 * 20
    assert counters.total == sum(entry.count for entry in counters.functions)
    assert "axpy" in counters.functions[0].function and counters.functions[0].object == "axpy.so"
    assert statement in counters.lines[0].source
    assert f"{counters.lines[0].count:,}" in found.report and counters.lines[0].source[:40].strip() in found.report


@NEEDS_CALLGRIND
def test_callgrind_counts_the_same_again() -> None:
    first, again = profiled(HOT, CALLGRIND), profiled(HOT, CALLGRIND)
    assert first.outcome is Outcome.SOLVED
    assert first == again


def test_perf_finds_the_hot_line() -> None:
    found = profiled(HOT, PERF)
    assert found.outcome is Outcome.SOLVED, found
    counters = found.counters
    assert counters is not None and (counters.unit, counters.preset) == ("samples", "M")
    assert counters.calls >= 1 and counters.total > 0
    assert {entry.object for entry in counters.functions} >= {"axpy.so"}
    hot = sum(entry.count for entry in counters.lines if "// hot" in entry.source)
    assert hot == max(entry.count for entry in counters.lines)


def test_an_argument_updated_in_place_is_as_before_at_every_call() -> None:
    source = "#include <stdint.h>\n" + (
        "void floyd_warshall(float *dist, int64_t n) {\n"
        "  if (dist[0] == -1) __builtin_trap();\n"
        "  for (int64_t k = 0; k < n; k++) for (int64_t i = 0; i < n; i++) for (int64_t j = 0; j < n; j++)\n"
        "    if (dist[i * n + k] + dist[k * n + j] < dist[i * n + j])\n"
        "      dist[i * n + j] = dist[i * n + k] + dist[k * n + j];\n"
        "  if (n == 180) { static int calls; if (calls++) dist[0] = -1; }\n}\n"
    )
    found = profiled(source, PERF, kernel="floyd_warshall")
    assert found.outcome is Outcome.SOLVED, found
    assert found.counters is not None and found.counters.calls > 2


@NEEDS_CALLGRIND
@pytest.mark.parametrize(
    ("source", "outcome", "property"),
    [
        ("void axpy(", "build_failed", "build"),
        ("int other;", "build_failed", "symbol"),
        (axpy_c("for (int64_t i = 0; i < n - 1; i++) out[i] = a * x[i] + y[i];"), "wrong", "values"),
        (axpy_c("abort();"), "crashed", "signal"),
        (axpy_c("out[n] = 1;"), "tampered", "memory"),
    ],
    ids=["syntax", "symbol", "wrong", "crash", "beyond"],
)
def test_what_fails_is_told_as_by_a_preview(source: str, outcome: str, property: str) -> None:
    found = profiled(source, CALLGRIND)
    assert (found.outcome, found.property, found.counters, found.report) == (outcome, property, None, "")
    shown = found.answer("axpy", 0).detail
    assert shown["property"] == property and (shown["message"] if outcome != "wrong" else shown["output"])


def test_what_fails_under_the_profiler_alone_is_told() -> None:
    later = axpy_c("static int calls; if (calls++) abort(); for (int64_t i = 0; i < n; i++) out[i] = a * x[i] + y[i];")
    found = profiled(later, PERF)
    assert (found.outcome, found.property) == (Outcome.CRASHED, "profiler")
    assert "passed a call by itself, but ended under perf" in found.detail["message"]


@NEEDS_CALLGRIND
def test_a_workspace_is_lent_to_a_profile() -> None:
    parameters = AXPY.replace("float a)", "float a, void *workspace, int64_t workspace_bytes)")
    body = "float *t = workspace; for (int64_t i = 0; i < n; i++) { t[i] = a * x[i]; out[i] = t[i] + y[i]; }"
    found = profiled(f"#include <stdint.h>\n{parameters} {{ {body} }}\n", CALLGRIND, workspace_bytes=80000)
    assert found.outcome is Outcome.SOLVED, found


@pytest.mark.parametrize("tool", PROFILERS)
def test_a_tool_that_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch, tool: ProfileTool) -> None:
    module, package = {CALLGRIND: (callgrind, "valgrind"), PERF: (perf, "linux-perf")}[tool]
    monkeypatch.setattr(module, "PROBE", ("no-such-program",))
    found = profile(order(HONEST_C, tool), court())
    assert isinstance(found, Lacking)
    assert found.why.startswith(tool) and f"apt-get install {package}" in found.why


def test_each_tool_is_registered() -> None:
    assert {*PROFILERS, *GPU_PROFILERS, ProfileTool.ISA} == set(ProfileTool)


RECORDED_PERF = """\
PERF_RECORD_MMAP2 3/3: [0x557f8d26e000(0x1000) @ 0x1000 fe:00 2392236 49]: r-xp /cache/0123456789abcdef0123456789abcdef
PERF_RECORD_MMAP2 3/3: [0x7f0193f0a000(0x26000) @ 0x1000 fe:00 338944 0]: r-xp /usr/lib/ld-linux-x86-64.so.2
PERF_RECORD_MMAP2 3/3: [0x7f0193f07000(0x2000) @ 0 00:00 0 0]: r-xp [vdso]
     7f0193f1f287 init_cpu_features.constprop.0 (/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2)
PERF_RECORD_MMAP2 3/3: [0x7f0193cc6000(0x1000) @ 0x1000 fe:00 2147882 60]: r-xp /tmp/a b/axpy.so
     7f0193cc6239 axpy (/tmp/a b/axpy.so)
     7f0193cc6239 axpy (/tmp/a b/axpy.so)
     7f0193cc6242 void work<float, 4>(float*, long) (/tmp/a b/axpy.so)
     557f8d26e123 main (/cache/0123456789abcdef0123456789abcdef)
     7f0193d3b000 __memset_avx2 (/usr/lib/x86_64-linux-gnu/libc.so.6)
     7f0193f07a10 [unknown] ([vdso])
     1 forged (/tmp/a b/axpy.so)
ffffffffffffffffff forged (/tmp/a b/axpy.so)
PERF_RECORD_MMAP2 3/3: [0x1(0x1) @ nowhere fe:00 1 1]: r-xp /tmp/a b/axpy.so
"""


def test_samples_are_read() -> None:
    assert perf.parse(RECORDED_PERF, "axpy.so") == {
        ("axpy", "axpy.so", 0x1239): 2,
        ("void work<float, 4>(float*, long)", "axpy.so", 0x1242): 1,
        ("__memset_avx2", "libc.so.6", None): 1,
        ("forged", "axpy.so", None): 1,
    }


RECORDED_CALLGRIND = """\
# callgrind format
positions: line
events: Ir
summary: 100

ob=/cache/0123.so
fl=???
fn=kc_invoke
0 10
cob=/tmp/x/axpy.so
cfi=/tmp/x/axpy.c
cfn=axpy
calls=1 10
0 90

ob=/tmp/x/axpy.so
fl=/tmp/x/axpy.c
fn=axpy
10 13
11 23
cob=/usr/lib/libm.so.6
cfn=expf
calls=24 67
11 40
11 4
fi=/tmp/x/inlined.h
3 10

ob=/usr/lib/libm.so.6
fl=./e_expf.c
fn=expf
67 40
99999999999999999999 1
1 99999999999999999999

totals: 100
"""


def test_costs_are_read(tmp_path: Path) -> None:
    recording = Recording(io.BytesIO(RECORDED_CALLGRIND.encode()), tmp_path / "axpy.so", court().sandbox, tmp_path)
    assert callgrind.read(recording) == {
        Place("axpy", "axpy.so", "axpy.c", 10): 13,
        Place("axpy", "axpy.so", "axpy.c", 11): 27,
        Place("axpy", "axpy.so", "inlined.h", 3): 10,
        Place("expf", "libm.so.6", "e_expf.c", 67): 40,
    }


@pytest.mark.parametrize(
    "line",
    [
        {"profile": order(HONEST_C, PERF).model_dump(mode="json"), "order": {}},
        {"profile": order(HONEST_C, PERF).model_dump(mode="json") | {"tool": "gdb"}},
        {"profile": order(HONEST_C, PERF, kernel="nobody").model_dump(mode="json")},
        {"profile": order("pass", PERF, Language.PYTHON).model_dump(mode="json")},
    ],
    ids=["two", "tool", "kernel", "python"],
)
def test_an_order_that_is_wrong_is_a_fault(line: dict[str, Any]) -> None:
    assert answer(json.dumps(line), court())["fault"]


@NEEDS_CALLGRIND
def test_the_worker_answers_an_order() -> None:
    said = answer(json.dumps({"profile": order("int other;", CALLGRIND).model_dump(mode="json")}), court())
    assert ProfileReport.model_validate(said["profiled"]).outcome is Outcome.BUILD_FAILED


@NEEDS_CALLGRIND
def test_the_command_prints_the_report_or_one_object(kcourt: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "my.c").write_text(HOT)
    asked = ("profile", "axpy", "my.c", "--tool", "callgrind", "--allow-sandbox", "limits")
    shown, told = kcourt(*asked), kcourt(*asked, "--json")
    assert (shown.code, told.code) == (0, 0), shown.err + told.err
    assert told.json.keys() == {"kernel", "rank", "tool", "outcome", "report", "counters", "kernels", "detail"}
    assert shown.out == told.json["report"]
    assert shown.out.startswith("callgrind: ") and "// hot" in shown.out


@pytest.mark.parametrize(
    ("arguments", "name", "text", "says"),
    [
        (("--tool", "perf"), "my.py", "pass", "python is not profiled"),
        ((), "my.c", HONEST_C, "Missing option '--tool'"),
    ],
    ids=["python", "no-tool"],
)
def test_a_mistake_is_worded(
    kcourt: Callable[..., Any], tmp_path: Path, arguments: tuple[str, ...], name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text)
    ran = kcourt("profile", "axpy", name, "--allow-sandbox", "limits", *arguments)
    assert (ran.code, ran.out) == (2, "") and says in ran.err
