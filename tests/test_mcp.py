"""The tools as a client meets them: the MCP server over stdio, before a real rank, from the copy that is staged."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from judge_rank import PATIENCE_S, Rank, rank, wait_for
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent
from tool_files import tool_settings, write_settings

from agent.answers import read_calls
from agent.tools.mcp_file import mcp_text
from agent.tools.offered import Tool, offered
from agent.tools.shown import TEXT_CAP_CHARS, capped, graded, profiled
from agent.tools.spec import FileInput
from agent.tools.staged import ROOT, needed, stage_tools
from agent.tools.toolbox import SPECS, Toolbox
from bench.judge.schemas import Answer, Language, ProfileAnswer, ProfileTool, SubmissionMode

ALL = [tool.value for tool in Tool if tool in SPECS]
PYTHON_SIDE = ("PATH", "LANG", "LD_LIBRARY_PATH")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    with rank(tmp_path_factory.mktemp("mcp"), closed=True) as started:
        yield started


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("staged")
    stage_tools(folder)
    return folder


Talk = Callable[[ClientSession, Path], Awaitable[None]]


@pytest.fixture
def talk(running: Rank, staged: Path, tmp_path: Path) -> Callable[..., None]:
    """Runs a conversation with the server of an attempt, which `mcp.json` says how to start."""

    def play(conversation: Talk, label: str, **settings: Any) -> None:
        tools_file = write_settings(tmp_path, [f"http://127.0.0.1:{running.port}"], label, **settings)
        env = {name: os.environ[name] for name in PYTHON_SIDE if name in os.environ}
        named = json.loads(mcp_text(tools_file, env | {"PYTHONPATH": str(staged)}))["mcpServers"]["kcourt"]
        anyio.run(_play, StdioServerParameters(**named, cwd=tmp_path / "folder"), conversation, tmp_path / "folder")

    return play


async def _play(server: StdioServerParameters, conversation: Talk, folder: Path) -> None:
    async with session(server) as client:
        await conversation(client, folder)


@contextlib.asynccontextmanager
async def session(server: StdioServerParameters) -> AsyncIterator[ClientSession]:
    async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        yield client


def said(result: CallToolResult) -> Any:
    """The one JSON object of a result; an error is known as one."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    body = json.loads(content.text)
    assert result.is_error is ("error" in body)
    return body


def test_a_client_calls_every_tool(talk: Callable[..., None], tmp_path: Path) -> None:
    async def conversation(client: ClientSession, folder: Path) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == ALL
        refused = said(await client.call_tool("score", {}))["error"]
        assert refused["code"] == "usage" and "axpy.c: cannot be read" in refused["message"]
        (folder / "axpy.c").write_text("int f(void) { return 1; }")
        assert said(await client.call_tool("syntax_check", {})) == {"ok": True, "messages": ""}
        scored = said(await client.call_tool("score", {}))
        assert (scored["outcome"], scored["score"], scored["interval"], scored["faster"]) == (
            *("solved", 2.0, [1.9, 2.1], True),
        )
        (folder / "other.c").write_text("// fake: wrong")
        wrong = said(await client.call_tool("score", {"file": "other.c"}))
        assert wrong["outcome"] == "wrong" and wrong["detail"]["output"] == "out" and "score" not in wrong
        profile = said(await client.call_tool("profile", {"tool": "perf"}))
        assert profile["report"].startswith("seed ") and profile["counters"]["unit"] == "samples"
        hidden = said(await client.call_tool("submit", {"file": "other.c"}))
        assert hidden["outcome"] == "wrong" and "output" not in hidden["detail"]
        assert said(await client.call_tool("submit", {}))["outcome"] == "solved"

    talk(conversation, "many.n0.p0.w0", mode="multi", tools=ALL)
    calls = read_calls(tmp_path / "evidence" / "answers.jsonl")
    assert [call.route for call in calls] == ["score", "score", "profile", "submit", "submit"]
    assert {call.tokens for call in calls} == {7}


def test_what_a_client_does_wrong_is_answered(talk: Callable[..., None]) -> None:
    async def conversation(client: ClientSession, folder: Path) -> None:
        (folder / "axpy.c").write_text("// fake: lacking")
        refused = {
            (name, json.dumps(arguments)): said(await client.call_tool(name, arguments))["error"]
            for name, arguments in (
                ("scoer", {}),
                ("profile", {"tool": "vtune"}),
                ("profile", {"tool": "perf"}),
                ("score", {"fiel": "axpy.c"}),
                ("score", {"file": "../evidence/pending.json"}),
                ("syntax_check", {"file": "gone.c"}),
            )
        }
        assert [error["code"] for error in refused.values()] == [
            *("unknown_tool", "bad_arguments", "not_provisioned", "bad_arguments", "usage", "usage"),
        ]
        assert "'score'" in refused["scoer", "{}"]["next"]
        (folder / "axpy.c").write_text("// good")
        assert said(await client.call_tool("submit", {}))["outcome"] == "solved"
        again = said(await client.call_tool("submit", {}))["error"]
        assert again["code"] == "already_submitted" and "/grades/" in again["message"]

    talk(conversation, "solo.n0.p1.w0", tools=["score", "submit", "profile", "syntax_check"])


def test_calls_run_side_by_side_and_one_outlives_a_judge(talk: Callable[..., None], running: Rank) -> None:
    async def conversation(client: ClientSession, folder: Path) -> None:
        go, found = folder / "go", {}
        (folder / "slow.c").write_text(f"// fake: wait {go}")
        (folder / "axpy.c").write_text("// good")

        async def call(name: str, file: str) -> None:
            found[name, file] = said(await client.call_tool(name, {"file": file}))

        async with anyio.create_task_group() as calls:
            calls.start_soon(call, "submit", "slow.c")
            await to_thread.run_sync(wait_for, Path(f"{go}.reached"))
            await call("syntax_check", "axpy.c")
            calls.start_soon(call, "submit", "axpy.c")
            calls.start_soon(call, "score", "axpy.c")
            running.judge().kill()
            go.touch()
        assert found["syntax_check", "axpy.c"]["ok"]
        assert found["score", "axpy.c"]["outcome"] == "solved"
        # Whichever came first: in single mode the second one is told so, and both are settled.
        submits = [found["submit", "slow.c"], found["submit", "axpy.c"]]
        assert [answer.get("outcome") for answer in submits] == ["solved", None]
        assert submits[1]["error"]["code"] == "already_submitted"

    talk(conversation, "solo.n0.p2.w0")
    running.wait_until_healthy()


def test_a_server_ends_with_its_client_and_the_grade_goes_on(running: Rank, tmp_path: Path) -> None:
    go = tmp_path / "go"
    tools_file = write_settings(tmp_path, [f"http://127.0.0.1:{running.port}"], "solo.n0.p3.w0")
    (tmp_path / "folder" / "axpy.c").write_text(f"// fake: wait {go}")
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "submit", "arguments": {}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0"} | message) + "\n" for message in messages)
    argv = [sys.executable, "-P", "-m", "agent.tools.server", str(tools_file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
        assert server.stdin is not None
        server.stdin.write(lines)
        server.stdin.flush()
        wait_for(Path(f"{go}.reached"))
        server.stdin.close()
        assert server.wait(PATIENCE_S) == 0
    assert running.http.get("/health").json()["inflight_submits"] == 1
    go.touch()


@pytest.mark.parametrize("mode", SubmissionMode)
def test_a_mode_lists_what_it_allows(tmp_path: Path, mode: SubmissionMode) -> None:
    tools = offered(mode, Language.C, on=[Tool.PROFILE])
    box = Toolbox(tool_settings(tmp_path, ["http://127.0.0.1:9"], mode=mode, tools=tools))
    listed = {tool.name: tool.description for tool in box.listed()}
    assert ("score" in listed, "profile" in listed) == ((mode is not SubmissionMode.BLIND,) * 2)
    assert ("again" in listed["submit"]) == (mode is SubmissionMode.MULTI)
    assert box.call("search", {}).body["error"]["code"] == "unknown_tool"


def test_a_schema_names_the_kernels_file_and_is_closed() -> None:
    assert SPECS[Tool.SCORE].takes is FileInput
    schema = SPECS[Tool.PROFILE].schema("axpy.c", Language.C)
    assert schema["properties"]["file"]["default"] == "axpy.c"
    assert schema["required"] == ["tool"]
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("language", "profilers"),
    [
        (Language.C, ["callgrind", "perf"]),
        (Language.FORTRAN, ["callgrind", "perf"]),
        (Language.HIP, ["isa", "rocprofv3", "rocprof-compute", "ncu"]),
    ],
)
def test_profile_lists_the_profilers_that_take_the_language(language: Language, profilers: list[str]) -> None:
    listed = SPECS[Tool.PROFILE].schema("axpy.c", language)["properties"]["tool"]
    assert listed["enum"] == profilers
    assert all(name in listed["description"] for name in profilers)
    assert all((name in listed["description"]) == (name in profilers) for name in ProfileTool)


def test_texts_are_cut_and_nulls_left_out() -> None:
    log = "a" * TEXT_CAP_CHARS + "b" * TEXT_CAP_CHARS
    answer = Answer(
        grade_id="g", kernel="axpy", rank=0, outcome="wrong", protocol="p", detail={"log": log, "got": None}
    )
    shown = graded(answer)
    assert set(shown) == {"grade_id", "outcome", "protocol", "detail"}
    assert set(shown["detail"]) == {"log"}
    assert len(shown["detail"]["log"]) < TEXT_CAP_CHARS + 100
    assert f"{TEXT_CAP_CHARS} characters left out" in shown["detail"]["log"]
    assert capped("short") == "short"
    failed = ProfileAnswer(kernel="axpy", rank=0, tool="perf", outcome="build_failed", detail={"log": "no"})
    assert profiled(failed) == {"outcome": "build_failed", "tool": "perf", "detail": {"log": "no"}}


def test_a_number_that_is_none_stays_readable() -> None:
    answer = Answer(
        grade_id="g", kernel="axpy", rank=0, outcome="wrong", protocol="p", detail={"got": float("nan"), "index": [0]}
    )
    assert graded(answer)["detail"] == {"index": [0]}


def test_settings_that_are_not_there_end_the_server(tmp_path: Path) -> None:
    argv = [sys.executable, "-P", "-m", "agent.tools.server", str(tmp_path / "gone.json")]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 64
    assert "gone.json: cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_copy_holds_no_judge(staged: Path) -> None:
    judge = {path.relative_to(staged / "bench").as_posix() for path in (staged / "bench").rglob("*.py")}
    assert judge == {
        *("__init__.py", "errors.py", "process.py", "wording.py"),
        *("judge/__init__.py", "judge/client.py", "judge/schemas.py"),
    }
    assert {path.name for path in staged.iterdir()} == {"agent", "bench", "bin"}
    assert not (staged / "agent" / "driver.py").exists()
    assert {path.relative_to(ROOT) for path in needed()} == {path.relative_to(staged) for path in staged.rglob("*.py")}


def test_the_copy_runs_alone(staged: Path) -> None:
    program = (
        "import agent.tools.server, agent.commands.tool, agent.tools.judge_tools, bench.judge.client, sys\n"
        "ours = [name for name in sys.modules if name.split('.')[0] in ('agent', 'bench')]\n"
        "print(*{sys.modules[name].__file__ for name in ours})\n"
        "import bench.judge.app\n"
    )
    argv = [sys.executable, "-P", "-c", program]
    done = subprocess.run(argv, env={"PYTHONPATH": str(staged)}, capture_output=True, text=True, timeout=PATIENCE_S)
    assert all(Path(path).is_relative_to(staged) for path in done.stdout.split())
    assert "No module named 'bench.judge.app'" in done.stderr
