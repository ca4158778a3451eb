"""Episodes of each harness's client, driven by a scripted model; sealed where bubblewrap is there."""

import json
import os
import re
import shutil
import subprocess
import threading
import tomllib
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from agent_node import SECRET, NodeFiles
from agent_stub import StubJudge
from fake_clients import put_fakes
from living import gone, new_nap
from scripted_model import ScriptedModel, read_script
from test_harnesses import PAGE, followed, launch_in

from agent.answers import read_calls
from agent.harnesses import load_harness
from agent.harnesses.clients import INSTALLED
from bench.judge.schemas import End

# The nodes are dear: one worker of a parallel run plays them, one after the other.
pytestmark = pytest.mark.xdist_group("clients")
MODEL, TURN_TOKENS = "served-model", 130
SOLVED, WRONG = "/* solved */\n", "/* wrong */\n"
SEAL = "auto" if shutil.which("bwrap") else "off"
codex_is_here = pytest.mark.skipif(not os.access(INSTALLED / "codex", os.X_OK), reason="run `make setup-agents`")


def node_for(root: Path, judge: str, model: str, **settings: Any) -> NodeFiles:
    service = {"urls": [model], "model": MODEL, "wires": ["chat", "responses"]}
    return NodeFiles(root, [judge], service=service, seal=SEAL, crash_attempts=1, **settings)


def write(kernel: str, source: str = SOLVED) -> dict[str, Any]:
    return {"write": f"{kernel}.c", "source": source}


def calls_of(node: NodeFiles, setup: str, turns: Sequence[int]) -> list[tuple[str, str]]:
    """Route and outcome of each call of that setup's only episode, made in these of its turns.

    The tokens on a call are what the driver had counted: it may not have read of the latest turns yet.
    """
    calls = read_calls(node.episode(setup, setup) / "attempt-1" / "calls" / "answers.jsonl")
    counted = [call.tokens // TURN_TOKENS for call in calls]
    assert [turn - told for turn, told in zip(turns, counted, strict=True) if not 0 <= turn - told <= 2] == []
    return [(call.route, call.answer.outcome) for call in calls if call.answer]


SCORE, SUBMIT = {"call": "score"}, {"call": "submit"}
BY_COMMAND = [{"shell": "kcourt tool score"}, {"shell": "kcourt tool submit"}]
READS = {"call": "read_file", "input": {"path": "baseline.c"}}
NAP = new_nap()
# Setup and kernel → harness, the model's steps, how it ends.
SCENES: dict[str, tuple[str, list[dict[str, Any]], End]] = {
    "loops": ("openai_loop", [READS, write("loops", WRONG), SCORE, write("loops"), SCORE, SUBMIT], End.SUBMITTED),
    "talks": ("openai_loop", [{"text": "I would rather not."}], End.FINISHED),
    "locked": ("openai_loop", [SCORE, {"error": 401}], End.API),
    "full": ("openai_loop", [{"error": 400, "message": "maximum context length is 4096 tokens"}], End.CONTEXT),
    "recovers": ("openai_loop", [{"error": 503, "times": 1}, write("recovers"), SUBMIT], End.SUBMITTED),
    "strays": ("openai_loop", [{"text": "Hm.", "model": "another"}, SUBMIT], End.START_FAILED),
    "slips": ("openai_loop", [{"call": "bash", "input": {"command": 7}}, write("slips"), SUBMIT], End.SUBMITTED),
    "leaves": ("openai_loop", [{"shell": f"setsid sleep {NAP} &"}, write("leaves"), SUBMIT], End.SUBMITTED),
    "greedy": ("openai_loop", [{"shell": "true", "fresh": 9000}] * 9 + [{"shell": "sleep 60"}], End.TOKENS),
    "minis": ("mini_swe", [write("minis"), *BY_COMMAND], End.SUBMITTED),
    "overflows": ("mini_swe", [{"error": 400, "message": "maximum context length is 4096 tokens"}], End.CONTEXT),
    "geaks": ("geak", [write("geaks"), BY_COMMAND[1]], End.SUBMITTED),
    "cursors": ("cursor", [], End.SUBMITTED),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NodeFiles, ScriptedModel]]:
    """One node that has played all scenes, and the model that they asked."""
    root = tmp_path_factory.mktemp("episodes")
    fakes = put_fakes(tmp_path_factory.mktemp("installed") / "bin")
    script = read_script({kernel: steps for kernel, (_, steps, _) in SCENES.items()})
    with StubJudge(0, SECRET) as judge, ScriptedModel(script) as model, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join((str(fakes), os.environ["PATH"])))
        patch.setenv("CURSOR_API_KEY", "made-for-this")
        node = node_for(root, judge.url, model.url, workers=3, exit_grace_s=5.0)
        for kernel, (harness, _, _) in SCENES.items():
            more: dict[str, Any] = {"budget": {"max_tokens": 20_000}} if kernel == "greedy" else {}
            node.add(kernel, [kernel], {}, harness=harness, **more)
        node.run()
        yield node, model


@pytest.mark.parametrize("kernel", SCENES)
def test_how_it_ends(played: tuple[NodeFiles, ScriptedModel], kernel: str) -> None:
    assert played[0].record(kernel, kernel).end is SCENES[kernel][2]


def test_the_loop_knows_its_tokens_at_each_call(played: tuple[NodeFiles, ScriptedModel]) -> None:
    node, model = played
    assert calls_of(node, "loops", [3, 5, 6]) == [("score", "wrong"), ("score", "solved"), ("submit", "solved")]
    record = node.record("loops", "loops")
    assert (record.turns, record.tool_calls, record.model) == (7, 6, MODEL)
    assert (record.tokens_fresh, record.tokens_cached, record.tokens_output) == (700, 140, 70)
    assert record.api_s is not None
    asked = [one for one in model.asked if "Make loops" in one.prompt]
    assert asked[0].tools == ("score", "submit", "syntax_check", "read_file", "write_file", "bash")
    assert "solved" in json.loads(asked[1].results[-1])["content"]


def test_nothing_that_a_client_started_outlives_it(played: tuple[NodeFiles, ScriptedModel]) -> None:
    assert gone(NAP)


def test_a_wrong_argument_is_an_answer(played: tuple[NodeFiles, ScriptedModel]) -> None:
    (told, *_) = [one.results[-1] for one in played[1].asked if "Make slips" in one.prompt and one.results]
    assert json.loads(told)["error"]["message"] == "bash: command: Input should be a valid string"


@pytest.mark.parametrize(("kernel", "turns"), [("minis", [2, 3]), ("geaks", [2])])
def test_tools_by_command_are_counted_alike(
    played: tuple[NodeFiles, ScriptedModel], kernel: str, turns: list[int]
) -> None:
    node = played[0]
    assert calls_of(node, kernel, turns)[-1] == ("submit", "solved")
    record = node.record(kernel, kernel)
    assert (record.tokens_fresh, record.tool_calls, record.model) == (100 * (record.turns or 0), turns[-1], MODEL)


def test_a_client_that_reports_no_tokens_has_none_on_record(played: tuple[NodeFiles, ScriptedModel]) -> None:
    record = played[0].record("cursors", "cursors")
    assert (record.tokens_fresh, record.tokens_output, record.turns, record.tool_calls) == (None, None, 2, 2)
    assert record.model == "auto display"


@codex_is_here
def test_the_real_codex_scores_and_submits(tmp_path: Path) -> None:
    steps: dict[str, list[dict[str, Any]]] = {
        "works": [write("works", WRONG), SCORE, write("works"), SCORE, SUBMIT],
        "fails": [{"shell": "true"}, {"error": 400, "message": "maximum context length is 4096 tokens"}],
    }
    with StubJudge(0, SECRET) as judge, ScriptedModel(read_script(steps)) as model:
        node = node_for(tmp_path, judge.url, model.url, exit_grace_s=1.0)
        for kernel in steps:
            node.add(kernel, [kernel], {}, harness="codex")
        assert node.run()["ends"] == {"submitted": 1, "context": 1}
    assert calls_of(node, "works", [2, 4, 5]) == [("score", "wrong"), ("score", "solved"), ("submit", "solved")]
    record = node.record("works", "works")
    assert record.tokens_fresh == 100 * (record.turns or 0)
    assert (record.tool_calls, record.model) == (5, MODEL)
    assert record.harness_version in (INSTALLED.parent / "@openai/codex/package.json").read_text()
    (asked, *_) = model.asked
    ours = {tool for tool in asked.tools if "kcourt" in tool}
    assert ours == {f"mcp__kcourt.{tool}" for tool in ("score", "submit", "syntax_check")}
    assert not [tool for tool in asked.tools if "search" in tool or "agent" in tool or "image_gen" in tool]
    log = (node.episode("works", "works") / "attempt-1" / "codex.log").read_text()
    assert "unrecognized" not in log


@codex_is_here
def test_codex_begins_no_session_without_our_tools(tmp_path: Path) -> None:
    launch = launch_in(tmp_path)
    told = json.loads(launch.mcp_file.read_text())
    told["mcpServers"]["kcourt"] |= {"command": "false", "args": []}
    launch.mcp_file.write_text(json.dumps(told))
    launch.folder.mkdir()
    command = load_harness("codex", {}).command(launch)
    env = {"PATH": os.environ["PATH"], "HOME": str(launch.home)} | command.env
    done = subprocess.run(followed(command).argv, env=env, input="Go on.", capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    assert "required MCP servers failed" in done.stderr


class Oracle(BaseHTTPRequestHandler):
    """A model that answers whatever it is asked with one block of code."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": f"Here:\n```c\n{SOLVED}```\n"}
        usage = {"prompt_tokens": 90, "completion_tokens": 10}
        body = json.dumps({"model": MODEL, "choices": [{"message": message}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def install_sample(site: Path) -> str:
    """What `pip install` makes of the page's sample, in a folder on the path; the harness's name."""
    code, project = (block(kind) for kind in ("python", "toml"))
    assert len(code.splitlines()) <= 60
    told = tomllib.loads(project)
    (module,) = told["tool"]["setuptools"]["py-modules"]
    (site / f"{module}.py").write_text(code)
    info = site / f"{module}-{told['project']['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {told['project']['name']}\nVersion: 1.0\n")
    ((group, points),) = told["project"]["entry-points"].items()
    entries = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{entries}")
    return str(next(iter(points)))


def block(kind: str) -> str:
    """The only block of that kind on the page."""
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_sample_of_the_page_works_once_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    site.mkdir()
    name = install_sample(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    with HTTPServer(("127.0.0.1", 0), Oracle) as oracle, StubJudge(0, SECRET) as judge:
        threading.Thread(target=oracle.serve_forever, args=(0.05,), daemon=True).start()
        node = node_for(tmp_path, judge.url, f"http://127.0.0.1:{oracle.server_port}")
        node.add("s", ["s"], {}, harness=name)
        assert node.run()["ends"] == {"submitted": 1}
        oracle.shutdown()
    record = node.record("s", "s")
    assert (record.harness, record.tokens_fresh, record.tokens_output, record.model) == (name, 90, 10, MODEL)


def test_an_unknown_harness_is_answered_with_those_that_are_there(tmp_path: Path) -> None:
    node = node_for(tmp_path, "http://127.0.0.1:9", "http://127.0.0.1:9")
    node.add("s", ["s"], {}, harness="codez")
    driver = node.start()
    _, err = driver.communicate(timeout=120)
    assert driver.returncode == 64
    assert "unknown harness 'codez'" in err
    assert "codex" in err
    assert "Traceback" not in err
