"""Clients that leave, stall, lie about lengths or speak no HTTP, at a real router and judge: they harm nobody else.

What a router does with one odd connection is in test_router_connections.py, and what a bad request is answered in
test_bad_input.py. Here is what they cost others: after every scene both processes have as many descriptors as before,
every grade is in the shard exactly once, and a normal client has been answered meanwhile and is answered after.
"""

import asyncio
import contextlib
import json
import random
import re
import resource
import socket
import sqlite3
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from judge_rank import GOOD, PATIENCE_S, Rank, rank, wait_for
from test_router_connections import GET, Running, run

from bench.judge import downstream

STALL_S = 1.0
IDLE = 3000
CROWD = 60
# A router keeps as many connections to its judge as it ever needed at once.
SPARE_DESCRIPTORS = CROWD + 10
GROWTH_BYTES = 48 << 20
BODY = json.dumps(GOOD).encode()
STATUS = re.compile(rb"HTTP/1\.1 \d{3} ")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    raise_limit()
    with rank(tmp_path_factory.mktemp("rude"), stall_s=STALL_S, max_body_bytes=1 << 20) as running:
        for _ in range(20):
            assert_answered(running)
        yield running


@pytest.fixture(autouse=True)
def unharmed(judge: Rank) -> Iterator[None]:
    """What holds before and after every scene."""
    before = Footprint(judge)
    yield
    assert_answered(judge)
    before.is_back()
    found = Counter(row for (row,) in rows(judge, "SELECT idempotency_key FROM grades"))
    assert set(found.values()) == {1}, found.most_common(3)
    assert judge.wait_for_health(status="ok", queue_depth=0, inflight_submits=0)


def raise_limit() -> None:
    """Let this process, and the router that it starts, have as many descriptors as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Footprint:
    """Descriptors and memory of router, judge and measuring process."""

    def __init__(self, judge: Rank) -> None:
        router = psutil.Process(judge.process.pid)
        self._processes = [router, *router.children(recursive=True)]
        self._before = [self._now(process) for process in self._processes]

    def _now(self, process: psutil.Process) -> tuple[int, int]:
        return process.num_fds(), process.memory_info().rss

    def is_back(self) -> None:
        """Wait until all that was opened is closed; none of the processes was replaced, or grew."""
        deadline = time.monotonic() + PATIENCE_S
        for process, (descriptors, size) in zip(self._processes, self._before, strict=True):
            while process.num_fds() > descriptors + SPARE_DESCRIPTORS:
                assert time.monotonic() < deadline, (process, descriptors, process.num_fds())
                time.sleep(0.02)
            assert process.memory_info().rss < size + GROWTH_BYTES, process


_keys = map("key-{}".format, range(10**9))


def assert_answered(judge: Rank) -> None:
    """A normal client beside: its grade is made and it sees that the judge is well."""
    answer = judge.post("/score", GOOD, Idempotency_Key=next(_keys))
    assert (answer.status_code, answer.json()["outcome"]) == (200, "solved")
    assert judge.get("/health").json()["status"] == "ok"


def rows(judge: Rank, query: str, *values: Any) -> list[Any]:
    with contextlib.closing(sqlite3.connect(judge.shard)) as shard:
        return shard.execute(query, values).fetchall()


def recorded(judge: Rank, keys: set[str]) -> None:
    """Wait until each of these keys has its one grade."""
    deadline = time.monotonic() + PATIENCE_S
    while keys - {row for (row,) in rows(judge, "SELECT idempotency_key FROM grades")}:
        assert time.monotonic() < deadline, keys
        time.sleep(0.02)


def connected(judge: Rank, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", judge.port), timeout=PATIENCE_S)
    connection.sendall(sent)
    return connection


def reset(connection: socket.socket) -> None:
    """Leave at once, as a process that is killed: the other side gets a reset and not an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side closes or resets."""
    said = b""
    with connection, contextlib.suppress(ConnectionResetError):
        while more := connection.recv(65536):
            said += more
    return said


def request(body: bytes = BODY, *headers: str, path: str = "/score", version: str = "1.1") -> bytes:
    lines = [f"POST {path} HTTP/{version}", "Host: judge", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def waiting(go: Path) -> bytes:
    """The body of a submission whose grade lasts until `go` exists."""
    return json.dumps(GOOD | {"source": f"// fake: wait {go}"}).encode()


# Clients that leave


LEAVE: dict[str, Callable[[socket.socket], None]] = {
    "closes": socket.socket.close,
    "resets": reset,
    "ends-its-side": lambda connection: connection.shutdown(socket.SHUT_WR),
    "reads-no-more": lambda connection: connection.shutdown(socket.SHUT_RD),
}


@pytest.mark.parametrize("leave", LEAVE.values(), ids=LEAVE)
def test_who_leaves_the_queue_has_its_grade_all_the_same(
    judge: Rank, tmp_path: Path, leave: Callable[[socket.socket], None]
) -> None:
    go, keys = tmp_path / "go", [next(_keys) for _ in range(6)]
    first = connected(judge, request(waiting(go), f"Idempotency-Key: {keys[0]}", path="/submit"))
    wait_for(Path(f"{go}.reached"))
    queued = [connected(judge, request(BODY, f"Idempotency-Key: {key}", path="/submit")) for key in keys[1:]]
    judge.wait_for_health(queue_depth=len(queued))
    for connection in (first, *queued):
        leave(connection)
    assert judge.get("/health").json()["queue_depth"] == len(queued)
    go.touch()
    recorded(judge, set(keys))
    answers = [judge.post("/submit", BODY, Idempotency_Key=key) for key in keys[1:]]
    assert {answer.json()["outcome"] for answer in answers} == {"solved"}
    for connection in (first, *queued):
        connection.close()


STAGES = {
    "connected": b"",
    "in-the-request-line": b"POST /sc",
    "in-the-headers": b"POST /score HTTP/1.1\r\nHost: judge\r\nContent-",
    "after-the-headers": request()[: -len(BODY)],
    "in-the-body": request()[:-5],
    "in-a-chunk": b"POST /score HTTP/1.1\r\nHost: judge\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
    "before-the-answer": b"GET /openapi.json HTTP/1.1\r\nHost: judge\r\n\r\n",
}


@pytest.mark.parametrize("sent", STAGES.values(), ids=STAGES)
def test_a_crowd_that_leaves_at_once_leaves_nothing(judge: Rank, sent: bytes) -> None:
    crowd = [connected(judge, sent) for _ in range(CROWD)]
    assert_answered(judge)
    for number, connection in enumerate(crowd):
        (reset if number % 2 else socket.socket.close)(connection)


def test_who_leaves_in_the_middle_of_an_answer_harms_nobody(judge: Rank) -> None:
    for _ in range(100):
        connection = connected(judge, b"GET /openapi.json HTTP/1.1\r\nHost: judge\r\n\r\n")
        assert connection.recv(1)
        reset(connection)


def test_who_is_told_to_come_back_and_never_does_has_its_grade(judge: Rank) -> None:
    keys = {next(_keys) for _ in range(30)}
    for key in keys:
        told = judge.post("/submit", GOOD, Idempotency_Key=key, Prefer="respond-async")
        assert told.status_code in (200, 202)
    recorded(judge, keys)


# Clients that stall


def test_the_silent_and_the_slow_are_ended_and_delay_nobody(judge: Rank) -> None:
    head = request()[: -len(BODY)]
    chunks = b"POST /score HTTP/1.1\r\nHost: judge\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
    stalled = [connected(judge, sent) for sent in [head, head + BODY[:9], chunks] * 20]
    began = time.monotonic()
    assert_answered(judge)
    for connection in stalled:
        said = everything(connection)
        assert said.startswith(b"HTTP/1.1 400") and b'"incomplete_body"' in said
    assert time.monotonic() - began < STALL_S * len(stalled) / 2


def test_a_slow_body_that_goes_on_is_taken(judge: Rank) -> None:
    key = next(_keys)
    sent = request(BODY, f"Idempotency-Key: {key}", "Connection: close")
    connection = connected(judge, sent[: -len(BODY)])
    for byte in BODY:
        connection.sendall(bytes([byte]))
        time.sleep(STALL_S / len(BODY))
    assert b'"solved"' in everything(connection)


def test_a_body_that_comes_byte_by_byte_for_ever_is_ended(judge: Rank) -> None:
    connection = connected(judge, request(b" " * 100_000)[:-100_000])
    connection.settimeout(STALL_S / 5)
    said, deadline = b"", time.monotonic() + 15 * STALL_S
    while not said and time.monotonic() < deadline:
        connection.sendall(b" ")
        with contextlib.suppress(TimeoutError):
            said = connection.recv(65536)
    connection.close()
    assert said.startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET /hea", b"GET / HTTP/1.1\r\nX-One: "], ids=repr)
def test_a_connection_on_which_no_request_comes_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(downstream, "KEEP_ALIVE_S", 0.2)

    async def scene(running: Running) -> None:
        reader, writer = await running.connect(sent)
        assert await reader.read() == b""
        writer.close()

    run(tmp_path, scene)


def test_who_does_not_read_its_answers_is_not_asked_for_more(tmp_path: Path) -> None:
    answer_bytes, requests = 1 << 20, 30

    async def scene(running: Running) -> None:
        running.judge.answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % answer_bytes + bytes(answer_bytes)
        _, writer = await running.connect()
        for _ in range(requests):
            running.judge.asked.clear()
            writer.write(GET)
            try:
                async with asyncio.timeout(0.5):
                    await running.judge.asked.wait()
            except TimeoutError:
                break
            await asyncio.sleep(0.01)
        # What the system's own buffers take (a few MB) is answered, and no more.
        assert len(running.judge.requests) < requests
        writer.transport.abort()

    run(tmp_path, scene)


# Clients in great numbers


def test_thousands_that_say_nothing_take_nothing_from_a_grade(judge: Rank) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * IDLE:
        pytest.skip(f"this process may open {hard} files, fewer than {2 * IDLE}: raise the hard limit (ulimit -Hn)")
    crowd = [connected(judge) for _ in range(IDLE)]
    router = psutil.Process(judge.process.pid)
    deadline = time.monotonic() + PATIENCE_S
    while router.num_fds() < IDLE:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    began = time.monotonic()
    assert_answered(judge)
    assert time.monotonic() - began < 10
    for connection in crowd:
        connection.close()


@pytest.mark.parametrize("port", ["router_port", "judge_port"])
def test_a_low_limit_of_open_files_is_no_way_to_lock_others_out(tmp_path: Path, port: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1000:
        pytest.skip(f"no process may open more than {hard} files here: raise the hard limit (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with rank(tmp_path) as low, contextlib.ExitStack() as crowd:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for _ in range(300):
                crowd.enter_context(socket.create_connection(("127.0.0.1", low.config[port])))
            with httpx.Client(base_url=f"http://127.0.0.1:{low.port}", timeout=PATIENCE_S, trust_env=False) as newcomer:
                assert newcomer.post("/score", content=BODY).json().get("outcome") == "solved"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_floods_of_headers_are_cut_off_while_others_are_served(judge: Rank) -> None:
    flood = b"GET /health HTTP/1.1\r\nHost: judge\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(5000))

    def pour(_: int) -> bytes:
        connection = connected(judge)
        with contextlib.suppress(OSError):
            connection.sendall(flood)
        return everything(connection)

    with ThreadPoolExecutor(20) as threads:
        pouring = threads.map(pour, range(200))
        assert_answered(judge)
        assert all(said.startswith(b"HTTP/1.1 431") for said in pouring)


# Clients that speak otherwise


def test_requests_that_do_not_wait_for_each_other_are_refused_and_graded_once_at_most(judge: Rank) -> None:
    keys = [next(_keys) for _ in range(3)]
    said = everything(connected(judge, b"".join(request(BODY, f"Idempotency-Key: {key}") for key in keys)))
    assert len(STATUS.findall(said)) == 1 and b'"bad_http"' in said
    assert len(rows(judge, "SELECT 1 FROM grades WHERE idempotency_key IN (?, ?, ?)", *keys)) <= 1


def test_an_old_client_is_answered_and_closed(judge: Rank) -> None:
    key = next(_keys)
    sent = request(BODY, f"Idempotency-Key: {key}", "Connection: keep-alive", version="1.0")
    said = everything(connected(judge, sent))
    assert b"connection: close" in said and b'"solved"' in said


NOISE = {
    "tls": bytes.fromhex("16030100c8010000c40303") + bytes(range(189)),
    "http-2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000"),
    "http-0.9": b"GET /health\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "nothing-but-lines": b"\r\n" * 50_000,
    "zeros": bytes(100_000),
    "noise": random.Random(8).randbytes(1 << 20),
    "text": "Grüße an den Richter\n".encode() * 1000,
    "connect": b"CONNECT judge:443 HTTP/1.1\r\nHost: judge:443\r\n\r\n" + bytes.fromhex("1603010005"),
    "web-socket": b"GET /health HTTP/1.1\r\nHost: j\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x85abcd",
    "folded": b"GET /health HTTP/1.1\r\nHost: judge\r\nX-One: a\r\n b\r\nX-\x00: c\r\n\r\n",
    "space-before-colon": request().replace(b"Content-Length:", b"Content-Length :"),
    "signed-length": request().replace(b"Length: ", b"Length: +"),
    "length-of-ages": b"POST /score HTTP/1.1\r\nHost: judge\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    "chunk-of-ages": b"POST /score HTTP/1.1\r\nHost: j\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n{}",
    "negative-chunk": b"POST /score HTTP/1.1\r\nHost: j\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
    "chunked-twice": b"POST /score HTTP/1.1\r\nHost: j\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "other-coding": b"POST /score HTTP/1.1\r\nHost: j\r\nTransfer-Encoding: gzip\r\n\r\n{}",
}


@pytest.mark.parametrize("sent", NOISE.values(), ids=NOISE)
def test_noise_is_ended_and_never_graded(judge: Rank, sent: bytes) -> None:
    before = rows(judge, "SELECT count(*) FROM grades")
    for _ in range(10):
        connection = connected(judge)
        with contextlib.suppress(OSError):
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        said = everything(connection)
        assert not said or said.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200 OK\r\ncontent-type: application/json")), said
    assert rows(judge, "SELECT count(*) FROM grades") == before


# Ways to say in one request what two parsers would take for two.
SMUGGLED = {
    "length-and-chunks": "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "hidden-coding": "Transfer-Encoding: xchunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding-with-tab": "Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two-lengths": "Content-Length: 0\r\nContent-Length: {length}\r\n\r\n",
    "length-list": "Content-Length: 0, {length}\r\n\r\n",
    "bare-line-end": "X-One: a\nContent-Length: {length}\r\n\r\n",
    "bare-return": "X-One: a\rContent-Length: {length}\r\n\r\n",
}


@pytest.mark.parametrize("headers", SMUGGLED.values(), ids=SMUGGLED)
def test_no_second_request_hides_in_a_first(judge: Rank, headers: str) -> None:
    key = next(_keys)
    inner = request(BODY, f"Idempotency-Key: {key}")
    outer = f"POST /search HTTP/1.1\r\nHost: judge\r\n{headers.format(length=len(inner))}".encode()
    said = everything(connected(judge, outer + inner))
    assert len(STATUS.findall(said)) == 1 and b"solved" not in said
    assert not rows(judge, "SELECT 1 FROM grades WHERE idempotency_key = ?", key)
