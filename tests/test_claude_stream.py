"""What the harness `claude_code` makes of a stream and of a setup, line by line, without the client."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.endpoint import Endpoint
from agent.harnesses import Event, Launch, load_harness
from agent.harnesses.claude_code import ClaudeCode
from agent.harnesses.claude_stream import BUILT_IN, ClaudeStream
from agent.harnesses.clients import find_client
from agent.tools.offered import Tool
from agent.usage import NOTHING, Usage
from bench.errors import ConfigError
from bench.judge.schemas import End, Language, SetupRecord

SESSION = "5e55"


def line(**event: Any) -> bytes:
    return json.dumps(event | {"session_id": SESSION, "uuid": "0"}).encode()


def init(tools: tuple[str, ...] = (*BUILT_IN, "mcp__kcourt__score"), status: str = "connected") -> bytes:
    servers = [{"name": "kcourt", "status": status}]
    return line(type="system", subtype="init", tools=[*tools], mcp_servers=servers, model="served", cwd="/a")


def usage(fresh: int, cached: int, output: int) -> dict[str, int]:
    read = {"cache_creation_input_tokens": 1, "cache_read_input_tokens": cached}
    return {"input_tokens": fresh - 1, "output_tokens": output} | read


def piece(kind: str, **fields: Any) -> bytes:
    return line(type="stream_event", event={"type": kind, **fields}, parent_tool_use_id=None)


def start(name: str, fresh: int, cached: int) -> bytes:
    return piece("message_start", message={"id": name, "usage": usage(fresh, cached, 1)})


def assistant(name: str, *blocks: dict[str, Any], model: str = "served", **more: Any) -> bytes:
    message = {"id": name, "model": model, "content": [*blocks], "usage": usage(10, 5, 1)}
    return line(type="assistant", message=message, parent_tool_use_id=None, **more)


def call(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "mcp__kcourt__score", "input": {}}


def result(**fields: Any) -> bytes:
    usual = {
        **{"subtype": "success", "is_error": False, "api_error_status": None, "num_turns": 2, "result": "Done."},
        **{"terminal_reason": "completed", "duration_ms": 2000, "duration_api_ms": 1500, "modelUsage": {}},
    }
    return line(type="result", **usual | fields)


def total(fresh: int, cached: int, output: int) -> dict[str, Any]:
    used = {"inputTokens": fresh, "cacheCreationInputTokens": 0, "cacheReadInputTokens": cached}
    return {"served": used | {"outputTokens": output, "costUSD": 1.5}}


def read(*lines: bytes) -> list[Event]:
    stream = ClaudeStream()
    return [stream.read(one) for one in lines]


def used(*lines: bytes) -> Usage:
    return sum((event.usage for event in read(*lines)), NOTHING)


@pytest.mark.parametrize(
    ("told", "tools"),
    [
        (init(), {"score"}),
        (init(status="failed"), set()),
        (init(status="pending"), set()),
        (init(BUILT_IN), set()),
        (init((*BUILT_IN[1:], "mcp__kcourt__score")), {"Bash", "score"}),
        (init((*BUILT_IN, "WebFetch", "mcp__kcourt__score")), {"WebFetch", "score"}),
        (init((*BUILT_IN, "mcp__other__score")), {"mcp__other__score"}),
    ],
    ids=["exact", "failed", "pending", "without", "own-tool-missing", "own-tool-too-many", "foreign"],
)
def test_only_the_exact_tools_of_connected_servers_are_announced(told: bytes, tools: set[str]) -> None:
    (event,) = read(told)
    assert (event.tools, event.model, event.session) == (tools, "served", SESSION)


ANSWER = [
    start("a", 10, 5),
    piece("content_block_delta", index=0, delta={}),
    assistant("a", {"type": "text", "text": "Now."}),
    assistant("a", call(1)),
    piece("message_delta", delta={}, usage={"output_tokens": 40}),
    piece("message_stop"),
]
COUNTED = Usage(tokens_fresh=10, tokens_cached=5, tokens_output=40, turns=1, tool_calls=1)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (ANSWER, COUNTED),
        ([*ANSWER, *ANSWER], COUNTED),
        ([*ANSWER, result(modelUsage=total(10, 5, 40))], COUNTED + Usage(api_s=1.5)),
        ([*ANSWER, result(modelUsage=total(13, 5, 42))], COUNTED + Usage(3, 0, 2, api_s=1.5)),
        ([*ANSWER, result(modelUsage=total(1, 1, 1))], COUNTED + Usage(api_s=1.5)),
        (ANSWER[2:4], Usage(10, 5, 1, turns=1, tool_calls=1)),
        ([*ANSWER, start("b", 20, 15)], COUNTED + Usage(20, 15, 1, turns=1)),
        (
            [piece("message_delta", delta={}, usage=usage(10, 5, 40)), *ANSWER],
            COUNTED,
        ),
        ([assistant("x", model="<synthetic>", error="server_error"), result()], Usage(0, 0, 0, turns=0, api_s=1.5)),
    ],
    ids=["once", "repeated", "total", "beside", "smaller-total", "unstreamed", "cut", "headless", "synthetic"],
)
def test_each_token_is_counted_once(lines: list[bytes], expected: Usage) -> None:
    assert replace_none(used(*lines)) == replace_none(expected)


def replace_none(found: Usage) -> dict[str, Any]:
    """Nothing used and nothing reported are the same here."""
    return {name: value or 0 for name, value in vars(found).items()}


REFUSED = assistant("x", model="<synthetic>", error="server_error")
TOO_LONG = "API Error: 400 This model's maximum context length is 8192 tokens."
ENDS = {
    "finished": ([*ANSWER, result()], End.FINISHED),
    "status": ([*ANSWER, result(is_error=True, api_error_status=500)], End.API),
    "status-said-to-be-success": ([*ANSWER, result(api_error_status=429)], End.API),
    "unreachable": ([*ANSWER, REFUSED, result(is_error=True)], End.API),
    "refused-then-answered": ([REFUSED, *ANSWER, result()], End.FINISHED),
    "model-error": ([*ANSWER, result(is_error=True, terminal_reason="model_error")], End.API),
    "too-long": (
        [REFUSED, result(is_error=True, api_error_status=400, terminal_reason="prompt_too_long")],
        End.CONTEXT,
    ),
    "too-long-by-words": ([REFUSED, result(is_error=True, api_error_status=400, result=TOO_LONG)], End.CONTEXT),
    "words-alone": ([*ANSWER, result(result=TOO_LONG)], End.FINISHED),
    "full": ([*ANSWER, result(terminal_reason="blocking_limit")], End.CONTEXT),
    "no-turns": ([result()], End.CRASH),
    "error": ([*ANSWER, result(is_error=True, subtype="error_during_execution")], End.CRASH),
    "aborted": ([*ANSWER, result(terminal_reason="aborted_tools")], End.CRASH),
    "unknown-reason": ([*ANSWER, result(terminal_reason="news")], End.CRASH),
}


@pytest.mark.parametrize(("lines", "end"), ENDS.values(), ids=ENDS)
def test_ends_come_from_the_result_alone(lines: list[bytes], end: End) -> None:
    *before, last = read(*lines)
    assert {event.end for event in before} == {None} or not before
    assert last.end is end


def test_the_log_does_without_pieces_but_not_without_what_they_cost() -> None:
    kept = [one for one, event in zip(ANSWER, read(*ANSWER), strict=True) if not event.partial]
    assert kept == [*ANSWER[2:4], ANSWER[4]]


ODD = [b"", b"[]", b"null", b"{", b"\xff", b'{"type": "system"}', b'{"type": "result"}', b'{"type": "assistant"}']


@pytest.mark.parametrize("odd", ODD)
def test_odd_lines_mean_nothing(odd: bytes) -> None:
    assert read(odd) == [Event()]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "type", "usage"]), inner),
)
FIELDS = ["subtype", "event", "message", "tools", "mcp_servers", "model", "session_id", "modelUsage", "is_error"]


@given(
    st.sampled_from(["system", "stream_event", "assistant", "result", "user"]),
    st.dictionaries(st.sampled_from(FIELDS), VALUES | st.just("init")),
)
def test_no_line_is_too_odd_to_read(kind: str, fields: dict[str, Any]) -> None:
    assert len(read(json.dumps({"type": kind} | fields).encode())) == 1


def launch(root: Path, **settings: Any) -> Launch:
    files = {name: root / name for name in ("folder", "home", "prompt_file", "tools_file", "mcp_file")}
    endpoint = Endpoint("http://127.0.0.1:9", "served", "token", ("messages",))
    usual: dict[str, Any] = {"model": "asked", "attempt": 1, "remaining_s": 60, "tools": (Tool.SCORE, Tool.SUBMIT)}
    return Launch("axpy", Language.C, endpoint=endpoint, **usual | files | settings)


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClaudeCode]:
    """The harness with a client that only says its version."""
    client = tmp_path / "claude"
    client.write_text("#!/bin/sh\necho '9.8.7 (Claude Code)'\n")
    client.chmod(0o755)
    monkeypatch.setattr("agent.harnesses.clients.INSTALLED", tmp_path)
    find_client.cache_clear()
    yield ClaudeCode({})
    find_client.cache_clear()


def test_command_line_names_one_model_and_exactly_our_tools(harness: ClaudeCode, tmp_path: Path) -> None:
    command = harness.command(launch(tmp_path, effort="high", temperature=0.5, resume=SESSION))
    options = dict(zip(command.argv[:-1], command.argv[1:], strict=True))
    assert options["--model"] == "served"
    assert options["--effort"] == "high"
    assert options["--resume"] == SESSION
    assert options["--allowedTools"] == ",".join([*BUILT_IN, "mcp__kcourt__score", "mcp__kcourt__submit"])
    assert "--strict-mcp-config" in command.argv
    assert command.stdin == tmp_path / "prompt_file"
    assert command.env["CLAUDE_CONFIG_DIR"].startswith(str(tmp_path / "home"))
    assert json.loads(command.env["CLAUDE_CODE_EXTRA_BODY"]) == {"temperature": 0.5}
    assert {value for name, value in command.env.items() if name.endswith("_MODEL")} == {"served"}
    assert "token" not in command.argv


def test_what_a_setup_leaves_open_is_left_to_the_client(harness: ClaudeCode, tmp_path: Path) -> None:
    command = harness.command(launch(tmp_path))
    assert not {"--effort", "--resume"} & set(command.argv)
    assert "CLAUDE_CODE_EXTRA_BODY" not in command.env


def test_an_effort_that_the_client_lacks_is_refused(harness: ClaudeCode) -> None:
    harness.check(SetupRecord(setup="s", effort="max"))
    with pytest.raises(ConfigError, match=r"setup 's': claude_code has no effort 'hihg'; did you mean 'high'\?"):
        harness.check(SetupRecord(setup="s", effort="hihg"))


def test_the_version_is_the_clients_own(harness: ClaudeCode) -> None:
    assert harness.version == "9.8.7"


def test_a_missing_client_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("agent.harnesses.clients.INSTALLED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"'claude' was not found; run `make setup-agents` .*, or put it on PATH"):
        find_client.__wrapped__("claude")


def test_options_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="takes no options; given: speed"):
        load_harness("claude_code", {"speed": "high"})
