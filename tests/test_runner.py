"""What submissions do to the process that runs them: each ends in its own outcome, and costs nobody else anything."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kernels import HONEST_C, HONEST_CPP, HONEST_PYTHON, LOOP, axpy_c, axpy_py, court, graded, on_load
from living import gone, new_nap

from bench.build.builder import build_submission
from bench.grade import correctness_cases
from bench.judge.schemas import Language, Outcome
from bench.records import GradeReport
from bench.sandbox import Level
from bench.task import select

C, CPP, PYTHON = Language.C, Language.CPP, Language.PYTHON
# What a runner does about whatever it has loaded.
pytestmark = pytest.mark.usefixtures("ungated")
ONCE = "static int calls; if (calls++ == 0) "
AXPY = select("axpy")[0]
CORRECTNESS_CALLS = len(correctness_cases(AXPY, bytes(32)))


@dataclass(frozen=True)
class Scene:
    """A submission and how its grade must end; `says` is part of its message or log."""

    source: str
    outcome: Outcome
    property: str | None
    says: str = ""
    language: Language = C


def crashed(body: str, property: str, says: str, before: str = "") -> Scene:
    return Scene(axpy_c(body, before), Outcome.CRASHED, property, says)


def tampered(body: str, says: str) -> Scene:
    return Scene(axpy_c(body), Outcome.TAMPERED, "memory", says)


def raises(body: str, says: str, outcome: Outcome = Outcome.CRASHED) -> Scene:
    return Scene(axpy_py(body), outcome, "exception", says, PYTHON)


def wrong(body: str, before: str = "") -> Scene:
    return Scene(axpy_c(body, before), Outcome.WRONG, "values")


POINTER_KEYED = """
static float kept[1 << 20]; static const float *seen; static int64_t length;
"""
FORGED = on_load(r"""
  const char *line = "{\"report\": {\"outcome\": \"solved\", \"score\": 99.0}}\n";
  for (int fd = 0; fd < 64; fd++) if (write(fd, line, strlen(line)) < 0) continue;
""")
PRINTS = "static char line[1 << 20]; memset(line, 'x', sizeof line); for (int i = 0; i < 1024; i++) "
BOMB = "volatile char *p = malloc(64ULL << 30); for (uint64_t i = 0; i < 64ULL << 30; i += 4096) p[i] = 1; "

# The page that judge and runner share, found before the seal; go lies at its start, done behind 384 bytes.
SHARED = "static volatile int64_t *page;\n" + on_load("""
  char line[512]; FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) if (strstr(line, "memfd:control")) page = (int64_t *)strtoull(line, 0, 16);
  fclose(maps);
""")
DONE = "page[384 / 8] = page[0]; "


def unreturned(body: str) -> Scene:
    """A kernel that answers the judge itself."""
    return Scene(axpy_c(body, SHARED), Outcome.TAMPERED, "state", "it said that it was done and had not returned")


# `up(1)` are the variables of the runner's function that calls the kernel.
NESTS = """import sys
def up(n): return sys._getframe(n + 1).f_locals
NOTHING = sys.modules['__main__'].CALL(lambda: None)
"""

SCENES = {
    "honest C": Scene(HONEST_C, Outcome.SOLVED, None),
    "honest C++": Scene(HONEST_CPP, Outcome.SOLVED, None, language=CPP),
    "honest Python": Scene(HONEST_PYTHON, Outcome.SOLVED, None, language=PYTHON),
    "honest with a prepared table": Scene(
        axpy_c(LOOP, on_load('puts("ready");')), Outcome.SOLVED, None
    ),
    "does not compile": Scene(axpy_c("this is no C"), Outcome.BUILD_FAILED, "build", "error"),
    "does not link": Scene(axpy_c("nobody(out);", "void nobody(float *);"), Outcome.BUILD_FAILED, "load", "nobody"),
    "lacks the symbol": Scene(HONEST_C.replace("axpy", "axpby"), Outcome.BUILD_FAILED, "symbol", "axpy"),
    "C++ name": Scene(HONEST_CPP.replace('extern "C"', ""), Outcome.BUILD_FAILED, "symbol", "axpy", CPP),
    "wrong at one residue": wrong(f"{LOOP} if (n % 16 == 7) out[0] += 1;"),
    "wrong at a residue no edge has": wrong(f"{LOOP} if (n % 16 == 10) out[n - 1] += 1;"),
    "does nothing": wrong(""),
    "stale output": wrong(f"{ONCE} {{ {LOOP} }}"),
    "cache keyed by pointer": wrong(
        f"if (x != seen || n != length) {{ {LOOP} memcpy(kept, out, n * 4); seen = x; length = n; }} "
        "memcpy(out, kept, n * 4);",
        POINTER_KEYED,
    ),
    "NaN": wrong(f"{LOOP} out[n / 2] = NAN;"),
    "prints a forged report": wrong("", FORGED),
    "writes to an input": tampered(f"{LOOP} ((float *)x)[0] = 0;", "array 'x', or wrote to it although it is an input"),
    "reads beyond an input": tampered(f"{LOOP} out[0] += y[n + 16];", "array 'y'"),
    "segfaults": crashed("*(volatile int *)8 = 1;", "signal", "SIGSEGV"),
    "aborts": crashed("abort();", "signal", "SIGABRT; look for an assertion"),
    "exits well": crashed("exit(0);", "exit", "exit code 0"),
    "exits as a runner that could not start": crashed(LOOP, "exit", "exit code 65", on_load("_exit(65);")),
    "overflows its stack": crashed("volatile char big[64 << 20]; big[0] = 1; out[0] = big[0];", "signal", "SIGSEGV"),
    "takes 64 GiB": crashed(f"{BOMB} {LOOP}", "signal", "SIGSEGV"),
    "prints 1 GB": Scene(
        axpy_c(f"{PRINTS} if (write(1, line, sizeof line) < 0) break; {LOOP}"), Outcome.RESOURCE, "output", "16 MiB"
    ),
    "writes behind its output": Scene(axpy_c(f"{LOOP} out[n] = 1;"), Outcome.TAMPERED, "memory", "'out'"),
    "writes before its output": Scene(axpy_c(f"{LOOP} out[-1] = 1;"), Outcome.TAMPERED, "memory", "'out'"),
    "says that it is done and goes on": unreturned(f"{DONE} for (volatile int i = 0; i < 1 << 20; i++); {LOOP}"),
    "answers every call itself": unreturned(
        f"for (int64_t last;;) {{ {LOOP} last = page[0]; {DONE} while (page[0] == last); }}"
    ),
    "nests the judge's loop": Scene(
        axpy_py("out[:] = a * x + y; up(1)['waiter'].kc_py_serve(up(1)['control'], NOTHING)", NESTS),
        Outcome.TAMPERED, "state", "had not returned", PYTHON,
    ),
    "changes a signal's handling": Scene(
        axpy_c(f"{LOOP} signal(SIGCONT, SIG_IGN);", "#include <signal.h>"), Outcome.TAMPERED, "state", "signal handlers"
    ),
    "moves pages over others": Scene(
        axpy_c(f"{LOOP} mremap(out, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, x);", "#include <sys/mman.h>"),
        Outcome.POLICY, "system_call", "system call",
    ),
    "raises": raises("raise ValueError('no idea')", "ValueError: no idea"),
    "leaves by sys.exit": raises("raise SystemExit(0)", "SystemExit: 0"),
    "recurses for ever": raises("return axpy(x, y, out, n, a)", "RecursionError"),
    "writes to an input in Python": raises("x[0] = 1", "read-only"),
    "takes too much in Python": raises("numpy.ones(1 << 36)", "MemoryError", Outcome.RESOURCE),
    "takes too much in bytes": raises("bytearray(1 << 40)", "MemoryError", Outcome.RESOURCE),
    "leaves by os._exit": Scene(
        axpy_py("__import__('os')._exit(0)"), Outcome.CRASHED, "exit", "exit code 0", PYTHON
    ),
    "prints 1 GB in Python": Scene(
        axpy_py("[print('x' * (1 << 20)) for _ in range(1024)]"), Outcome.RESOURCE, "output", "16 MiB", PYTHON
    ),
    "imports what is not there": Scene(
        axpy_py("pass", "import torch_of_nobody"), Outcome.BUILD_FAILED, "load", "No module named", PYTHON
    ),
    "does not parse": Scene("def axpy(:\n", Outcome.BUILD_FAILED, "build", "line 1", PYTHON),
    "lacks the function": Scene("axpby = print\n", Outcome.BUILD_FAILED, "symbol", "no function 'axpy'", PYTHON),
    "is no function": Scene("axpy = 3\n", Outcome.BUILD_FAILED, "symbol", "no function 'axpy'", PYTHON),
    "wrong in Python": Scene(axpy_py("out[:] = a * x"), Outcome.WRONG, "values", language=PYTHON),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def spoils_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever these submissions do, an honest one that was built before them is solved after them."""
    folder = tmp_path_factory.mktemp("honest")
    honest = build_submission(court().sandbox, folder, AXPY, C, HONEST_C)
    yield
    assert graded(None, library=str(honest.path)).outcome is Outcome.SOLVED


def words_of(report: GradeReport) -> str:
    return f"{report.detail} {report.log}"


@pytest.mark.parametrize("name", SCENES)
def test_a_submission_ends_in_its_own_outcome(name: str) -> None:
    scene = SCENES[name]
    report = graded(scene.source, scene.language)
    assert (report.outcome, report.property) == (scene.outcome, scene.property), words_of(report)
    assert scene.says in words_of(report)
    assert (report.score is not None) == (report.outcome is Outcome.SOLVED)


def test_an_exit_in_the_middle_of_timing_is_found_there() -> None:
    report = graded(axpy_c(f"static int calls; if (++calls > {CORRECTNESS_CALLS + 3}) _exit(0); {LOOP}"))
    assert (report.outcome, report.property) == (Outcome.CRASHED, "exit"), words_of(report)
    assert "exit code 0" in words_of(report)
    assert (report.detail["stage"], report.cells) == ("timed", ())


def test_a_loop_for_ever_is_a_timeout() -> None:
    report = graded(axpy_c(f"{LOOP} for (volatile int i = 0;; i++);"))
    assert (report.outcome, report.property) == (Outcome.TIMEOUT, "time")
    assert "more than 5.0 s" in report.detail["message"]


@pytest.fixture
def nap() -> str:
    return new_nap()


SLEEP = 'execlp("sleep", "sleep", "{}", (char *)0)'
LEAVES = {
    "child": "if (!fork()) {sleep};",
    "child of a child": "if (!fork()) {{ if (!fork()) {sleep}; wait(0); }}",
    "child in a session of its own": "if (!fork()) {{ setsid(); {sleep}; }}",
    "orphan in a session of its own": (
        "{{ int pid = fork(); if (!pid) {{ setsid(); if (!fork()) {sleep}; _exit(0); }} waitpid(pid, 0, 0); }}"
    ),
}


@pytest.mark.parametrize("how", LEAVES)
def test_a_process_left_behind_is_found_and_ended(how: str, nap: str) -> None:
    leaves = LEAVES[how].format(sleep=SLEEP.format(nap))
    report = graded(axpy_c(f"{LOOP} {ONCE} {leaves}"), level=Level.LIMITS)
    assert (report.outcome, report.property) == (Outcome.TAMPERED, "processes"), words_of(report)
    assert gone(nap)


def test_a_crash_takes_its_children_with_it(nap: str) -> None:
    report = graded(axpy_c(f"{ONCE} if (!fork()) {SLEEP.format(nap)}; abort();"), level=Level.LIMITS)
    assert report.outcome is Outcome.CRASHED
    assert gone(nap)


def test_a_process_of_python_left_behind_is_found_and_ended(nap: str) -> None:
    start = f"import subprocess\nsubprocess.Popen(['sleep', '{nap}'], start_new_session=True)"
    report = graded(axpy_py("out[:] = a * x + y", start), PYTHON, binding=True)
    assert (report.outcome, report.property) == (Outcome.TAMPERED, "processes"), words_of(report)
    assert gone(nap)


def test_a_library_that_is_not_there_does_not_load(tmp_path: Path) -> None:
    report = graded(None, library=str(tmp_path / "nobody.so"))
    assert (report.outcome, report.property) == (Outcome.BUILD_FAILED, "load")
    assert "nobody.so" in words_of(report)
