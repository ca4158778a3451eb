"""What an agent node does with clients that misbehave: real processes, no judge."""

import contextlib
import json
import os
import signal
import sys
import time
from datetime import datetime
from pathlib import Path

import psutil
import pytest
from agent_node import DONE, READY, NodeFiles, finished
from living import ended, family

from bench.judge.schemas import End

URLS = ["http://127.0.0.1:9"]
SAY_READY, SAY_DONE = f"echo '{READY}'", f"echo '{DONE}'"


@pytest.fixture
def node(tmp_path: Path) -> NodeFiles:
    return NodeFiles(tmp_path, URLS)


def test_ends_come_from_the_stream_and_never_from_exit_codes(node: NodeFiles) -> None:
    shells = {
        "finished": f"{SAY_READY}; {SAY_DONE}; exit 7",
        "api": f"""{SAY_READY}; echo '{{"end": "api"}}'; exit 0""",
        "context": f"""{SAY_READY}; echo '{{"end": "context"}}'; exit 1""",
        "lingers": f"{SAY_READY}; {SAY_DONE}; sleep 300",
        "closes": f"{SAY_READY}; {SAY_DONE}; exec >&- 2>&-; sleep 300",
        "wordless": f"{SAY_READY}; exit 0",
        "wrong-tools": """echo '{"tools": ["score"]}'; sleep 300""",
        "no-tools-exit": f"{SAY_DONE}",
        "missing": "exec /no/such/program",
        "garbage": f"""head -c 99999 /dev/urandom; echo; echo '{{"tools": 3}}'; {SAY_READY}; {SAY_DONE}""",
        "greedy": f"""{SAY_READY}; echo '{{"tokens": 200000000}}'; sleep 300""",
        "deaf": f"""trap '' TERM; {SAY_READY}; {SAY_DONE}; while :; do sleep 1; done""",
    }
    for setup, shell in shells.items():
        node.rogue(setup, ["axpy"], shell=shell)
    flood = f"{SAY_READY}; yes \"$(printf '%8000s')\""
    node.add("floods", ["axpy"], {"shell": flood}, harness="rogue", budget={"timeout_s": 2})
    node.rogue("absent", ["axpy"], program="/no/such/client")
    node.settings |= {"workers": 8, "crash_attempts": 2, "exit_grace_s": 0.3}
    node.run()
    seen = {setup: node.record(setup, "axpy") for setup in node.setups}
    expected = {
        "finished": (End.FINISHED, 1),
        "api": (End.API, 1),
        "context": (End.CONTEXT, 1),
        "lingers": (End.FINISHED, 1),
        "closes": (End.FINISHED, 1),
        "wordless": (End.CRASH, 2),
        "wrong-tools": (End.TOOLS_UNAVAILABLE, 2),
        "no-tools-exit": (End.TOOLS_UNAVAILABLE, 2),
        "missing": (End.START_FAILED, 1),
        "garbage": (End.FINISHED, 1),
        "greedy": (End.TOKENS, 1),
        "deaf": (End.FINISHED, 1),
        "floods": (End.TIME, 1),
        "absent": (End.START_FAILED, 1),
    }
    assert {setup: (record.end, record.attempts) for setup, record in seen.items()} == expected
    why = {
        "wordless": "exited with code 0 and without a result",
        "wrong-tools": "announced the tools score; expected score, submit, syntax_check",
        "no-tools-exit": "announced the tools none; expected score, submit, syntax_check",
    }
    for setup in expected:
        log = (node.episode(setup, "axpy") / "attempt-1" / "rogue.log").read_bytes()
        said = [line.decode() for line in log.splitlines() if line.startswith(b"[driver]")]
        assert said == ([f"[driver] the client {why[setup]}"] if setup in why else []) or setup in ("missing", "absent")


SILENT = {
    "stalls": ({"idle_timeout_s": 1}, f"{SAY_READY}; sleep 300", End.CRASH),
    "no-tools": ({"ready_timeout_s": 1}, "sleep 300", End.TOOLS_UNAVAILABLE),
}


@pytest.mark.parametrize(("limit", "shell", "end"), SILENT.values(), ids=SILENT)
def test_silence_ends_an_attempt(node: NodeFiles, limit: dict[str, float], shell: str, end: End) -> None:
    node.settings |= limit | {"crash_attempts": 2}
    node.rogue("s", ["axpy"], shell=shell)
    node.run()
    assert (node.record("s", "axpy").end, node.record("s", "axpy").attempts) == (end, 2)


def test_exit_code_and_what_was_not_reported_are_kept(node: NodeFiles) -> None:
    node.rogue("s", ["axpy"], shell=f"{SAY_READY}; {SAY_DONE}; exit 7")
    node.run()
    record = node.record("s", "axpy")
    assert (record.end, record.exit_code, record.tokens_output) == (End.FINISHED, 7, None)


def test_nothing_that_a_client_started_survives_it(node: NodeFiles, tmp_path: Path) -> None:
    go = tmp_path / "go"
    sleep = "os.execlp('sleep', 'sleep', '300')"
    daemon = f"import os\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: {sleep}\n os._exit(0)"
    escapes = f'{sys.executable} -S -c "{daemon}" & setsid sleep 300 & (sleep 300 &)'
    waits = f"until [ -e {go} ]; do sleep 0.05; done"
    node.rogue("s", ["axpy"], shell=f"{SAY_READY}; {escapes}; {waits}; {SAY_DONE}")
    driver = node.start()
    sleepers = until_sleeping(driver.pid, 3)
    go.touch()
    finished(driver)
    assert ended([sleeper.pid for sleeper in sleepers])


def command(process: psutil.Process) -> list[str]:
    """Its arguments; none when it has ended meanwhile."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def until_sleeping(pid: int, count: int) -> list[psutil.Process]:
    """Wait for `count` processes `sleep 300` below a driver."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        # The shells and interpreters that start them name it within one argument.
        found = [child for child in family(pid, "300") if "sleep" in command(child)[:1]]
        if len(found) == count:
            return found
        time.sleep(0.02)
    raise AssertionError("no clients")


def test_client_gets_a_home_of_its_own_and_no_inherited_secrets(node: NodeFiles) -> None:
    cpu = min(os.sched_getaffinity(0))
    node.settings["cpus"] = (cpu,)
    show = (
        "import json,os; print(json.dumps({'env': dict(os.environ), 'nice': os.nice(0), 'cwd': os.getcwd(),"
        "'cpus': sorted(os.sched_getaffinity(0)), 'stdin': os.read(0, 1).decode()}))"
    )
    script = f"{show}; print('{READY}'); print('{DONE}')"
    node.rogue("s", ["axpy", "gelu"], script=script)
    node.run()
    shown = []
    for kernel in ("axpy", "gelu"):
        log = node.episode("s", kernel) / "attempt-1" / "rogue.log"
        shown.append(json.loads(log.read_text().splitlines()[0]))
    homes = {look["env"]["HOME"] for look in shown}
    assert len(homes) == 2
    assert all(home.startswith(str(node.run_dir)) for home in homes)
    for look in shown:
        assert "KCOURT_TEST_KEY" not in look["env"]
        assert str(node.secret_file) not in json.dumps(look)
        assert (look["nice"], look["cpus"], look["stdin"]) == (max(10, os.nice(0)), [cpu], "")
        assert Path(look["cwd"]).name.startswith("agent-")


def test_lost_episode_process_costs_only_its_own_episode(node: NodeFiles) -> None:
    node.rogue("victim", ["axpy"], shell=f"{SAY_READY}; setsid sleep 300 & sleep 300")
    node.rogue("other", ["axpy"], shell=f"{SAY_READY}; sleep 0.5; {SAY_DONE}")
    driver = node.start()
    sleepers = until_sleeping(driver.pid, 2)
    episodes = family(driver.pid, recursive=False)
    victim = next(episode for episode in episodes if episode in sleepers[0].parents())
    victim.kill()
    assert finished(driver)["ends"] == {"crash": 1, "finished": 1}
    assert ended([sleeper.pid for sleeper in sleepers])
    assert node.record("victim", "axpy").attempts == 1


def test_killed_driver_takes_its_clients_along(node: NodeFiles) -> None:
    node.rogue("s", ["axpy"], shell=f"{SAY_READY}; exec sleep 300")
    driver = node.start()
    until_sleeping(driver.pid, 1)
    seen = [child.pid for child in family(driver.pid)]
    driver.send_signal(signal.SIGKILL)
    driver.communicate(timeout=120)
    assert ended(seen)


def test_sixty_episodes_at_six_workers_keep_the_driver_small(tmp_path: Path) -> None:
    sizes = []
    for count in (6, 60):
        node = NodeFiles(tmp_path / str(count), URLS, workers=6)
        kernels = [f"kernel{number}" for number in range(count)]
        node.rogue("s", kernels, shell=f"{SAY_READY}; {SAY_DONE}")
        report = node.run()
        assert report["ends"] == {"finished": count}
        workers = {json.loads(path.read_text())["worker"] for path in node.run_dir.glob("*/tokens.json")}
        assert workers == set(range(6))
        sizes.append(report["kib"])
    assert sizes[1] - sizes[0] < 4096


def test_starts_are_staggered(node: NodeFiles) -> None:
    node.settings |= {"workers": 3, "start_stagger_s": 1}
    node.rogue("s", ["axpy", "gelu", "sgemm"], shell=f"{SAY_READY}; {SAY_DONE}")
    node.run()
    first, _, last = (datetime.fromisoformat(event["at"]) for event in node.events("episode_started"))
    # Nominally two seconds; a busy machine may start the first one late.
    assert (last - first).total_seconds() >= 0.5


def test_a_node_whose_clients_all_fail_starts_no_more_of_them(node: NodeFiles) -> None:
    node.rogue("absent", ["axpy", "sgemm", "gelu", "nbody", "rmsnorm"], program="/no/such/client")
    node.settings |= {"workers": 1, "give_up_after": 2}
    report = node.run(expect=70)
    assert (report["ends"], report["planned"], report["gave_up"]) == ({"start_failed": 2}, 5, True)


def test_a_client_that_fails_here_and_there_stops_nobody(node: NodeFiles) -> None:
    for number in range(3):
        node.rogue(f"absent{number}", ["axpy"], program="/no/such/client")
        node.rogue(f"fine{number}", ["axpy"], shell=f"{SAY_READY}; {SAY_DONE}")
    node.settings |= {"workers": 1, "give_up_after": 2}
    report = node.run()
    assert (report["ends"], report["gave_up"]) == ({"start_failed": 3, "finished": 3}, False)
