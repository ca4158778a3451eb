"""A router's connections: kept, closed, given up, ended; between plain sockets and a judge that does as it is told."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
import uvloop

from bench.judge.downstream import Clients
from bench.judge.serving import listen
from bench.judge.supervisor import Supervisor
from bench.judge.upstream import Upstream

WAIT_S = 60.0
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
CLOSING_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
GET = b"GET /health HTTP/1.1\r\nHost: judge\r\n\r\n"
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class FakeJudge:
    """Answers every request with `answer`, or lets it wait where that is empty; keeps what it was sent."""

    answer: bytes
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    requests: list[bytes] = field(default_factory=list)
    lines: list[asyncio.Transport] = field(default_factory=list)


class Line(asyncio.Protocol):
    """One connection to the fake judge."""

    def __init__(self, judge: FakeJudge) -> None:
        self._judge = judge

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._judge.lines.append(self._transport)

    def data_received(self, data: bytes) -> None:
        self._judge.requests.append(data)
        self._judge.asked.set()
        self._transport.write(self._judge.answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._judge.left.set()


@dataclass(frozen=True)
class Running:
    """A router in front of a fake judge."""

    judge: FakeJudge
    behind: asyncio.Server
    clients: Clients
    port: int

    async def connect(self, request: bytes = b"") -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        return reader, writer


@asynccontextmanager
async def router(folder: Path, answers: bool = True) -> AsyncIterator[Running]:
    judge = FakeJudge(ANSWER if answers else b"")
    behind = await asyncio.get_running_loop().create_server(lambda: Line(judge), "127.0.0.1", 0)
    upstream = Upstream("127.0.0.1", behind.sockets[0].getsockname()[1])
    clients = Clients(upstream, Supervisor([], folder / "output"), 1 << 20, 5.0)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = await clients.listen(listener)
    yield Running(judge, behind, clients, port)
    server.close()
    await clients.end(0)
    upstream.close()
    behind.close()


def run(folder: Path, scene: Callable[[Running], Awaitable[None]], answers: bool = True) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_S), router(folder, answers) as running:
            await scene(running)

    uvloop.run(main())


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    """One answer whose body is `{}`."""
    return await reader.readuntil(b"{}")


def test_connections_are_kept_on_both_sides(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        reader, writer = await running.connect()
        for _ in range(3):
            writer.write(GET)
            assert await answer_of(reader) == ANSWER
        assert len(running.judge.lines) == 1

    run(tmp_path, scene)


LAST = {
    "close": b"GET / HTTP/1.1\r\nHost: judge\r\nConnection: close\r\n\r\n",
    "http-1.0": b"GET / HTTP/1.0\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", LAST.values(), ids=LAST)
def test_a_client_that_wants_no_more_is_closed(tmp_path: Path, request_bytes: bytes) -> None:
    async def scene(running: Running) -> None:
        reader, _writer = await running.connect(request_bytes)
        said = await reader.read()
        assert said.startswith(b"HTTP/1.1 200 OK\r\nconnection: close\r\n") and said.endswith(b"{}")

    run(tmp_path, scene)


def test_what_belongs_to_one_connection_stays_on_it(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        head = b"POST /score?a=1 HTTP/1.1\r\nHost: judge\r\nKeep-Alive: 5\r\nTransfer-Encoding: chunked\r\nX-One: 1\r\n"
        chunks = b'X-Request-Id: mine\r\n\r\n2\r\n{"\r\n3\r\na"}\r\n0\r\nX-Late: 1\r\n\r\n'
        reader, _writer = await running.connect(head + chunks)
        await answer_of(reader)
        (request,) = running.judge.requests
        assert request == (
            b"POST /score?a=1 HTTP/1.1\r\nhost: judge\r\nx-one: 1\r\nx-request-id: mine\r\ncontent-length: 5\r\n\r\n"
            b'{"a"}'
        )

    run(tmp_path, scene)


def test_a_client_may_ask_before_it_sends_a_body(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        head = b"POST /score HTTP/1.1\r\nHost: judge\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
        reader, writer = await running.connect(head)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert running.judge.requests == []
        writer.write(b"true")
        assert await answer_of(reader) == ANSWER
        assert b"expect" not in running.judge.requests[0]

    run(tmp_path, scene)


def test_an_offer_of_another_protocol_is_answered_in_this_one(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        offer = b"GET / HTTP/1.1\r\nHost: judge\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
        reader, writer = await running.connect(offer)
        assert await answer_of(reader) == ANSWER
        writer.write(GET)
        assert await answer_of(reader) == ANSWER
        assert b"upgrade" not in running.judge.requests[0]

    run(tmp_path, scene)


def test_an_answer_to_head_has_no_body(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        running.judge.answer = ANSWER.removesuffix(b"{}")
        reader, writer = await running.connect(GET.replace(b"GET", b"HEAD"))
        assert await reader.readuntil(b"\r\n\r\n") == running.judge.answer
        running.judge.answer = ANSWER
        writer.write(GET)
        assert await answer_of(reader) == ANSWER

    run(tmp_path, scene)


def test_a_request_before_the_last_answer_is_refused(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        reader, writer = await running.connect(GET)
        await running.judge.asked.wait()
        writer.write(GET)
        said = await reader.read()
        assert said.startswith(b"HTTP/1.1 400") and b"one HTTP/1.1 request at a time" in said
        await running.judge.left.wait()

    run(tmp_path, scene, answers=False)


def test_a_client_that_leaves_takes_its_connection_to_the_judge_along(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        _, writer = await running.connect(GET)
        await running.judge.asked.wait()
        assert not running.judge.left.is_set()
        writer.close()
        await running.judge.left.wait()
        assert len(running.judge.requests) == 1

    run(tmp_path, scene, answers=False)


@pytest.mark.parametrize("answer", [ANSWER[:-1], b"", b"hello"], ids=["half", "none", "no-http"])
def test_a_judge_that_does_not_answer_restarts(tmp_path: Path, answer: bytes) -> None:
    async def scene(running: Running) -> None:
        reader, _writer = await running.connect(GET)
        await running.judge.asked.wait()
        running.judge.lines[0].write(answer)
        running.judge.lines[0].close()
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 502 Bad Gateway") and b"connection: close" not in head
        assert json.loads(await reader.readuntil(b"}}"))["error"]["code"] == "judge_restarting"

    run(tmp_path, scene, answers=False)


def test_a_judge_that_was_never_there_starts(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        running.behind.close()
        await running.behind.wait_closed()
        reader, _writer = await running.connect(GET)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 502 Bad Gateway")
        error = json.loads(await reader.readuntil(b"}}"))["error"]
        assert error["code"] == "judge_starting" and "the judge starts;" in error["message"]

    run(tmp_path, scene)


def test_a_judge_that_closes_is_asked_on_a_new_connection(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        running.judge.answer = CLOSING_ANSWER
        for count in (1, 2):
            reader, _writer = await running.connect(GET)
            assert await reader.read() == CLOSING_ANSWER
            assert len(running.judge.lines) == count

    run(tmp_path, scene)


def test_at_the_end_an_answer_under_way_is_given(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        idle, idle_writer = await running.connect(GET)
        assert await answer_of(idle) == ANSWER
        running.judge.answer = b""
        running.judge.asked.clear()
        busy, busy_writer = await running.connect(GET)
        await running.judge.asked.wait()
        ending = asyncio.create_task(running.clients.end(WAIT_S))
        assert await idle.read() == b""
        assert not ending.done()
        running.judge.lines[0].write(ANSWER)
        assert (await busy.read()).startswith(b"HTTP/1.1 200 OK\r\nconnection: close\r\n")
        await ending
        for writer in (idle_writer, busy_writer):
            writer.close()

    run(tmp_path, scene)


def test_at_the_end_an_answer_that_never_comes_is_not_waited_for(tmp_path: Path) -> None:
    async def scene(running: Running) -> None:
        reader, _writer = await running.connect(GET)
        await running.judge.asked.wait()
        await running.clients.end(0.05)
        assert await reader.read() == b""
        await running.judge.left.wait()

    run(tmp_path, scene, answers=False)
