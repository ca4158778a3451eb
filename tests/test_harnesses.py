"""What each harness makes of an attempt, of a setup and of its client's lines, without a client."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_clients import put_fakes
from hypothesis import given
from hypothesis import strategies as st

from agent.endpoint import Endpoint
from agent.harnesses import Command, Event, Harness, Launch, clients, load_harness
from agent.harnesses.codex import CodexStream
from agent.harnesses.cursor import Cursor
from agent.harnesses.follow import Followed
from agent.harnesses.openai_loop_client import turn_of
from agent.harnesses.stream import emit, read_line
from agent.harnesses.trajectory import TrajectoryReader
from agent.tools.mcp_file import mcp_text
from agent.tools.offered import Tool
from agent.tools.settings import ToolSettings
from agent.usage import NOTHING, Usage
from bench.errors import ConfigError
from bench.judge.schemas import End, SetupRecord

TOOLS = (Tool.SCORE, Tool.SUBMIT)
NAMES = ("codex", "cursor", "geak", "mini_swe", "openai_loop")
PAGE = Path(__file__).parents[1] / "docs" / "harnesses.md"


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """All clients as programs that answer as documented, found where the real ones would be."""
    folder = put_fakes(tmp_path / "clients")
    (folder / "codex").write_text("#!/bin/sh\necho codex-cli 0.171.0\n")
    (folder / "codex").chmod(0o755)
    monkeypatch.setattr(clients, "INSTALLED", folder)
    monkeypatch.setenv("CURSOR_API_KEY", "made-for-this")
    clients.find_client.cache_clear()
    yield folder
    clients.find_client.cache_clear()


def launch_in(root: Path, **changes: Any) -> Launch:
    """One attempt whose files are there."""
    settings = ToolSettings(
        **{"kernel": "axpy", "language": "c", "mode": "single", "tools": TOOLS, "folder": root / "work"},
        **{"evidence": root, "judge_urls": ("http://j",), "home_rank": 0, "attempt": 1, "tokens_file": root / "t"},
    )
    files = {"prompt_file": root / "prompt.txt", "tools_file": root / "tools.json", "mcp_file": root / "mcp.json"}
    files["prompt_file"].write_text("Make axpy fast.\n")
    files["tools_file"].write_text(settings.model_dump_json())
    files["mcp_file"].write_text(mcp_text(files["tools_file"], {"A": 'quote " and é'}))
    endpoint = Endpoint("http://model", "served", "dummy", ("chat", "responses"))
    told: dict[str, Any] = {"kernel": "axpy", "language": "c", "model": "m", "attempt": 1, "remaining_s": 60.0}
    told |= {"tools": TOOLS, "folder": root / "work", "home": root / "home", "endpoint": endpoint, **files}
    return Launch(**(told | changes))


def followed(command: Command) -> Followed:
    """The client that a command runs."""
    assert command.argv[1:4] == ("-P", "-m", "agent.harnesses.follow")
    told = Followed.model_validate_json(Path(command.argv[4]).read_bytes())
    assert command.programs == (told.argv[0],)
    return told


def after(words: tuple[str, ...], option: str) -> list[str]:
    return [value for name, value in pairwise(words) if name == option]


def test_codex_gets_one_model_our_server_and_nothing_else(fakes: Path, tmp_path: Path) -> None:
    launch = launch_in(tmp_path, effort="high")
    command = load_harness("codex", {}).command(launch)
    argv = followed(command).argv
    assert argv[:3] == (str(fakes / "codex"), "exec", "--json")
    assert argv[-1] == "-"
    assert command.stdin == launch.prompt_file
    assert command.env == {"CODEX_HOME": str(launch.home / ".codex"), "KCOURT_MODEL_KEY": "dummy"}
    config = tomllib.loads((launch.home / ".codex" / "config.toml").read_text())
    assert (config["model"], config["model_reasoning_effort"], config["web_search"]) == ("served", "high", "disabled")
    provider = config["model_providers"][config["model_provider"]]
    assert (provider["base_url"], provider["wire_api"]) == ("http://model/v1", "responses")
    ((name, server),) = config["mcp_servers"].items()
    assert name == "kcourt"
    assert server["args"][-1] == str(launch.tools_file)
    assert server["env"] == {"A": 'quote " and é'}
    assert (server["required"], server["enabled_tools"]) == (True, ["score", "submit"])
    assert "dummy" not in json.dumps(config)


def test_codex_goes_on_with_a_session(fakes: Path, tmp_path: Path) -> None:
    argv = followed(load_harness("codex", {}).command(launch_in(tmp_path, resume="01a2"))).argv
    assert argv[-3:] == ("resume", "01a2", "-")


def test_loop_is_told_its_model_in_a_file_of_its_own(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, temperature=0.5)
    command = load_harness("openai_loop", {}).command(launch)
    told = json.loads(Path(command.argv[-1]).read_text())
    assert told["url"] == "http://model/v1/chat/completions"
    assert (told["model"], told["key"], told["temperature"], told["effort"]) == ("served", "dummy", 0.5, None)
    assert (command.env, command.stdin) == ({}, launch.prompt_file)
    assert "dummy" not in " ".join(command.argv)


def test_mini_swe_is_told_how_tools_are_called(fakes: Path, tmp_path: Path) -> None:
    command = load_harness("mini_swe", {}).command(launch_in(tmp_path, temperature=0.5, effort="low"))
    told = followed(command)
    assert {"--yolo", "--exit-immediately"} <= set(told.argv)
    assert after(told.argv, "--model") == ["openai/served"]
    assert after(told.argv, "--cost-limit") == ["0"]
    assert after(told.argv, "--config") == [
        "mini.yaml",
        "model.model_kwargs.api_base=http://model/v1",
        "environment.timeout=14400",
        "model.model_kwargs.temperature=0.5",
        "model.model_kwargs.reasoning_effort=low",
    ]
    (task,) = after(told.argv, "--task")
    assert task.startswith("Make axpy fast.\n")
    assert """    kcourt tool score '{"file": "axpy.c"}'\n""" in task
    assert (told.ready, told.tools) == (("kcourt", "tool", "-"), ("score", "submit"))
    assert command.env["OPENAI_API_KEY"] == "dummy"


def test_geak_is_given_a_configuration_and_a_task_as_files(fakes: Path, tmp_path: Path) -> None:
    told = followed(load_harness("geak", {}).command(launch_in(tmp_path, temperature=0.5)))
    ((config,), (task,)) = (after(told.argv, "--config"), after(told.argv, "--task"))
    model = json.loads(Path(config).read_text())["model"]
    assert model["model_name"] == "openai/served"
    assert model["model_kwargs"] == {"api_base": "http://model/v1", "temperature": 0.5}
    assert "kcourt tool submit" in Path(task).read_text()
    assert told.trajectories is not None
    assert Path(after(told.argv, "--output")[0]).relative_to(told.root) == Path(told.trajectories).parent.parent


def test_cursor_is_given_our_server_and_asks_its_vendor(fakes: Path, tmp_path: Path) -> None:
    launch = launch_in(tmp_path, endpoint=None, resume="chat-1")
    command = load_harness("cursor", {}).command(launch)
    told = followed(command)
    assert {"--print", "--force", "--approve-mcps", "--trust"} <= set(told.argv)
    assert after(told.argv, "--output-format") == ["stream-json"]
    assert (after(told.argv, "--model"), after(told.argv, "--resume")) == (["m"], ["chat-1"])
    assert told.argv[-1] == "Make axpy fast.\n"
    assert (launch.home / ".cursor" / "mcp.json").read_text() == launch.mcp_file.read_text()
    assert command.env == {"CURSOR_API_KEY": "made-for-this"}
    assert told.ready == (told.argv[0], "mcp", "list-tools", "kcourt")


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"harness {name} takes no options; given: colour"):
        load_harness(name, {"colour": "red"})


PARTS = "name = version = log_name = wire_format = 'none'; resumes = False; check = command = lambda *_: None"
PACKAGE = f"""
def function(options): pass
class Whole:
    {PARTS}; read = lambda *_: None
    def __init__(self, options): pass
class Partial:
    {PARTS.replace("log_name = ", "")}
    def __init__(self, options): pass
"""
BROKEN = {
    "misspelt module": (
        "kc_nine:Whole",
        "harness mine = kc_nine:Whole: cannot be loaded: No module named 'kc_nine'; mend",
    ),
    "misspelt class": ("kc_mine:Hole", "harness mine = kc_mine:Hole: cannot be loaded: .* no attribute 'Hole'; mend"),
    "no class": ("kc_mine:function", "harness mine = kc_mine:function: is no class; mend"),
    "parts missing": ("kc_mine:Partial", "harness mine lacks log_name, read; docs/harnesses.md"),
}


def announce(value: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that announces the harness `mine`."""
    (folder / "kc_mine.py").write_text(PACKAGE)
    info = folder / "kc_mine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kc-mine\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[kernelcourt.harnesses]\nmine = {value}\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "kc_mine", raising=False)


@pytest.mark.parametrize(("value", "said"), BROKEN.values(), ids=BROKEN)
def test_a_package_that_brings_no_harness_is_named(
    value: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(value, tmp_path, monkeypatch)
    with pytest.raises(ConfigError, match=said):
        load_harness("mine", {})


def test_a_package_brings_a_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announce("kc_mine:Whole", tmp_path, monkeypatch)
    assert load_harness("mine", {}).resumes is False


REFUSED = [
    ("codex", {"effort": "hgih"}, r"codex has no effort 'hgih'; did you mean 'high'\?"),
    ("codex", {"temperature": 0.5}, "codex cannot be given a temperature, and 0.5 is set"),
    ("cursor", {"temperature": 0.5}, "cursor cannot be given a temperature"),
    ("cursor", {"effort": "high"}, "cursor has no effort 'high'; unset it"),
    ("openai_loop", {"effort": "max"}, "openai_loop has no effort 'max'"),
    ("mini_swe", {"effort": "max"}, "mini_swe has no effort 'max'"),
    ("geak", {"effort": "max"}, "geak has no effort 'max'"),
]


@pytest.mark.parametrize(("name", "asked", "said"), REFUSED, ids=[f"{name}-{asked}" for name, asked, _ in REFUSED])
def test_a_setup_that_the_client_cannot_follow_is_refused(
    fakes: Path, name: str, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=f"setup 's': {said}"):
        load_harness(name, {}).check(SetupRecord(setup="s", **asked))


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_setup_is_taken_and_the_version_known(fakes: Path, name: str) -> None:
    harness = load_harness(name, {})
    harness.check(SetupRecord(setup="s"))
    assert harness.version[0].isdigit()
    assert not harness.version.endswith(".")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "openai_loop"])
def test_a_missing_client_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(clients, "INSTALLED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    clients.find_client.cache_clear()
    request.addfinalizer(clients.find_client.cache_clear)
    with pytest.raises(ConfigError, match=r"the client '.*' was not found"):
        load_harness(name, {}).check(SetupRecord(setup="s"))


def test_cursor_without_a_key_is_refused(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CURSOR_API_KEY")
    with pytest.raises(ConfigError, match="CURSOR_API_KEY is not set where agents run"):
        load_harness("cursor", {}).check(SetupRecord(setup="s"))


def line(**facts: Any) -> bytes:
    return json.dumps(facts).encode()


def kept(kind: str, **payload: Any) -> bytes:
    return line(timestamp="2026-11-30T07:10:30Z", ordinal=1, type=kind, payload=payload)


USED = {"input_tokens": 120, "cached_input_tokens": 20, "output_tokens": 10, "reasoning_output_tokens": 4}
TOTAL = line(type="turn.completed", usage=USED)
HIGH = "We’re currently experiencing high demand, which may cause temporary errors."
FULL = '{"error": {"message": "This model\'s maximum context length is 4096 tokens"}}'
CODEX = {
    "session": (line(type="thread.started", thread_id="01"), Event(tools=frozenset({"score"}), session="01")),
    "model": (kept("turn_context", model="served", cwd="/a"), Event(model="served")),
    "request": (
        kept("token_usage_record", response_id="r1", usage=USED, turn_token_usage=USED),
        Event(usage=Usage(tokens_fresh=100, tokens_cached=20, tokens_output=10, turns=1)),
    ),
    "command": (line(type="item.completed", item={"type": "command_execution"}), Event(usage=Usage(tool_calls=1))),
    "tool": (line(type="item.completed", item={"type": "mcp_tool_call"}), Event(usage=Usage(tool_calls=1))),
    "begun": (line(type="item.started", item={"type": "mcp_tool_call"}), Event()),
    "words": (line(type="item.completed", item={"type": "agent_message", "text": "Done."}), Event()),
    "warning": (line(type="item.completed", item={"type": "error", "message": "Model metadata"}), Event()),
    "again": (line(type="error", message="Reconnecting... 1/4"), Event()),
    "done": (TOTAL, Event(end=End.FINISHED)),
    "nothing": (line(type="turn.completed", usage=dict.fromkeys(USED, 0)), Event(end=End.CRASH)),
    "refused": (line(type="turn.failed", error={"message": HIGH}), Event(end=End.API)),
    "full": (line(type="turn.failed", error={"message": FULL}), Event(end=End.CONTEXT)),
    "people": (b"WARNING: proceeding, even though", Event()),
}


@pytest.mark.parametrize(("said", "meant"), CODEX.values(), ids=CODEX)
def test_lines_of_codex(said: bytes, meant: Event) -> None:
    assert CodexStream(frozenset({"score"})).read(said) == meant


def test_codex_counts_a_request_once() -> None:
    stream, said = CodexStream(frozenset()), CODEX["request"][0]
    assert [stream.read(said).usage.tokens for _ in range(2)] == [130, 0]
    assert stream.read(TOTAL).usage == NOTHING


def answered(**more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 120, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 20}}
    return {"role": "assistant", "extra": {"response": {"model": "served", "usage": usage}} | more}


def ended(status: str, said: str = "") -> bytes:
    return line(type="exit", file="t", status=status, said=said)


PAID = Usage(100, 20, 10, turns=1, tool_calls=0)
TRAJECTORY = {
    "answer": (
        line(type="message", message=answered(actions=[{}])),
        Event(usage=Usage(100, 20, 10, 1, 1), model="served"),
    ),
    "bad form": (
        line(type="message", message=answered(interrupt_type="FormatError")),
        Event(usage=PAID, model="served"),
    ),
    "result": (line(type="message", message={"role": "tool", "content": "x", "extra": {"returncode": 0}}), Event()),
    "submitted": (ended("Submitted"), Event(end=End.FINISHED)),
    "formless": (ended("RepeatedFormatError"), Event(end=End.FINISHED)),
    "full": (ended("ContextWindowExceededError"), Event(end=End.CONTEXT)),
    "full, unnamed": (ended("BadRequestError", "maximum context length is 4096"), Event(end=End.CONTEXT)),
    "refused": (ended("AuthenticationError"), Event(end=End.API)),
    "bug": (ended("KeyError"), Event(end=End.CRASH)),
    "tools": (line(type="init", tools=["score"]), Event(tools=frozenset({"score"}))),
    "left without a word": (line(type="exited", code=0), Event()),
    "people": (b"mini-swe-agent (step 3, $0.00):", Event()),
}


@pytest.mark.parametrize(("said", "meant"), TRAJECTORY.values(), ids=TRAJECTORY)
def test_lines_of_a_trajectory(said: bytes, meant: Event) -> None:
    assert TrajectoryReader().read(said) == meant


def test_several_trajectories_end_with_their_client() -> None:
    reader = TrajectoryReader(several=True)
    assert [reader.read(said).end for said in (ended("Submitted"), ended("Submitted"))] == [None, None]
    assert reader.read(line(type="exited", code=0)).end is End.FINISHED


CALL = {"call_id": "t1", "tool_call": {"mcpToolCall": {"args": {"toolName": "score"}}}}
CURSOR = {
    "init": (
        line(
            type="system",
            subtype="init",
            apiKeySource="env",
            cwd="/a",
            session_id="c1",
            model="GPT-5",
            permissionMode="x",
        ),
        Event(model="GPT-5", session="c1"),
    ),
    "prompt": (line(type="user", message={}, session_id="c1"), Event()),
    "words": (line(type="assistant", message={}, session_id="c1"), Event(usage=Usage(turns=1))),
    "call": (line(type="tool_call", subtype="started", **CALL), Event(usage=Usage(tool_calls=1))),
    "answer": (line(type="tool_call", subtype="completed", **CALL), Event()),
    "done": (
        line(type="result", subtype="success", is_error=False, duration_ms=5234, duration_api_ms=5200, result="Done."),
        Event(usage=Usage(api_s=5.2), end=End.FINISHED),
    ),
    "refused": (
        line(type="result", subtype="success", is_error=True, duration_api_ms=0, result="rate limit"),
        Event(usage=Usage(api_s=0.0), end=End.API),
    ),
    "tools": (line(type="init", tools=["score"]), Event(tools=frozenset({"score"}))),
}


@pytest.mark.parametrize(("said", "meant"), CURSOR.values(), ids=CURSOR)
def test_lines_of_cursor(said: bytes, meant: Event) -> None:
    assert Cursor({}).read(said) == meant


LOOP = {
    "init": (line(type="init", tools=["score"], model="m"), Event(tools=frozenset({"score"}), model="m")),
    "turn": (line(type="turn", usage={"tokens_fresh": 3}, model="m"), Event(usage=Usage(tokens_fresh=3), model="m")),
    "result": (line(type="result", end="context"), Event(end=End.CONTEXT)),
    "unknown end": (line(type="result", end="joy"), Event()),
    "unknown use": (line(type="turn", usage={"joy": 3}), Event()),
}


@pytest.mark.parametrize(("said", "meant"), LOOP.values(), ids=LOOP)
def test_lines_of_our_own_clients(said: bytes, meant: Event) -> None:
    assert read_line(said) == meant


@pytest.mark.parametrize(
    ("kind", "facts", "fault"),
    [
        ("result", {"end": "done"}, ValueError),
        ("result", {}, KeyError),
        ("init", {}, KeyError),
        ("turn", {"usage": {"tokens": 3}}, TypeError),
    ],
)
def test_a_line_that_would_be_passed_over_is_not_printed(
    capsys: pytest.CaptureFixture[str], kind: str, facts: dict[str, Any], fault: type[Exception]
) -> None:
    with pytest.raises(fault):
        emit(kind, **facts)
    assert capsys.readouterr().out == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    ["init", "result", "exit", "exited", "message", "system", "turn.completed", "turn.failed", "turn_context"]
)
FIELDS = st.dictionaries(
    st.sampled_from(["payload", "tools", "end", "usage", "message", "error", "item", "status"]), JSON
)
LINES = st.binary(max_size=30) | st.builds(lambda kind, more: line(**(more | {"type": kind})), WORDS, FIELDS)


@pytest.mark.parametrize("name", NAMES)
def test_no_line_raises(name: str) -> None:
    harness = load_harness(name, {})

    @given(LINES)
    def read(said: bytes) -> None:
        assert isinstance(harness.read(said), Event)

    read()


def completion(message: dict[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {"model": "served", "choices": [{"message": message, "finish_reason": finish}]} | more


def test_an_answer_without_usage_leaves_tokens_unknown() -> None:
    turn = turn_of(completion({"role": "assistant", "content": "Hm."}), "served", 1.5)
    assert turn.usage == Usage(turns=1, tool_calls=0, api_s=1.5)


@pytest.mark.parametrize(
    ("answers", "taken"), [("served", "served"), ("served-2026-11", "served"), ("small", "small"), (None, "served")]
)
def test_a_model_may_add_a_version_to_its_name(answers: str | None, taken: str) -> None:
    assert turn_of(completion({"content": ""}, model=answers), "served", 0).model == taken


def test_every_part_of_the_seam_is_on_its_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    members = [name for name in (*vars(Harness), *Harness.__annotations__) if not name.startswith("_")]
    named = [field.name for record in (Launch, Command, Event, Usage) for field in fields(record)]
    assert not [name for name in (*named, *members) if f"`{name}" not in text]


FOLLOWED = """
import json, pathlib, sys, time
root = pathlib.Path(sys.argv[1])
log, document = root / "a.jsonl", root / "t.json"
def step(messages, status=""):
    document.write_text(json.dumps({"info": {"exit_status": status}, "messages": messages}))
sys.stdout.write("for people, in two "); sys.stdout.flush()
with log.open("a") as file: file.write('{"new": 1}\\n{"cut'); file.flush(); time.sleep(0.5); file.write('": 2}\\n')
print("pieces", sys.stdin.read(), flush=True)
step([{"n": 1}]); time.sleep(0.5); step([{"n": 1}, {"n": 2}], "Submitted")
sys.exit(7)
"""


def test_followed_files_come_into_the_stream_whole_and_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"old": 1}\n')
    told = tmp_path / "follow.json"
    spec = Followed(
        argv=(sys.executable, "-c", FOLLOWED, str(tmp_path)),
        root=tmp_path,
        ready=("sh", "-c", "echo 'there are score, and submit_all'"),
        tools=("score", "submit"),
        lines="a.jsonl",
        trajectories="*.json",
    )
    told.write_text(spec.model_dump_json())
    (tmp_path / "stdin").write_text("asked")
    argv = [sys.executable, "-P", "-m", "agent.harnesses.follow", str(told)]
    with (tmp_path / "stdin").open() as stdin:
        done = subprocess.run(argv, stdin=stdin, capture_output=True, text=True, timeout=120)
    assert done.returncode == 7, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == '{"type": "init", "tools": ["score"]}'
    assert lines[1] == "for people, in two pieces asked"
    assert [found for found in lines if "new" in found or "cut" in found] == ['{"new": 1}', '{"cut": 2}']
    assert not [found for found in lines if "old" in found]
    events = [json.loads(found) for found in lines[2:] if "type" in found]
    assert [event.get("message", event.get("status")) for event in events] == [{"n": 1}, {"n": 2}, "Submitted", None]
    assert events[-1] == {"type": "exited", "code": 7}
