"""Processes: limits that bind, a closed stdin, capped output, nothing left behind, words for a missing program."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from living import ended, family, gone, new_nap

from bench import process
from bench.errors import EnvironmentFault, UsageError
from bench.process import Completed, Limits, run
from bench.sandbox import Level, Sandbox, reach, scratch_folder, sweep_scratch


def python(code: str, limits: Limits = Limits()) -> Completed:
    return run([sys.executable, "-c", code], limits=limits)


@pytest.fixture
def nap() -> str:
    return new_nap()


def test_a_command_runs_to_its_end() -> None:
    done = run(["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert (done.returncode, done.output, done.timed_out, done.ok, done.signal) == (7, "out\nerr\n", False, False, None)
    assert run(["true"]).ok


def test_stdin_is_closed() -> None:
    assert run(["cat"], limits=Limits(wall_s=10)).output == ""


def test_the_wall_clock_ends_it(nap: str) -> None:
    done = run(["sleep", nap], limits=Limits(wall_s=0.1))
    assert done.timed_out and not done.ok
    assert gone(nap)


@pytest.mark.parametrize(
    ("code", "limits", "ends_by"),
    [
        ("while True: pass", Limits(cpu_s=1, wall_s=120), {signal.SIGXCPU, signal.SIGKILL}),
        ("import os; os.abort()", Limits(), {signal.SIGABRT}),
    ],
    ids=["cpu", "abort"],
)
def test_a_signal_ends_it(code: str, limits: Limits, ends_by: set[signal.Signals]) -> None:
    done = python(code, limits)
    assert done.signal in ends_by and not done.timed_out


def test_memory_is_limited() -> None:
    done = python("bytearray(1 << 32)", Limits(memory_bytes=1 << 30))
    assert done.returncode == 1 and "MemoryError" in done.output
    assert python("bytearray(1 << 20)", Limits(memory_bytes=1 << 30)).ok


def test_file_size_is_limited() -> None:
    done = run(["head", "-c", "3000000", "/dev/zero"], limits=Limits(file_bytes=1 << 20))
    assert done.signal == signal.SIGXFSZ


@pytest.mark.skipif(os.getuid() == 0, reason="the kernel does not limit root's number of processes")
def test_processes_are_limited() -> None:
    done = run(["sh", "-c", "for i in $(seq 99); do sleep 1 & done; wait"], limits=Limits(processes=3))
    assert "fork" in done.output.lower()


def test_limits_leave_no_core_dump(tmp_path: Path) -> None:
    run([sys.executable, "-c", "import os; os.abort()"], cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_output_keeps_head_and_tail() -> None:
    done = python("print('first'); print('x' * 1_000_000); print('last')")
    assert done.ok
    assert len(done.output) < process.OUTPUT_CAP_BYTES + 100
    assert done.output.startswith("first\n") and done.output.endswith("last\n")
    assert "bytes left out" in done.output


def test_output_that_is_no_text_is_kept_readable() -> None:
    assert python(r"import sys; sys.stdout.buffer.write(b'a\xffb')").output == "a�b"


def test_what_a_command_leaves_in_its_session_is_killed(nap: str) -> None:
    assert run(["sh", "-c", f"sleep {nap} & sleep {nap} & exit 0"]).ok
    assert gone(nap)


def test_a_timeout_reaches_a_grandchild_in_a_session_of_its_own(nap: str) -> None:
    code = f"setsid sh -c 'echo born; exec sleep {nap}' & wait"
    for wall_s in (0.5, 5, 50):  # the longer ones for a machine too busy to start it in time
        done = run(["sh", "-c", code], limits=Limits(wall_s=wall_s))
        assert done.timed_out
        assert gone(nap)
        if "born" in done.output:
            break
    assert "born" in done.output


SWEEPER = """
import subprocess, sys, time
from bench import process
process.adopt_orphans()
kept = process.spawn(["sleep", sys.argv[1] + "1"])
done = process.run(["sh", "-c", f"setsid sh -c 'setsid sleep {sys.argv[1]} & exec sleep {sys.argv[1]}' & "
                    "until [ $(pgrep -cx -f 'sleep {0}') = 2 ]; do :; done".format(sys.argv[1])])
assert done.ok, done
print(process.sweep({kept.pid}), process.sweep({kept.pid}), kept.poll())
process.kill_tree(kept)
"""


def test_a_sweep_kills_orphans_that_hid_in_sessions_of_their_own(nap: str) -> None:
    done = subprocess.run([sys.executable, "-c", SWEEPER, nap], capture_output=True, text=True, timeout=120)
    assert done.stdout == "2 0 None\n", done.stderr
    assert gone(nap) and gone(f"{nap}1")


PARENT = """
import sys
from bench import process
child = process.spawn([sys.executable, "-c", "from bench import process; process.die_with_parent();"
                       "import time; print('up', flush=True); time.sleep(600)"], output=1)
child.wait()
"""


def test_a_process_dies_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == b"up\n"
        (child,) = family(parent.pid)
        parent.kill()
        assert ended([child.pid])


@pytest.mark.parametrize(("ignores", "grace_s"), [(False, 300.0), (True, 0.2)], ids=["obeys", "ignores"])
def test_terminate_asks_and_then_kills(ignores: bool, grace_s: float) -> None:
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN);" if ignores else ""
    code = f"import signal, time; {ignore} print('up', flush=True); time.sleep(600)"
    child = process.spawn([sys.executable, "-c", code], output=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"up\n"
    start = time.monotonic()
    assert process.terminate(child, grace_s) == (-signal.SIGKILL if ignores else -signal.SIGTERM)
    assert time.monotonic() - start < 200
    child.stdout.close()


@pytest.mark.parametrize("limits", [Limits(wall_s=5), Limits()], ids=["wall", "none"])
def test_a_missing_program_is_named(limits: Limits) -> None:
    with pytest.raises(EnvironmentFault, match="'no-such-program' was not found; install it or put it on PATH"):
        run(["no-such-program", "--flag"], limits=limits)
    with pytest.raises(EnvironmentFault, match="'no-such-program' was not found"):
        process.spawn(["no-such-program"])


@pytest.mark.parametrize("level", Level)
def test_a_level_is_read_by_its_name(level: Level) -> None:
    assert Level.parse(str(level)) is level
    assert Level.LIMITS < Level.USER < Level.FULL


def test_an_unknown_level_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match="'container' is no sandbox level; the levels are limits, user, full"):
        reach("container")


@pytest.mark.parametrize("wanted", ["user", "full"])
def test_a_level_that_is_not_reached_says_how_to_accept_less(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_SANDBOX", "limits")
    with pytest.raises(EnvironmentFault, match=f"'{wanted}' is asked for .*; say --allow-sandbox limits"):
        reach(wanted)


def test_a_sandbox_hands_nothing_of_the_judges_environment_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_TOKEN", "secret")
    done = Sandbox(Level.LIMITS, {"OMP_NUM_THREADS": "3"}).run(["env"], Limits(), tmp_path)
    names = {line.partition("=")[0] for line in done.output.splitlines()}
    assert names == {"PATH", "HOME", "TMPDIR", "LC_ALL", "OMP_WAIT_POLICY", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
    assert f"HOME={tmp_path}\n" in done.output


def test_a_scratch_folder_is_private_and_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_TMPDIR", str(tmp_path))
    with scratch_folder() as folder:
        (folder / "left.o").write_text("")
        assert folder.parent == tmp_path and folder.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_TMPDIR", str(tmp_path))
    holder = (
        "import os, signal\nfrom bench.sandbox import scratch_folder\n"
        "with scratch_folder() as folder:\n    (folder / 'kept').touch()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", holder]).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    (tmp_path / "kcourt-study").mkdir()
    with scratch_folder() as held:
        assert sweep_scratch() == 0 and left.is_dir()  # it may be one whose owner has just made it
        for folder in tmp_path.iterdir():
            os.utime(folder, (0, 0))
        assert sweep_scratch() == 1
        assert {path.name for path in tmp_path.iterdir()} == {held.name, "kcourt-study"}


def test_a_missing_folder_is_not_taken_for_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=rf"'{tmp_path}/none' was not found; make that folder"):
        run(["true"], cwd=tmp_path / "none")


def test_who_is_killed_with_its_children_sees_none_of_them_end(tmp_path: Path) -> None:
    for number in range(20):
        noted = tmp_path / f"noted-{number}"
        child = process.spawn(["sh", "-c", f"sleep 600; echo ended > {noted}"])
        while not process.descendants(child.pid):
            assert child.poll() is None
        process.kill_tree(child)
        assert not noted.exists()
