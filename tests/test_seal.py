"""The seal around an agent's client: what it cannot reach, what it still can, and that nothing of it is left."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from agent_node import DONE, READY, SECRET, NodeFiles
from agent_stub import StubJudge
from living import gone, new_nap, sleepers

from agent.answers import read_calls
from agent.harnesses import Command, WireFormat
from agent.seal import SKILL_PAGES, TOOLS, Seal, SealMode, check_seal, is_sealed
from agent.tools.staged import stage_tools
from bench.errors import ConfigError
from bench.judge.schemas import End, Header

ROOT = Path(__file__).resolve().parent.parent
CLAUDE = ROOT / ".agents" / "node_modules" / ".bin" / "claude"
# An ordinary user that owns nothing here.
ORDINARY_UID = 61183
pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@dataclass(frozen=True)
class Place:
    """A run directory of one node with two agents, as `uid` has it; the first agent is the one behind the seal."""

    root: Path
    uid: int
    seal: Seal

    @property
    def attempt(self) -> Path:
        return self.root / "agents/node-0/problem-0-worker-0/attempt-1"

    @property
    def folder(self) -> Path:
        return self.root / "shared/agent-1"

    def start(self, *argv: str, sealed: bool = True, needs: tuple[Path, ...] = ()) -> "subprocess.Popen[str]":
        before = self.seal.before(Command(argv, needs=needs), os.environ["PATH"], self.folder) if sealed else []
        become = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--"]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.attempt / "home"), "PYTHONPATH": str(TOOLS)}
        command = [*(become if self.uid != os.getuid() else []), *before, *argv]
        return subprocess.Popen(
            command,
            cwd="/" if sealed else self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def says(self, script: str, sealed: bool = True) -> str:
        """What a shell script prints there."""
        with self.start("sh", "-c", script, sealed=sealed) as child:
            return child.communicate(timeout=120)[0]


def make_place(root: Path, uid: int) -> Place:
    run, attempt = root / "run", root / "run/agents/node-0/problem-0-worker-0/attempt-1"
    texts = {
        "root.secret": "root secret",
        "agent-launch/setup.env": "what was launched",
        "judge/rank-0.json": "judge settings",
        "judge/rank-0/grades.db": "own rank's shard",
        "judge/rank-1/grades.db": "another rank's shard",
        "shared/agent-1/baseline.c": "start",
        "shared/agent-2/axpy.c": "another agent's work",
        "shared/tasks/axpy/baseline.c": "start",
        "shared/setups/mine/brief.json": "{}",
        "shared/setups/mine/skills/tiling/SKILL.md": "know-how",
        "shared/setups/other/brief.json": "another setup's",
        "agents/agent-0.json": "driver's settings",
        "agents/node-0/events.jsonl": "events",
        "agents/node-0/problem-0-worker-0/told/tokens-so-far": "17",
        "agents/node-0/problem-0-worker-0/attempt-1/tools.json": "{}",
        "agents/node-0/problem-0-worker-0/attempt-1/prompt.txt": "prompt",
        "agents/node-0/problem-0-worker-0/attempt-1/claude.log": "log",
        "agents/node-0/problem-1-worker-1/attempt-1/tools.json": "another agent's token",
    }
    for name, text in texts.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(text)
    for name in ("home", "calls"):
        (attempt / name).mkdir()
    stage_tools(run / "agents/node-0/tools", shown_at=TOOLS)
    for path in (root, *root.rglob("*")):
        os.chown(path, uid, uid)
    given = run / "shared/setups/mine"
    told = (attempt / "tools.json", attempt / "prompt.txt", attempt.parent / "told")
    sealed = Seal(
        read_only=(given, run / "shared/tasks/axpy", *told),
        writable=(run / "shared/agent-1", attempt / "home", attempt / "calls"),
        tools=run / "agents/node-0/tools",
        skills=given / "skills",
        # That of the tests may lie where another user cannot read.
        python=sys.executable if uid == os.getuid() else "/usr/bin/python3",
    )
    return Place(run, uid, sealed)


UIDS = {os.getuid(): "root" if os.getuid() == 0 else "user"} | ({ORDINARY_UID: "user"} if os.getuid() == 0 else {})


@pytest.fixture(scope="module", params=UIDS, ids=UIDS.get)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    # Not below tmp_path: another user may not enter that; nor in /tmp, which is an agent's own behind the seal.
    root = Path(tempfile.mkdtemp(dir="/var/tmp"))
    yield make_place(root, request.param)
    shutil.rmtree(root)


HIDDEN = {
    "the job secret": "root.secret",
    "what was launched": "agent-launch/setup.env",
    "the judge's settings": "judge/rank-0.json",
    "the shard of its rank": "judge/rank-0/grades.db",
    "the shard of another rank": "judge/rank-1/grades.db",
    "another agent's folder": "shared/agent-2/axpy.c",
    "what another setup is given": "shared/setups/other/brief.json",
    "another agent's token": "agents/node-0/problem-1-worker-1/attempt-1/tools.json",
    "the driver's settings": "agents/agent-0.json",
    "the driver's events": "agents/node-0/events.jsonl",
    "its own log": "agents/node-0/problem-0-worker-0/attempt-1/claude.log",
}


@pytest.mark.parametrize("what", HIDDEN)
def test_a_client_cannot_read(place: Place, what: str) -> None:
    read = f"cat {place.root / HIDDEN[what]} && echo REACHED"
    assert "REACHED" in place.says(read, sealed=False)
    assert "No such file" in place.says(read)


def test_a_client_sees_of_the_run_only_what_is_its_own(place: Place) -> None:
    seen = place.says(f"find {place.root} -type f -not -path '*/tasks/*' | sort").split()
    own = ["agents/node-0/problem-0-worker-0/attempt-1/prompt.txt"]
    own += ["agents/node-0/problem-0-worker-0/attempt-1/tools.json"]
    own += ["agents/node-0/problem-0-worker-0/told/tokens-so-far", "shared/agent-1/baseline.c"]
    own += ["shared/setups/mine/brief.json", "shared/setups/mine/skills/tiling/SKILL.md"]
    assert [path for path in seen if "agent-1/made" not in path] == [str(place.root / name) for name in own]


PROBES = {
    "the repository": f"ls {ROOT / 'bench'} {ROOT / 'tests'} {ROOT / 'tasks'} {ROOT / 'pyproject.toml'}",
    "the judge's code": f"find {TOOLS} {sys.prefix} -name grade.py -path '*bench*' | grep .",
    "homes": "ls -A /home/* | grep .",
    "other temporary files": "ls /tmp /dev/shm | grep kc-other-{pid}",
    "shadow passwords": "cat /etc/shadow",
    "private keys": "ls /etc/ssl/private",
    "mounted file systems": "ls -A /mnt /media /srv /run /boot | grep .",
    "the driver's process": "cat /proc/{pid}/environ",
    "a process that is not its own": "ls -d /proc/[0-9]*/exe | wc -l | grep -vE '^[1-6]$'",
    "a driver's key": "(env; cat /proc/*/environ) | grep -a must-not-be-inherited",
    "the driver's memory": "head -c1 /proc/{pid}/mem",
    "the driver by a signal": "kill -0 {pid}",
    "settings of the machine": "test -w /proc/sys/kernel/core_pattern || test -w /proc/irq",
    "capabilities": "grep -E 'Cap(Inh|Prm|Eff|Amb):.*[1-9a-f]' /proc/self/status",
    "new privileges": "grep -E 'NoNewPrivs:.*0' /proc/self/status",
    "a setuid program": 'cp /usr/bin/id made && chmod 6755 made && test "$(./made -u)" != "$(id -u)"',
    "another user": "setpriv --reuid=0 true",
    "a user namespace": "unshare -Ur true",
    "a mount": "mount -t tmpfs none /tmp",
    "devices": "ls -A /dev | grep -vE '^(core|fd|full|null|ptmx|pts|u?random|shm|stderr|stdin|stdout|tty|zero)$'",
}


@pytest.fixture
def others() -> Iterator[None]:
    """Files of others where everybody may write."""
    files = [Path(folder) / f"kc-other-{os.getpid()}" for folder in ("/tmp", "/dev/shm")]
    for file in files:
        file.touch()
    yield
    for file in files:
        file.unlink()


@pytest.mark.parametrize("what", PROBES)
def test_a_client_does_not_reach(place: Place, what: str, others: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOURT_TEST_KEY", "must-not-be-inherited")
    script = PROBES[what].format(pid=os.getpid())
    said = place.says(f"({script}) && echo REACHED; echo tried")
    assert "REACHED" not in said and said.endswith("tried\n")


READ_ONLY = {
    "its start material": "shared/tasks/axpy/baseline.c",
    "what it was given": "shared/setups/mine/brief.json",
    "skills by their path": "shared/setups/mine/skills/tiling/SKILL.md",
    "skills": SKILL_PAGES / "tiling/SKILL.md",
    "its tools' settings": "agents/node-0/problem-0-worker-0/attempt-1/tools.json",
    "its prompt": "agents/node-0/problem-0-worker-0/attempt-1/prompt.txt",
    "the count of its tokens": "agents/node-0/problem-0-worker-0/told/tokens-so-far",
    "its tools": TOOLS / "agent/tools/server.py",
    "the toolchain": "/usr/bin/env",
    "accounts": "/etc/passwd",
}


@pytest.mark.parametrize("what", READ_ONLY)
def test_a_client_reads_but_cannot_write(place: Place, what: str) -> None:
    path = place.root / READ_ONLY[what]
    tries = (f"echo x >> {path}", f"rm -f {path}", f"mv {path} {path}.old", f"touch {path.parent}/made")
    said = place.says(f"cat {path} > /dev/null && echo read; " + "; ".join(f"({one}) && echo REACHED" for one in tries))
    assert said.startswith("read\n") and "REACHED" not in said


def test_a_client_writes_its_folder_its_home_and_its_calls_alone(place: Place) -> None:
    said = place.says("find / -xdev -writable -not -type l 2>/dev/null; mount | grep -E '[(]rw' | cut -d' ' -f3")
    mine = {str(place.folder), str(place.attempt / "home"), str(place.attempt / "calls")}
    private = {"/proc", "/tmp", "/dev/shm", "/dev/pts", "/dev/null", "/dev/zero", "/dev/full", "/dev/random"}
    found = {path for path in said.split() if not path.startswith(("/proc/", "/dev/"))}
    assert found - private == mine


WORKS = {
    "a compiler": "echo 'int main(void) { return 0; }' > made.c && gcc -fopenmp made.c && ./a.out && echo works",
    "Python": "python3 -c 'print(\"works\")'",
    "its tools": f"{sys.executable} -P -c 'import agent.tools.server, httpx, pydantic; print(\"works\")'",
    "the command for tools": "test -x /opt/kcourt/bin/kcourt && echo works",
    "its own folder": "echo works > made.txt && cat made.txt",
    "its home": "echo works > $HOME/made && cat $HOME/made && rm $HOME/made",
    "skills": f"test know-how = $(cat {SKILL_PAGES}/tiling/SKILL.md) && echo works",
    "temporary files": "echo works > /tmp/made && cat /tmp/made",
    "its user's name": "id -un > /dev/null && echo works",
    "Node": "! command -v node > /dev/null || node -p 'os.userInfo().homedir' > /dev/null && echo works",
}


@pytest.mark.parametrize("what", WORKS)
def test_a_client_can_use(place: Place, what: str) -> None:
    if what == "its tools" and place.uid != os.getuid():
        pytest.skip("another user cannot read this installation")
    assert place.says(WORKS[what]).splitlines()[-1:] == ["works"]


def test_a_client_reaches_its_judge_and_its_model(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        knock = f"echo hello > /dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        assert place.says(f'bash -c "{knock}" && echo works') == "works\n"
        with server.accept()[0] as connection:
            assert connection.recv(16) == b"hello\n"


LEFT = {
    "children": "sleep {nap} & sleep {nap} &",
    "grandchildren in other process groups": "setsid sh -c 'setsid sleep {nap} & sleep {nap}' > /dev/null &",
    "what ignores signals": "nohup sh -c 'trap \"\" TERM HUP; sleep {nap}' > /dev/null 2>&1 &",
    "files": "touch /tmp/kept-{nap} /dev/shm/kept-{nap}",
    "shared memory": "ipcmk -M {size} > /dev/null",
}


@pytest.mark.parametrize("what", LEFT)
def test_nothing_of_a_client_is_left(place: Place, what: str) -> None:
    nap = new_nap()
    size = nap[:7]
    assert place.says(LEFT[what].format(nap=nap, size=size) + "\necho done").endswith("done\n")
    assert gone(nap)
    assert not list(Path("/tmp").glob(f"kept-{nap}")) and not list(Path("/dev/shm").glob(f"kept-{nap}"))
    assert size not in Path("/proc/sysvipc/shm").read_text().split()


def test_all_of_a_client_ends_with_the_process_outside(place: Place) -> None:
    nap = new_nap()
    child = place.start("sh", "-c", f"setsid sleep {nap} & echo ready; sleep {nap}")
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
        child.wait(60)
    assert gone(nap)


@pytest.mark.parametrize(("argv", "code"), [(("/no/such/client",), 127), (("/etc/passwd",), 126), (("false",), 1)])
def test_the_end_of_a_client_comes_through(place: Place, argv: tuple[str, ...], code: int) -> None:
    with place.start("setpriv", "--", *argv) as child:
        child.communicate(timeout=60)
    assert child.returncode == code


@pytest.mark.skipif(not CLAUDE.exists(), reason="`make setup-agents` installs the clients")
def test_the_real_client_starts(place: Place) -> None:
    with place.start(str(CLAUDE), "--version") as child:
        assert "Claude Code" in child.communicate(timeout=120)[0]


PROGRAMS = {
    "npm package": ("pkg/node_modules/.bin/client", "../client/cli.sh"),
    "link to a file": ("bin/client", "../share/client/cli.sh"),
    "chain of links": ("bin/client", "../bin/other"),
    "script of an interpreter elsewhere": ("bin/client", None),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_client_is_shown_with_what_it_needs_and_no_more(place: Place, tmp_path: Path, what: str) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        root = Path(made)
        root.chmod(0o755)
        script = '#!/bin/sh\necho works; cat "$(dirname "$(readlink -f "$0")")/data"\n'
        files = {
            "pkg/node_modules/client/cli.sh": script,
            "pkg/node_modules/client/data": "data\n",
            "pkg/other": "",
            "share/client/cli.sh": script,
            "share/client/data": "data\n",
            "opt/runs": "#!/bin/sh\necho works\n",
        }
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
            (root / name).chmod(0o755)
        client, target = PROGRAMS[what]
        (root / client).parent.mkdir(exist_ok=True)
        if target:
            (root / client).symlink_to(target)
            (root / "bin/other").parent.mkdir(exist_ok=True)
            (root / "bin/other").symlink_to("../share/client/cli.sh")
        else:
            (root / client).write_text(f"#!{root}/opt/runs -x\n")
            (root / client).chmod(0o755)
        with place.start(str(root / client)) as child:
            said = child.communicate(timeout=60)[0]
        assert said.startswith("works\n")
        assert ("data" in said.split()) == (what == "npm package")
        assert "No such file" in place.says(f"ls {root}/pkg/other")


def test_an_installation_in_sight_shows_no_judge(place: Place) -> None:
    if place.uid != os.getuid():
        pytest.skip("another user cannot read this installation")
    with place.start("ls", str(ROOT), str(ROOT / "bench"), str(ROOT / "tasks"), needs=(ROOT,)) as child:
        seen = child.communicate(timeout=60)[0].split()
    assert {"pyproject.toml", "bench", "tasks"} <= set(seen) and not {"sandbox.py", "axpy"} & set(seen)


@pytest.mark.parametrize(
    ("mode", "wire_format", "sealed"),
    [
        ("auto", "messages", True),
        ("auto", "chat", True),
        ("auto", "none", False),
        ("required", "none", True),
        ("off", "messages", False),
    ],
)
def test_what_a_model_drives_is_sealed(mode: SealMode, wire_format: WireFormat, sealed: bool) -> None:
    assert is_sealed(mode, wire_format) == sealed


def test_a_run_where_everybody_can_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="/usr/local/runs: lies where every sealed agent can read"):
        check_seal((Path("/var/tmp"), Path("/usr/local/runs")))


def test_without_bubblewrap_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = NodeFiles(tmp_path, ["http://127.0.0.1:9"], seal="required")
    node.script("s", [], ["axpy"])
    monkeypatch.setenv("PATH", str(tmp_path))
    driver = node.start()
    _, said = driver.communicate(timeout=240)
    assert driver.returncode == 1 and "Traceback" not in said
    for word in ("bwrap was not found", "apt-get install bubblewrap", "AGENT_SEAL=off"):
        assert word in said
    assert not list(node.run_dir.glob("problem-*"))


FORGER = """
import glob, json, os, pathlib, urllib.error, urllib.request
attempt = pathlib.Path(os.environ["HOME"]).parent
tools = json.loads((attempt / "tools.json").read_text())
print(READY, flush=True)
def submit(token):
    body = {"kernel": "axpy", "language": "c", "rank": 0, "source": "/* solved */"}
    headers = {"Authorization": "Bearer " + token, "Idempotency-Key": token, "Kcourt-Attempt": "1"}
    request = urllib.request.Request(tools["judge_urls"][0] + "/submit", json.dumps(body).encode(), headers)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
print(submit(tools["token"].replace(".p0.w0", ".p1.w1").replace(".p1.w0", ".p0.w1")))
print(submit(tools["token"]))
print(os.environ, *(pathlib.Path(path).read_text() for path in glob.glob("/proc/[0-9]*/environ")))
root = attempt.parents[3]
print("seen:", *root.rglob("root.secret"), *root.rglob("agent-[0-9]"))
print(DONE)
"""


def test_an_agent_has_its_own_token_and_no_key(tmp_path: Path) -> None:
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path, [judge.url], seal="required")
        node.rogue("s", ["axpy"], script=FORGER.replace("READY", repr(READY)).replace("DONE", repr(DONE)))
        assert node.run()["ends"] == {"finished": 1}
    attempt = node.episode("s", "axpy") / "attempt-1"
    _, forged, own, environment, seen, _ = (attempt / "rogue.log").read_text().splitlines()
    assert (forged, own) == ("401", "200")
    assert "PATH" in environment and "must-not-be-inherited" not in environment
    assert seen.split()[1:] == [str(node.root / "shared/agent-1")]
    assert [event["sealed"] for event in node.events("attempt_started")] == [True]


def test_a_sealed_script_plays_as_an_open_one(tmp_path: Path) -> None:
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path, [judge.url], seal="required")
        node.script("s", [{"tool": tool, "source": "/* solved */"} for tool in ("score", "submit")], ["axpy"])
        assert node.run()["ends"] == {"submitted": 1}
    preview, submit = judge.seen
    assert (preview.headers[Header.ATTEMPT], submit.route) == ("1", "/submit")
    calls = node.episode("s", "axpy") / "attempt-1" / "calls"
    assert [call.route for call in read_calls(calls / "answers.jsonl")] == ["score", "submit"]
    assert [path.read_text() for path in calls.glob("scored-*.c")] == ["/* solved */"]


PENDING = {"key": "k", "tokens": 0, "request": {"kernel": "axpy", "language": "c", "source": "/* solved */"}}
PLANTED = {
    "link": "ln -s {victim} $calls/answers.jsonl",
    "pipe": "mkfifo $calls/answers.jsonl",
    "folder": "mkdir $calls/answers.jsonl",
    "unreadable": "touch $calls/answers.jsonl; chmod 0 $calls/answers.jsonl",
}


def test_a_driver_follows_nothing_that_an_agent_planted(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    pend = f"echo '{json.dumps(PENDING)}' > $calls/pending.json"
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path / "node", [judge.url], seal="required", failover=False)
        for what, plant in PLANTED.items():
            shell = f"calls=$HOME/../calls; echo '{READY}'; {plant.format(victim=victim)}; {pend}; echo '{DONE}'"
            node.rogue(what, ["axpy"], shell=shell)
        node.run()
    assert victim.read_text() == "untouched"
    # Of a file that it may not read, a driver who is root reads what there is: nothing, so it asks again.
    assert {node.record(what, "axpy").end for what in PLANTED} <= {End.FINISHED, End.SUBMITTED}


def test_a_driver_promotes_no_other_agents_file(tmp_path: Path) -> None:
    answer = {"kernel": "axpy", "rank": 0, "outcome": "solved", "score": 2.0, "protocol": "mw2x5"}
    call = {"at": "", "route": "score", "key": "k", "tokens": 0}
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path / "node", [judge.url], seal="required")
        for number, grade_id in enumerate((str(tmp_path / "theirs"), "../../../../theirs", "linked")):
            line = json.dumps(call | {"answer": answer | {"grade_id": grade_id}})
            plant = f"echo '{line}' > $calls/answers.jsonl; ln -s {tmp_path}/theirs.c $calls/scored-linked.c"
            shell = f"calls=$HOME/../calls; echo '{READY}'; {plant}; echo '{DONE}'"
            node.rogue(f"s{number}", ["axpy"], shell=shell)
        (tmp_path / "theirs.c").write_text("/* solved */")
        assert node.run()["ends"] == {"finished": 3}
    assert judge.seen == []


def test_a_killed_driver_takes_sealed_clients_along(tmp_path: Path) -> None:
    nap = new_nap()
    node = NodeFiles(tmp_path, ["http://127.0.0.1:9"], seal="required")
    node.rogue("s", ["axpy"], shell=f"echo '{READY}'; setsid sleep {nap} & exec sleep {nap}")
    driver = node.start()
    deadline = time.monotonic() + 120
    while len(sleepers(nap)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    driver.kill()
    driver.communicate(timeout=120)
    assert gone(nap)
