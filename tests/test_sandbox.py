"""The sandbox levels `user` and `full`: what a submission cannot reach, and what honest code can still do."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import LOOP, axpy_c, axpy_py, court, graded, on_load

from bench.judge.schemas import Language, Outcome
from bench.process import Limits
from bench.sandbox import Level, Sandbox, scratch_folder

C, CPP, PYTHON = Language.C, Language.CPP, Language.PYTHON
STRONGEST = court().sandbox.level
LEVELS = [level for level in (Level.USER, Level.FULL) if level <= STRONGEST]
pytestmark = pytest.mark.skipif(not LEVELS, reason=f"this machine reaches sandbox level '{STRONGEST}' only")


@pytest.fixture(params=LEVELS or [Level.USER], ids=str)
def level(request: pytest.FixtureRequest) -> Level:
    chosen: Level = request.param
    return chosen


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch_folder() as made:
        yield made


def inside(level: Level, folder: Path, script: str, limits: Limits = Limits(wall_s=20)) -> str:
    """What a shell script prints in the sandbox."""
    return Sandbox(level).run(["sh", "-c", script], limits, folder).output


FORBIDDEN = {
    "the repository": f"ls {Path(__file__).parent}",
    "the accounts": "cat /etc/passwd",
    "the judge's home": "ls -A /root /home | grep .",
    "other temporary files": f"ls -A /tmp | grep -v {'kcourt-'}",
    "a write to the root": "touch /made && echo made",
    "a write to the toolchain": "touch /usr/made && echo made",
    "the network": "cat /proc/net/route | tail -n +2 | grep .",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_build_cannot_reach(level: Level, folder: Path, what: str) -> None:
    found = inside(level, folder, f"({FORBIDDEN[what]}) 2>/dev/null && echo REACHED")
    assert "REACHED" not in found


def test_a_build_sees_no_process_but_its_own(level: Level, folder: Path) -> None:
    pids = inside(level, folder, "echo /proc/[0-9]*").split()
    assert 1 <= len(pids) <= 4


def test_a_build_has_nothing_of_the_judges_environment(
    level: Level, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCOURT_TOKEN", "secret")
    assert "secret" not in inside(level, folder, "cat /proc/self/environ; env")


def test_full_has_a_user_of_its_own(folder: Path) -> None:
    if Level.FULL not in LEVELS:
        pytest.skip("level full needs root")
    assert int(inside(Level.FULL, folder, "id -u")) not in (0, os.getuid())
    assert "Operation not permitted" in inside(Level.FULL, folder, "kill -0 1 2>&1; chown 0 . 2>&1; true")


def test_processes_are_limited(folder: Path) -> None:
    if Level.FULL not in LEVELS:
        pytest.skip("level full needs root")
    bomb = "i=0; while [ $i -lt 40 ]; do sleep 2 & i=$((i+1)); done 2>&1; wait"
    assert "ork" in inside(Level.FULL, folder, bomb, Limits(wall_s=20, processes=16))


def test_nothing_of_a_build_is_left(level: Level, folder: Path) -> None:
    inside(level, folder, "touch /tmp/kept /dev/shm/kept; setsid sleep 50 &")
    assert not Path("/tmp/kept").exists() and not Path("/dev/shm/kept").exists()
    assert inside(level, folder, "ls -A /tmp /dev/shm").count("kept") == 0


POLICY = {
    "forks": "if (!fork()) _exit(0);",
    "starts a program": 'char *no[] = {0}; execve("/usr/bin/true", no, no);',
    "opens a socket": "socket(AF_INET, SOCK_STREAM, 0);",
    "maps code": "mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);",
    "makes memory executable": "mprotect((void *)((uintptr_t)out & ~4095UL), 4096, PROT_READ | PROT_EXEC);",
    "traces": "ptrace(PTRACE_TRACEME, 0, 0, 0);",
    "reads another process's memory": "process_vm_readv(1, 0, 0, 0, 0, 0);",
    "kills": "kill(1, 9);",
    "makes shared memory": "shmget(IPC_PRIVATE, 4096, 0600);",
    "makes a file in memory": 'memfd_create("f", 0);',
    "loads a filter of its own": "syscall(SYS_seccomp, 0, 0, 0);",
    "makes a system call by number": "syscall(SYS_unshare, 0);",
}
HEADERS = (
    "".join(f"#include <sys/{name}.h>\n" for name in ("mman", "ptrace", "shm", "ipc", "socket", "syscall", "uio"))
    + "#include <netinet/in.h>\n#include <signal.h>\n"
)


@pytest.mark.parametrize("what", POLICY)
def test_a_kernel_that_leaves_computing_breaks_policy(what: str) -> None:
    report = graded(axpy_c(f"{LOOP} {POLICY[what]}", HEADERS))
    assert (report.outcome, report.property) == (Outcome.POLICY, "system_call"), report.detail


REFUSED = {
    "a file of the judge": 'FILE *f = fopen("/etc/hostname", "r"); if (f) out[0] = 99;',
    "its own memory map": 'FILE *f = fopen("/proc/self/maps", "r"); if (f) out[0] = 99;',
    "a file of its own": 'FILE *f = fopen("left", "w"); if (f) out[0] = 99;',
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_kernel_opens_no_file_and_is_otherwise_honest(what: str) -> None:
    report = graded(axpy_c(f"{LOOP} {REFUSED[what]}"))
    assert report.outcome is Outcome.SOLVED, report.detail


HONEST = {
    "OpenMP": "\n#pragma omp parallel for\n" + LOOP,
    "OpenMP with two threads": "\n#pragma omp parallel for num_threads(2)\n" + LOOP,
    "heap": f"float *t = malloc(n * 4); memcpy(t, x, n * 4); free(t); {LOOP}",
    "large heap": f"char *t = malloc(200 << 20); memset(t, 1, 200 << 20); free(t); {LOOP}",
    "aligned heap": f"float *t = aligned_alloc(64, 4096); t[0] = 1; free(t); {LOOP}",
    "math": f"volatile float s = sinf(a) + expf(a); (void)s; {LOOP}",
    "a thread that ends": f"pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); {LOOP}",
    "printing": f'printf("%g\\n", a); fflush(stdout); {LOOP}',
    "a constructor": LOOP,
}


@pytest.mark.parametrize("what", HONEST)
def test_honest_c_works(level: Level, what: str) -> None:
    before = "static void *work(void *p) { return p; }\n" + (on_load('puts("ready");') if "constructor" in what else "")
    report = graded(axpy_c(HONEST[what], before), level=level)
    assert report.outcome is Outcome.SOLVED, (report.detail, report.log)


def test_honest_cpp_works(level: Level) -> None:
    source = """
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
extern "C" void axpy(const float *x, const float *y, float *out, int64_t n, float a) {
    std::vector<float> t(n);
    try { if (n > 0) throw std::runtime_error("x" + std::to_string(n)); } catch (const std::exception &) {}
    std::thread([&] { for (int64_t i = 0; i < n; i++) t[i] = a * x[i] + y[i]; }).join();
    std::copy(t.begin(), t.end(), out);
}
"""
    report = graded(source, CPP, level=level)
    assert report.outcome is Outcome.SOLVED, (report.detail, report.log)


@pytest.mark.parametrize(
    "body",
    ["numpy.add(a * x, y, out=out)", "out[:] = numpy.linalg.norm([3.0, 4.0]) / 5 * (a * x + y)"],
    ids=["numpy", "linalg"],
)
def test_honest_numpy_works(level: Level, body: str) -> None:
    report = graded(axpy_py(body), PYTHON, level=level)
    assert report.outcome is Outcome.SOLVED, (report.detail, report.log)


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("__import__('os').fork()", Outcome.POLICY),
        ("__import__('socket').socket()", Outcome.POLICY),
        ("__import__('subprocess').run(['true'])", Outcome.POLICY),
        ("open('left', 'w')", Outcome.CRASHED),
        ("__import__('bench.grade')", Outcome.CRASHED),
    ],
    ids=["fork", "socket", "program", "file", "the judge's code"],
)
def test_python_is_shut_in_too(level: Level, body: str, outcome: Outcome) -> None:
    report = graded(axpy_py(f"{body}; out[:] = a * x + y"), PYTHON, level=level)
    assert report.outcome is outcome, (report.detail, report.log)


@pytest.mark.parametrize(
    "body",
    ["__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);", "signal(SIGFPE, SIG_IGN);"],
    ids=["flush-to-zero", "signal handling"],
)
def test_state_that_outlives_the_call_is_tampering(body: str) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("written for x86-64")
    report = graded(axpy_c(f"{LOOP} {body}", HEADERS))
    assert (report.outcome, report.property) == (Outcome.TAMPERED, "state"), report.detail


def test_a_grade_leaves_no_folder(level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_TMPDIR", str(tmp_path))
    assert graded(axpy_c(LOOP), level=level).outcome is Outcome.SOLVED
    assert list(tmp_path.iterdir()) == []
