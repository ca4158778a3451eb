"""`/profile` of a judge: who may ask, what is answered, in which turn, and that nothing of it is recorded."""

import asyncio
import contextlib
import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_rank import GOOD, SECRET, Rank, rank, wait_for, write_config
from tool_files import tool_settings

from agent.tools.judge_tools import JudgeTools
from agent.tools.offered import Tool
from bench.config import JudgeConfig
from bench.judge.admission import admit_profile
from bench.judge.caller import identify
from bench.judge.client import JudgeClient, JudgeRefused
from bench.judge.refusal import Refused
from bench.judge.scheduler import Scheduler
from bench.judge.schemas import Language, ProfileRequest, ProfileTool, token_for
from bench.records import ProfileOrder, ProfileReport

PERF = GOOD | {"tool": "perf"}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    with rank(tmp_path_factory.mktemp("profile"), closed=True) as running:
        yield running


def grades(running: Rank) -> int:
    with contextlib.closing(sqlite3.connect(running.shard)) as shard:
        return int(shard.execute("SELECT count(*) FROM grades").fetchone()[0])


def test_a_profile_is_answered_counted_and_not_recorded(closed: Rank) -> None:
    before = grades(closed)
    answer = closed.post("/profile", PERF, "many.n0.p0.w0")
    assert answer.status_code == 200
    found = answer.json()
    assert found.keys() == {"kernel", "rank", "tool", "outcome", "report", "counters", "kernels", "detail"}
    assert (found["kernel"], found["rank"], found["tool"], found["outcome"]) == ("axpy", 0, "perf", "solved")
    assert found["counters"]["unit"] == "samples"
    assert grades(closed) == before
    assert 'kcourt_profiles_total{outcome="solved",tool="perf"}' in closed.get("/metrics").text


def test_all_profiles_of_an_episode_have_the_same_inputs(closed: Rank) -> None:
    def seed(label: str) -> str:
        return str(closed.post("/profile", PERF, label).json()["report"])

    assert seed("many.n0.p1.w0") == seed("many.n0.p1.w0") != seed("many.n0.p2.w0")


@pytest.mark.parametrize(
    ("label", "body", "status", "code", "says"),
    [
        (None, PERF, 401, "token_missing", "token"),
        ("dark.n0.p0.w0", PERF, 403, "blind_mode", "use /submit"),
        ("driver", PERF, 403, "driver_only_submits", "driver"),
        ("many.n0.p16.w0", PERF, 403, "other_kernel", "gelu"),
        ("many.n0.p0.w0", GOOD, 400, "bad_request", "field 'tool' is missing"),
        ("many.n0.p0.w0", PERF | {"tool": "gdb"}, 400, "bad_request", "'rocprof-compute' or 'ncu'"),
        ("many.n0.p0.w0", PERF | {"depth": 3}, 400, "bad_request", "unknown field 'depth'; the fields are kernel"),
        ("many.n0.p0.w0", PERF | {"language": "python"}, 400, "wrong_language", "JUDGE_INPUT_MODE"),
        ("many.n0.p0.w0", PERF | {"kernel": "none"}, 404, "unknown_kernel", "none"),
        ("many.n0.p0.w0", PERF | {"rank": 7}, 421, "wrong_rank", "rank 7"),
        ("many.n0.p0.w0", PERF | {"source": "// fake: lacking"}, 503, "not_provisioned", "perf was not found"),
    ],
    ids=[
        *("token", "blind", "driver", "kernel", "no-tool", "tool", "field", "language", "unknown", "rank", "lacking"),
    ],
)
def test_a_request_that_is_refused(
    closed: Rank, label: str | None, body: dict[str, Any], status: int, code: str, says: str
) -> None:
    answer = closed.post("/profile", body, label)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert says in error["message"]


def test_python_is_not_profiled(tmp_path: Path) -> None:
    config = JudgeConfig.read(write_config(tmp_path))
    body = json.dumps(PERF | {"language": "python"}).encode()
    with pytest.raises(Refused) as refused:
        admit_profile(body, {}, identify({}, config, None), config, None)
    assert (refused.value.status, refused.value.code) == (400, "wrong_language")
    assert "c, cpp, fortran" in refused.value.message


@pytest.mark.parametrize(
    ("word", "outcome", "detail"),
    [
        ("build_failed", "build_failed", {"property": "build", "log": "a log"}),
        ("fault", "judge_fault", {"property": "judge"}),
    ],
)
def test_what_fails_is_an_answer(closed: Rank, word: str, outcome: str, detail: dict[str, str]) -> None:
    found = closed.post("/profile", PERF | {"source": f"// fake: {word}"}, "many.n0.p0.w0").json()
    assert (found["outcome"], found["report"], found["counters"]) == (outcome, "", None)
    assert found["detail"].items() >= detail.items()


def test_a_profile_takes_its_turn(closed: Rank, tmp_path: Path) -> None:
    go, ended = tmp_path / "go", []

    def ask(route: str, body: dict[str, Any]) -> None:
        closed.post(route, body, "many.n0.p4.w0")
        ended.append(route)

    slow = {"kernel": "axpy", "source": f"// fake: wait {go}"}
    first = threading.Thread(target=ask, args=("/submit", slow))
    first.start()
    wait_for(Path(f"{go}.reached"))
    second = threading.Thread(target=ask, args=("/profile", PERF))
    second.start()
    closed.wait_for_health(queue_depth=1)
    assert ended == []
    go.touch()
    first.join()
    second.join()
    assert sorted(ended) == ["/profile", "/submit"]


def test_who_leaves_loses_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.process.sweep", lambda: 0)  # this process has other children: the judge of this module
    go = tmp_path / "go"

    def order(source: str) -> ProfileOrder:
        return ProfileOrder(kernel="axpy", language=Language.C, source=source, tool=ProfileTool.PERF, seed="07")

    async def main() -> None:
        argv = [sys.executable, str(Path(__file__).with_name("fake_worker.py")), str(tmp_path)]
        scheduler = Scheduler(argv, tmp_path / "worker.log", queue_limit=10)
        running = asyncio.create_task(scheduler.run())
        first = asyncio.create_task(scheduler.profile(order(f"// fake: wait {go}")))
        await asyncio.to_thread(wait_for, Path(f"{go}.reached"))
        left = asyncio.create_task(scheduler.profile(order("// fake: die")))
        last = asyncio.create_task(scheduler.profile(order("// good")))
        while scheduler.depth < 2:
            await asyncio.sleep(0)
        first.cancel()
        left.cancel()
        go.touch()
        found = await last
        assert isinstance(found.report, ProfileReport) and found.report.outcome == "solved"
        running.cancel()
        await asyncio.wait({running, first, left})

    asyncio.run(main())


def test_the_client_asks_for_a_profile(closed: Rank) -> None:
    token = token_for(SECRET, "many.n0.p5.w0")
    request = ProfileRequest(kernel="axpy", rank=0, source="// good", tool=ProfileTool.CALLGRIND)
    with JudgeClient(f"http://127.0.0.1:{closed.port}", token) as client:
        assert client.profile(request).tool is ProfileTool.CALLGRIND
        with pytest.raises(JudgeRefused) as refused:
            client.profile(request.model_copy(update={"source": "// fake: lacking"}))
    assert refused.value.code == "not_provisioned" and not refused.value.passing


def test_the_agents_tool_gives_the_report(closed: Rank, tmp_path: Path) -> None:
    offered = {"mode": "multi", "tools": (Tool.SUBMIT, Tool.PROFILE)}
    settings = tool_settings(tmp_path, [f"http://127.0.0.1:{closed.port}"], "many.n0.p6.w0", **offered)
    source = settings.folder / "axpy.c"
    tools = JudgeTools(settings)
    with contextlib.closing(tools):
        source.write_text("// good")
        assert tools.profile("axpy.c", ProfileTool.PERF).report.startswith("seed ")
        source.write_text("// fake: wrong")
        assert tools.profile("axpy.c", ProfileTool.PERF).outcome == "wrong"
        source.write_text("// fake: lacking")
        with pytest.raises(JudgeRefused):
            tools.profile("axpy.c", ProfileTool.PERF)
    kept = settings.answers_file.read_text().splitlines()
    assert [('"route": "profile"' in line, "not_provisioned" in line) for line in kept] == [
        (True, False),
        (True, False),
        (True, True),
    ]
