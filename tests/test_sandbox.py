"""The sandbox levels `user` and `full` by each means: what a submission cannot reach, what honest code still can."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kernels import HONEST_FORTRAN, LOOP, NEEDS_GFORTRAN, axpy_c, axpy_py, court, graded, on_load, order
from living import gone, new_nap, sleepers

from bench.errors import UsageError
from bench.grade import grade
from bench.judge.schemas import Language, Outcome
from bench.process import Limits, kill_tree, signal_of
from bench.records import GradeReport
from bench.sandbox import FIRST_UID, Level, Means, Sandbox, reach, scratch_folder, why_not

C, CPP, PYTHON = Language.C, Language.CPP, Language.PYTHON
LEVELS = (Level.USER, Level.FULL) if os.getuid() == 0 else (Level.USER,)
STRONGEST = court().sandbox.level
WAYS = [Sandbox(level, means=means) for level in LEVELS for means in Means if not why_not(level, means)]
pytestmark = [
    pytest.mark.skipif(not WAYS, reason="this machine reaches neither level 'user' nor 'full'"),
    pytest.mark.usefixtures("ungated"),
]
Kcourt = Callable[..., Any]
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
FEW = Limits(wall_s=120)


def name(way: Sandbox) -> str:
    return f"{way.level}-{way.means}"


@pytest.fixture(params=WAYS, ids=name)
def way(request: pytest.FixtureRequest) -> Sandbox:
    chosen: Sandbox = request.param
    return chosen


@pytest.fixture(params=[way for way in WAYS if way.level is Level.FULL], ids=name)
def full(request: pytest.FixtureRequest) -> Sandbox:
    chosen: Sandbox = request.param
    return chosen


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch_folder() as made:
        yield made


@pytest.fixture
def nap() -> str:
    return new_nap()


def inside(way: Sandbox, folder: Path, script: str, limits: Limits = FEW) -> str:
    """What a shell script prints in the sandbox."""
    return way.run(["sh", "-c", script], limits, folder).output


@contextlib.contextmanager
def started(way: Sandbox, folder: Path, script: str) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """A shell script that runs in the sandbox, once it has printed its first line; and that line."""
    reading, writing = os.pipe()
    with open(reading) as lines, open(writing, "wb") as output:
        child = way.spawn(["sh", "-c", script], FEW, folder, output, ())
        output.close()
        try:
            yield child, lines.readline().strip()
        finally:
            kill_tree(child)


def graded_by(way: Sandbox, source: str, language: Language = C) -> GradeReport:
    """A grade of axpy at S whose submission is shut in that way."""
    sandbox = replace(court().sandbox, level=way.level, means=way.means)
    return grade(order(source, language), replace(court(), sandbox=sandbox))


FORBIDDEN = {
    "the repository": f"ls {Path(__file__).parent}",
    "the accounts": "cat /etc/passwd",
    "the judge's home": "ls -A /root /home | grep .",
    "other folders": "ls -A / | grep -vE '^(bin|dev|etc|lib|lib32|lib64|libx32|proc|sbin|tmp|usr)$'",
    "other settings": "ls -A /etc | grep -vE '^(alternatives|ld[.]so[.](cache|conf|conf[.]d))$'",
    "other temporary files": f"ls -A /tmp | grep -v {'kcourt-'}",
    "devices": "ls -A /dev | grep -vE '^(core|fd|full|null|ptmx|pts|u?random|shm|stderr|stdin|stdout|tty|zero)$'",
    "a write to the root": "touch /made && echo made",
    "a write to the toolchain": "touch /usr/made && echo made",
    "a write to the devices": "touch /dev/made",
    "settings of the machine": "ls /proc/sys && (test -w /proc/sys/kernel/core_pattern || test -w /proc/irq)",
    "the network": "cat /proc/net/route | tail -n +2 | grep .",
    "network devices": "tail -n +3 /proc/net/dev | grep -v ' lo:'",
    "capabilities": "grep -E 'Cap(Inh|Prm|Eff|Amb):.*[1-9a-f]' /proc/self/status",
    "new privileges": "grep -E 'NoNewPrivs:.*0' /proc/self/status",
    "shared memory beyond its size": "fallocate -l 300M /dev/shm/big",
    "temporary space beyond its size": "fallocate -l 300M /tmp/big",
    "the namespace's init": "(kill -KILL 1; kill -SEGV 1) 2>&1; ls /proc/1/cwd/tests",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_build_cannot_reach(way: Sandbox, folder: Path, what: str) -> None:
    found = inside(way, folder, f"({FORBIDDEN[what]}) 2>/dev/null && echo REACHED; echo tried")
    assert "REACHED" not in found and found.endswith("tried\n")


def test_a_build_reaches_no_socket_of_the_host(way: Sandbox, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        knock = f"bash -c 'echo > /dev/tcp/127.0.0.1/{server.getsockname()[1]}' 2>&1 || echo refused"
        assert inside(way, folder, knock).endswith("refused\n")


def test_a_build_sees_no_process_but_its_own(way: Sandbox, folder: Path) -> None:
    pids = inside(way, folder, "echo /proc/[0-9]*").split()
    assert 1 <= len(pids) <= 4


def test_a_build_inherits_no_descriptor(way: Sandbox, folder: Path) -> None:
    with tempfile.TemporaryFile() as open_here:
        os.set_inheritable(open_here.fileno(), True)
        listing = inside(way, folder, "ls /proc/self/fd")  # the fourth is of the listing itself
    assert listing.split() == ["0", "1", "2", "3"]


def test_descriptors_that_are_passed_arrive(way: Sandbox, folder: Path) -> None:
    with tempfile.TemporaryFile() as lent, tempfile.TemporaryFile() as output:
        lent.write(b"lent")
        lent.seek(0)
        script = f"cat <&{lent.fileno()}; echo; ls /proc/self/fd"
        child = way.spawn(["bash", "-c", script], FEW, folder, output, [lent.fileno()])
        assert child.wait(120) == 0
        output.seek(0)
        assert sorted(output.read().decode().split()) == sorted(["lent", *map(str, {0, 1, 2, 3, lent.fileno()})])


def test_a_device_is_there_for_what_is_spawned_alone(way: Sandbox, folder: Path) -> None:
    usual = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
    nodes = (path for path in Path("/dev").iterdir() if path.is_char_device() and not path.is_symlink())
    found = [path for path in nodes if path.name not in usual]
    if not found:
        pytest.skip("this machine has no device beside the usual ones")
    with_device, looks = replace(way, devices=(found[0],)), ["sh", "-c", f"test -c {found[0]} && echo there"]
    with tempfile.TemporaryFile() as said:
        with_device.spawn(looks, FEW, folder, said, ()).wait(60)
        said.seek(0)
        assert said.read() == b"there\n"
    assert with_device.run(looks, FEW, folder).output == way.run(looks, FEW, folder).output == ""


def test_a_build_has_nothing_of_the_judges_environment(
    way: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCOURT_TOKEN", "secret")
    assert "secret" not in inside(way, folder, "cat /proc/self/environ /proc/1/environ; env")


def test_full_has_a_user_of_its_own(full: Sandbox, folder: Path) -> None:
    assert int(inside(full, folder, "id -u")) not in (0, os.getuid())
    assert inside(full, folder, "id -G").split() == inside(full, folder, "id -g").split()
    assert "Operation not permitted" in inside(full, folder, "kill -0 1 2>&1; chown 0 . 2>&1; true")


BOMB = "i=0; while [ $i -lt 40 ]; do sleep 2 & i=$((i+1)); done 2>&1; wait"


def test_processes_are_limited(full: Sandbox, folder: Path) -> None:
    assert "ork" in inside(full, folder, BOMB, Limits(wall_s=20, processes=16))


LIMITED = {
    "wall time": ("sleep 60", Limits(wall_s=1), signal.SIGKILL),
    "CPU time": ("while :; do :; done", Limits(wall_s=60, cpu_s=1), signal.SIGXCPU),
    "file size": ("exec head -c 9M /dev/zero > big", Limits(wall_s=20, file_bytes=1 << 20), signal.SIGXFSZ),
    "output": ("exec yes", Limits(wall_s=20, file_bytes=1 << 20), signal.SIGXFSZ),
    "memory": ("dd if=/dev/zero of=/dev/null bs=1G count=1 && kill -USR1 $$", Limits(memory_bytes=1 << 29), None),
}


@pytest.mark.parametrize("what", LIMITED)
def test_use_is_limited(way: Sandbox, folder: Path, what: str) -> None:
    script, limits, ended_by = LIMITED[what]
    done = way.run(["sh", "-c", script], limits, folder)
    assert done.signal == ended_by and not done.ok
    assert done.timed_out == (what == "wall time")


@pytest.mark.parametrize(
    ("script", "code", "ended_by"),
    [
        ("true", 0, None),
        ("exit 7", 7, None),
        ("kill -SEGV $$", None, signal.SIGSEGV),
        ("kill -SYS $$", None, signal.SIGSYS),
        ("kill -KILL $$", None, signal.SIGKILL),
    ],
    ids=["success", "code", "fault", "system-call", "killed"],
)
def test_the_end_of_a_command_comes_through(
    way: Sandbox, folder: Path, script: str, code: int | None, ended_by: int | None
) -> None:
    done = way.run(["sh", "-c", script], FEW, folder)
    assert signal_of(done.returncode) == done.signal == ended_by
    assert code in (None, done.returncode)


def test_the_command_is_found_from_outside(way: Sandbox, folder: Path) -> None:
    with started(way, folder, "echo $$; sleep 60") as (child, own_pid):
        status = Path(f"/proc/{way.inner_pid(child)}/status").read_text()
    assert re.findall(r"^NSpid:.*\s(\d+)$", status, re.MULTILINE) == [own_pid]


LEFT = {
    "children": "sleep {0} & sleep {0} &",
    "grandchildren in sessions of their own": "setsid sh -c 'setsid sleep {0} & sleep {0}' &",
    "files": "touch /tmp/kept /dev/shm/kept",
    "shared memory": "ipcmk -M {0}",
}


@pytest.mark.parametrize("what", LEFT)
def test_nothing_of_a_build_is_left(way: Sandbox, folder: Path, nap: str, what: str) -> None:
    size = nap[:7]
    inside(way, folder, LEFT[what].format(size if "memory" in what else nap))
    assert gone(nap)
    assert not Path("/tmp/kept").exists() and not Path("/dev/shm/kept").exists()
    assert inside(way, folder, "ls -A /tmp /dev/shm").count("kept") == 0
    assert size not in Path("/proc/sysvipc/shm").read_text().split()


def test_all_of_it_ends_with_the_process_outside(way: Sandbox, folder: Path, nap: str) -> None:
    with started(way, folder, f"setsid sleep {nap} & echo ready; sleep {nap}") as (child, _):
        child.kill()
        child.wait()
        assert gone(nap)


def test_all_of_it_ends_with_the_judge(way: Sandbox, folder: Path, nap: str) -> None:
    judge = (
        "import sys\nfrom pathlib import Path\nfrom bench.sandbox import *\nfrom bench.process import Limits\n"
        f"way = Sandbox(Level.{way.level.name}, means=Means.{way.means.name})\n"
        f"script = 'sleep {nap} & echo ready; sleep {nap}'\n"
        f"way.spawn(['sh', '-c', script], Limits(), Path({str(folder)!r}), sys.stdout, ()).wait()"
    )
    with subprocess.Popen([sys.executable, "-c", judge], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == b"ready\n"
        parent.kill()
    assert gone(nap)


def test_sleepers_would_be_found(way: Sandbox, folder: Path, nap: str) -> None:
    with started(way, folder, f"echo ready; exec sleep {nap}; sleep {nap}") as (child, _):
        pid = way.inner_pid(child)
        while not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0"):  # the shell names it as well
            time.sleep(0.01)
        assert sleepers(nap)


NAMES_ITSELF = "from bench.sandbox import *; way = reach('user'); print(way.level, way.by, sep='; ')"
IS_BOUND = f"""
from pathlib import Path
from bench.process import Limits
from bench.sandbox import *
for means in Means:
    way = Sandbox(Level.USER, means=means)
    if not why_not(Level.USER, means):
        with scratch_folder() as folder:
            script = "id -u; touch mine && echo writes; {BOMB}"
            print(way.run(["sh", "-c", script], Limits(wall_s=20, processes=16), folder).output, flush=True)
"""


def python(script: str, *before: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """How a script of this Python ends, behind other words of a command line."""
    argv = [*before, sys.executable, "-c", script]
    return subprocess.run(argv, env=os.environ | environment, cwd="/", capture_output=True, text=True, timeout=600)


@AS_ROOT
def test_an_ordinary_user_reaches_user_and_is_bound_by_its_limits() -> None:
    become = ["setpriv", f"--reuid={FIRST_UID - 1}", f"--regid={FIRST_UID - 1}", "--clear-groups", "--"]
    if python("import bench.sandbox", *become).returncode:
        pytest.skip("another user cannot read this installation")
    with tempfile.TemporaryDirectory() as theirs:
        os.chown(theirs, FIRST_UID - 1, FIRST_UID - 1)
        ran = python(IS_BOUND, *become, KCOURT_CACHE=theirs, KCOURT_TMPDIR=theirs, HOME=theirs)
    reaching = sum(way.level is Level.USER for way in WAYS)
    assert ran.stdout.count("65534\nwrites") == reaching, ran.stderr
    assert ran.stdout.count("ork") >= reaching


@pytest.fixture
def without_bubblewrap(tmp_path: Path) -> str:
    """A search path with every program of this machine but bwrap."""
    for folder in os.environ["PATH"].split(":"):
        for program in Path(folder).glob("*"):
            if program.name != "bwrap" and not (tmp_path / program.name).exists():
                (tmp_path / program.name).symlink_to(program)
    return str(tmp_path)


@pytest.mark.skipif(all(way.means is Means.BUBBLEWRAP for way in WAYS), reason="enclose does not work here")
def test_without_bubblewrap_the_level_stays_the_same(without_bubblewrap: str) -> None:
    ran = python(NAMES_ITSELF, PATH=without_bubblewrap)
    assert ran.stdout == f"{STRONGEST}; enclose\n", ran.stderr


def test_what_keeps_each_means_from_each_level_is_said(without_bubblewrap: str) -> None:
    no_namespaces = ["unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_mnt_namespaces; exec "$@"', "sh"]
    if subprocess.run([*no_namespaces, "true"]).returncode:
        pytest.skip("a user namespace to be poor in cannot be made here")
    ran = python(NAMES_ITSELF, *no_namespaces, PATH=without_bubblewrap)
    for said in ("full by bubblewrap: bwrap was not found", "user by enclose: enclose: new namespaces: ", "limits"):
        assert said in ran.stderr.splitlines()[-1]


@pytest.mark.parametrize("cap", [level for level in Level if level <= STRONGEST], ids=str)
def test_the_level_can_be_capped(cap: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_SANDBOX", str(cap))
    assert reach("limits").level is cap


def test_a_wrong_cap_is_refused_in_words(monkeypatch: pytest.MonkeyPatch, kcourt: Kcourt) -> None:
    monkeypatch.setenv("KCOURT_SANDBOX", "open")
    says = "KCOURT_SANDBOX: 'open' is no sandbox level; the levels are limits, user, full"
    with pytest.raises(UsageError, match=says):
        reach("limits")
    ran = kcourt("grade", "axpy", __file__, "--language", "c")
    assert ran.code == 2 and says in ran.err and "Traceback" not in ran.err


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


SIMD = """
#if defined(__x86_64__)
    float four[4];
    _mm_storeu_ps(four, _mm_add_ps(_mm_set1_ps(a), _mm_setzero_ps()));
    if (four[0] != a && a == a) abort();
#endif
"""
HONEST = {
    "OpenMP": "\n#pragma omp parallel for\n" + LOOP,
    "OpenMP with two threads": "\n#pragma omp parallel for num_threads(2)\n" + LOOP,
    "heap": f"float *t = malloc(n * 4); memcpy(t, x, n * 4); free(t); {LOOP}",
    "large heap": f"char *t = malloc(200 << 20); memset(t, 1, 200 << 20); free(t); {LOOP}",
    "aligned heap": f"float *t = aligned_alloc(64, 4096); t[0] = 1; free(t); {LOOP}",
    "math": f"volatile float s = sinf(a) + expf(a); (void)s; {LOOP}",
    "a thread that ends": f"pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); {LOOP}",
    "intrinsics": f"{SIMD} {LOOP}",
    "printing": f'printf("%g\\n", a); fflush(stdout); {LOOP}',
}


HEADERS_OF_HONEST = (
    "#if defined(__x86_64__)\n#include <immintrin.h>\n#endif\n"
    "static void *work(void *p) { return p; }\n" + on_load('puts("ready");')
)


def test_honest_c_works_and_leaves_no_folder(way: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_TMPDIR", str(tmp_path))
    report = graded_by(way, axpy_c("".join(f"{{ {body} }}\n" for body in HONEST.values()), HEADERS_OF_HONEST))
    assert report.outcome is Outcome.SOLVED, (report.detail, report.log)
    assert (report.sandbox, report.provenance["sandbox_by"]) == (str(way.level), way.by)
    assert list(tmp_path.iterdir()) == []


def test_honest_cpp_works(way: Sandbox) -> None:
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
    report = graded_by(way, source, CPP)
    assert report.outcome is Outcome.SOLVED, (report.detail, report.log)


@NEEDS_GFORTRAN
def test_honest_fortran_works(way: Sandbox) -> None:
    uses_its_runtime = HONEST_FORTRAN.replace(
        "  out = a", "  write (word, '(f8.3)') a\n  if (len_trim(word) == 0) error stop\n  out = a"
    ).replace("value :: a\n", "value :: a\n  character(len=32) :: word\n")
    report = graded_by(way, uses_its_runtime, Language.FORTRAN)
    assert report.outcome is Outcome.SOLVED, (report.detail, report.log)


def test_honest_numpy_works(way: Sandbox) -> None:
    body = "numpy.add(a * x, y, out=out); out *= numpy.linalg.norm([3.0, 4.0]) / 5"
    report = graded_by(way, axpy_py(body), PYTHON)
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
def test_python_is_shut_in_too(body: str, outcome: Outcome) -> None:
    report = graded(axpy_py(f"{body}; out[:] = a * x + y"), PYTHON)
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
