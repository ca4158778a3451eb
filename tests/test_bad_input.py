"""Bad input: each kind has its own answer that says what to do, and costs nobody else anything."""

import json
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judge_rank import GOOD, PATIENCE_S, Rank, rank, wait_for

from bench.judge.schemas import ErrorBody, GradeRequest

LIMIT_BYTES = 1 << 20
SOURCE = GOOD["source"]


@pytest.fixture(scope="module")
def open_rank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    with rank(tmp_path_factory.mktemp("bad-input"), max_body_bytes=LIMIT_BYTES) as running:
        yield running


def assert_refused(answer: Any, status: int, code: str, hint: str) -> None:
    """The error's shape, its code, and a word of what to do."""
    assert answer.status_code == status, answer.text
    error = ErrorBody.model_validate_json(answer.content).error
    assert (error.code, error.request_id) == (code, answer.headers["x-request-id"])
    assert hint in error.message


def assert_grades(running: Rank) -> None:
    assert running.post("/score").json()["outcome"] == "solved"


BODIES = {
    "empty": (b"", 400, "bad_json", "the body is empty; send one JSON object"),
    "malformed": (b'{"kernel": ', 400, "bad_json", "send one JSON object"),
    "not-utf8": (b'{"kernel": "\xff"}', 400, "bad_json", "send UTF-8"),
    "utf16": ('{"kernel": "axpy"}'.encode("utf-16"), 400, "bad_json", "send UTF-8"),
    "deep": (b"[" * 200_000, 400, "bad_json", "one flat JSON object"),
    "huge-number": (b'{"workspace_bytes": ' + b"9" * 5000 + b"}", 400, "bad_json", "send one JSON object"),
    "list": ([GOOD], 400, "not_an_object", "a list; send one JSON object"),
    "text": ("axpy", 400, "not_an_object", 'the body is "axpy"; send one JSON object'),
    "null": (None, 400, "not_an_object", "null; send one JSON object"),
    "nan": (b'{"kernel": "axpy", "source": "x", "workspace_bytes": NaN}', 400, "bad_json", "NaN is not"),
    "infinity": (b'{"kernel": "axpy", "source": "x", "workspace_bytes": -Infinity}', 400, "bad_json", "Infinity"),
    "kernel-a-number": ({"kernel": 7, "source": SOURCE}, 400, "bad_request", "field 'kernel' is 7; it must be"),
    "kernel-a-list": ({"kernel": ["axpy"], "source": SOURCE}, 400, "bad_request", "field 'kernel' is a list; it must"),
    "kernel-null": ({"kernel": None, "source": SOURCE}, 400, "bad_request", "field 'kernel' is null; it must be"),
    "kernel-empty": ({"kernel": "", "source": SOURCE}, 404, "unknown_kernel", "axpy"),
    "source-an-object": ({"kernel": "axpy", "source": {}}, 400, "bad_request", "'source' is an object; it must be"),
    "workspace-a-text": (GOOD | {"workspace_bytes": "9"}, 400, "bad_request", "'workspace_bytes' is \"9\"; it must be"),
    "workspace-negative": (GOOD | {"workspace_bytes": -1}, 400, "bad_request", "'workspace_bytes' is -1; it must be"),
    "workspace-true": (GOOD | {"workspace_bytes": True}, 400, "bad_request", "'workspace_bytes'"),
    "workspace-huge": (GOOD | {"workspace_bytes": 1 << 40}, 400, "bad_request", "1099511627776; it must be less"),
    "rank-a-float": (GOOD | {"rank": 0.5}, 400, "bad_request", "'rank' is 0.5; it must be"),
    "unknown-field": (GOOD | {"seed": 1}, 400, "bad_request", "'seed'; the fields are kernel, language"),
    "misspelt-field": ({"kernl": "axpy", "source": SOURCE}, 400, "bad_request", "unknown field 'kernl'; the fields"),
    "unknown-language": (GOOD | {"language": "cobol"}, 400, "bad_request", "is \"cobol\"; it must be 'c', 'cpp'"),
    "key-twice": (b'{"kernel": "axpy", "source": "a", "source": "b"}', 400, "bad_json", "'source' is there twice"),
    "no-kernel": ({"source": SOURCE}, 400, "bad_request", "'kernel' is missing; the fields are kernel, language"),
    "no-delivery": ({"kernel": "axpy"}, 400, "bad_request", "send exactly one of"),
    "two-deliveries": (GOOD | {"source_file": "axpy.c"}, 400, "bad_request", "source and source_file"),
    "library": ({"kernel": "axpy", "library": "axpy.so"}, 400, "wrong_delivery", "JUDGE_INPUT_MODE=source"),
    "lone-surrogate": (b'{"kernel": "axpy", "source": "\\ud800"}', 400, "bad_request", "whole characters"),
    "surrogate-in-path": (
        b'{"kernel": "axpy", "source_file": "\\ud800/axpy.c"}',
        *(400, "bad_request", "whole characters"),
    ),
    "nul": (GOOD | {"source": "a\0b"}, 400, "bad_source", "NUL"),
    "unknown-kernel": ({"kernel": "axpi", "source": SOURCE}, 404, "unknown_kernel", "axpy"),
    "unknown-kernel-of-a-file": ({"kernel": "axpi", "source_file": "axpy.c"}, 404, "unknown_kernel", "axpy"),
    "wrong-rank": (GOOD | {"rank": 3}, 421, "wrong_rank", "this judge serves rank 0"),
    "40-mb": (b'{"kernel": "axpy", "source": "' + b"x" * (40 << 20) + b'"}', 413, "body_too_large", "at most"),
}


@pytest.mark.parametrize("route", ["/score", "/submit"])
@pytest.mark.parametrize(("body", "status", "code", "hint"), BODIES.values(), ids=BODIES)
def test_a_bad_body_has_its_own_answer(
    open_rank: Rank, route: str, body: Any, status: int, code: str, hint: str
) -> None:
    assert_refused(open_rank.post(route, body), status, code, hint)
    assert_grades(open_rank)


HEADERS = {
    "attempt-a-word": ({"Kcourt_Attempt": "two"}, 400, "bad_header", "is 'two'; send a whole number from 1 to"),
    "attempt-empty": ({"Kcourt_Attempt": ""}, 400, "bad_header", "is ''; send a whole number from 1 to"),
    "attempt-zero": ({"Kcourt_Attempt": "0"}, 400, "bad_header", "is '0'; send a whole number from 1 to"),
    "attempt-negative": ({"Kcourt_Attempt": "-1"}, 400, "bad_header", "is '-1'; send a whole number from 1 to"),
    "tokens-a-float": ({"Kcourt_Tokens": "1.5"}, 400, "bad_header", "from 0 to 9223372036854775807, or leave it out"),
    "tokens-huge": ({"Kcourt_Tokens": "9" * 30}, 400, "bad_header", "from 0 to 9223372036854775807, or leave it out"),
    "home-rank": ({"Kcourt_Home_Rank": "a"}, 400, "bad_header", "is 'a'; send a whole number from 0"),
    "key-empty": ({"Idempotency_Key": ""}, 400, "bad_header", "is '' (0 characters); send 1 to 200"),
    "key-with-spaces": ({"Idempotency_Key": "a b"}, 400, "bad_header", "is 'a b' (3 characters); send 1 to 200"),
    "key-too-long": ({"Idempotency_Key": "k" * 300}, 400, "bad_header", "(300 characters); send 1 to 200"),
    "kind-of-the-driver": ({"Kcourt_Kind": "promoted"}, 403, "driver_only", "leave the header out"),
    "of-a-grade": ({"Kcourt_Of_Grade": str(uuid.UUID(int=0))}, 403, "driver_only", "leave the header out"),
    "episode": ({"Kcourt_Episode": "a.n0.p0.w0"}, 403, "driver_only", "leave the header out"),
}


@pytest.mark.parametrize(("headers", "status", "code", "hint"), HEADERS.values(), ids=HEADERS)
def test_a_bad_header_has_its_own_answer(
    open_rank: Rank, headers: dict[str, str], status: int, code: str, hint: str
) -> None:
    answer = open_rank.post("/submit", GOOD, None, **headers)
    assert_refused(answer, status, code, hint)
    assert next(iter(headers)).replace("_", "-") in answer.json()["error"]["message"]


ROUTES = {
    "unknown": ("GET", "/scores", 404, "unknown_route", "GET /scores is no route; the routes are GET /health"),
    "slash": ("POST", "/score/", 404, "unknown_route", "POST /score/ is no route"),
    "no-kernel": ("GET", "/task/", 404, "unknown_route", "GET /task/{kernel}"),
    "get-score": ("GET", "/score", 405, "method_not_allowed", "GET /score is no route; send POST"),
    "post-health": ("POST", "/health", 405, "method_not_allowed", "POST /health is no route; send GET"),
    "unknown-task": ("GET", "/task/axpi", 404, "unknown_kernel", "axpy"),
    "task-in-cobol": (
        "GET",
        "/task/axpy?language=cobol",
        400,
        "bad_request",
        "parameter 'language' is \"cobol\"; it must be 'c'",
    ),
    "unknown-baseline": ("GET", "/baseline/axpi", 404, "unknown_kernel", "axpy"),
    "unknown-grade": ("GET", f"/grades/{uuid.UUID(int=0)}", 404, "unknown_grade", "grade_id"),
    "profile": ("POST", "/profile", 400, "bad_json", "send one JSON object"),
    "search": ("POST", "/search", 503, "not_provisioned", "go on without"),
}


@pytest.mark.parametrize(("method", "path", "status", "code", "hint"), ROUTES.values(), ids=ROUTES)
def test_a_wrong_route_has_its_own_answer(
    open_rank: Rank, method: str, path: str, status: int, code: str, hint: str
) -> None:
    assert_refused(open_rank.http.request(method, path), status, code, hint)


def _link_out(shared: Path) -> None:
    (shared / "axpy.c").symlink_to("/etc/hostname")


def _folder_out(shared: Path) -> None:
    (shared / "deeper").symlink_to(shared.parent)
    (shared.parent / "axpy.c").write_text("secret")


FILES = {
    "empty": ("", None, "bad_file_name", 'source_file "" must be a file called axpy.c'),
    "another-name": ("mine.c", None, "bad_file_name", 'source_file "mine.c" must be a file called axpy.c'),
    "another-suffix": ("axpy.cpp", None, "bad_file_name", "axpy.c"),
    "absolute-outside": ("/etc/axpy.c", None, "outside_shared", "put the file in there"),
    "dots-outside": ("../axpy.c", None, "outside_shared", "put the file in there"),
    "link-outside": ("axpy.c", _link_out, "outside_shared", "put the file in there"),
    "folder-outside": ("deeper/axpy.c", _folder_out, "outside_shared", "put the file in there"),
    "missing": ("axpy.c", None, "unreadable", 'source_file "axpy.c" cannot be read'),
    "folder": ("axpy.c", lambda shared: (shared / "axpy.c").mkdir(), "unreadable", "check the path"),
    "fifo": ("axpy.c", lambda shared: os.mkfifo(shared / "axpy.c"), "unreadable", "plain text file"),
    "not-utf8": ("axpy.c", lambda shared: (shared / "axpy.c").write_bytes(b"\xff"), "bad_source", "UTF-8"),
    "nul-in-name": ("a\0/axpy.c", None, "bad_file_name", "axpy.c"),
}


@pytest.mark.parametrize(("name", "prepare", "code", "hint"), FILES.values(), ids=FILES)
def test_a_bad_source_file_has_its_own_answer(open_rank: Rank, name: str, prepare: Any, code: str, hint: str) -> None:
    shared = Path(open_rank.config["shared_dir"])
    if prepare:
        prepare(shared)
    try:
        body = {"kernel": "axpy", "language": "c", "source_file": name}
        assert_refused(open_rank.post("/score", body), 400, code, hint)
    finally:
        for path in [*shared.iterdir(), shared.parent / "axpy.c"]:
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)


def test_a_source_file_in_the_shared_folder_is_graded(open_rank: Rank) -> None:
    file = Path(open_rank.config["shared_dir"]) / "axpy.py"
    file.write_text("# a good kernel")
    for name in ("axpy.py", str(file)):
        assert open_rank.post("/score", {"kernel": "axpy", "source_file": name}).json()["outcome"] == "solved"
    file.unlink()


def raw(running: Rank, request: bytes) -> socket.socket:
    """A connection on which a request was sent as it is."""
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE_S)
    connection.sendall(request)
    return connection


def everything(connection: socket.socket) -> bytes:
    """What the other side says until it closes."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b""))


def head(length: int, extra: str = "") -> bytes:
    return f"POST /score HTTP/1.1\r\nHost: judge\r\nContent-Length: {length}\r\n{extra}\r\n".encode()


def test_a_length_longer_than_the_body_is_told_so(tmp_path: Path) -> None:
    body = json.dumps(GOOD).encode()
    with rank(tmp_path, stall_s=0.3) as hasty:
        said = everything(raw(hasty, head(len(body) + 100) + body))
        assert said.startswith(b"HTTP/1.1 400") and b'"incomplete_body"' in said
        assert b'"solved"' in everything(raw(hasty, head(len(body), "Connection: close\r\n") + body))


def test_a_length_shorter_than_the_body_cuts_it(open_rank: Rank) -> None:
    body = json.dumps(GOOD).encode()
    said = everything(raw(open_rank, head(len(body) - 5) + body))
    assert said.startswith(b"HTTP/1.1 400") and b'"bad_http"' in said
    cut = json.loads(said.partition(b"\r\n\r\n")[2])
    assert "Content-Length" in cut["error"]["message"]
    assert_grades(open_rank)


def test_a_length_beyond_the_limit_is_refused_before_the_body_comes(open_rank: Rank) -> None:
    said = everything(raw(open_rank, head(LIMIT_BYTES + 1)))
    assert said.startswith(b"HTTP/1.1 413") and b'"body_too_large"' in said


def test_chunks_beyond_the_limit_are_refused_before_they_end(open_rank: Rank) -> None:
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    request = b"POST /score HTTP/1.1\r\nHost: judge\r\nTransfer-Encoding: chunked\r\n\r\n"
    said = everything(raw(open_rank, request + chunk * (LIMIT_BYTES // 0x10000 + 1)))
    assert said.startswith(b"HTTP/1.1 413") and b'"body_too_large"' in said


NOT_HTTP = {
    "nonsense": b"hello judge\r\n\r\n",
    "bad-length": b"POST /score HTTP/1.1\r\nHost: judge\r\nContent-Length: -5\r\n\r\n",
    "two-lengths": b"POST /score HTTP/1.1\r\nHost: j\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length-and-chunks": b"POST /score HTTP/1.1\r\nHost: j\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", NOT_HTTP.values(), ids=NOT_HTTP)
def test_what_is_no_http_is_refused(open_rank: Rank, request_bytes: bytes) -> None:
    said = everything(raw(open_rank, request_bytes))
    assert said.startswith(b"HTTP/1.1 400") and b'"bad_http"' in said
    assert_grades(open_rank)


LARGE = {
    "many-headers": b"".join(b"X-%d: y\r\n" % number for number in range(101)) + b"\r\n",
    "large-header": b"X-Large: " + b"x" * (64 << 10) + b"\r\n\r\n",
    "large-together": b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(70)) + b"\r\n",
    "endless": b"X-Endless: " + b"x" * (65 << 10),
}


@pytest.mark.parametrize("headers", LARGE.values(), ids=LARGE)
def test_a_head_that_is_too_large_is_refused(open_rank: Rank, headers: bytes) -> None:
    said = everything(raw(open_rank, b"GET /health HTTP/1.1\r\nHost: judge\r\n" + headers))
    assert said.startswith(b"HTTP/1.1 431")
    assert ErrorBody.model_validate_json(said.partition(b"\r\n\r\n")[2]).error.code == "head_too_large"
    assert_grades(open_rank)


def test_a_long_path_is_refused(open_rank: Rank) -> None:
    said = everything(raw(open_rank, b"GET /" + b"x" * (64 << 10) + b" HTTP/1.1\r\nHost: judge\r\n\r\n"))
    assert said.startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("line", [b"OPTIONS *", b"GET *", b"GET //", b"GET /"], ids=bytes.decode)
def test_a_target_that_is_no_route_is_refused(open_rank: Rank, line: bytes) -> None:
    said = everything(raw(open_rank, line + b" HTTP/1.1\r\nHost: judge\r\nConnection: close\r\n\r\n"))
    assert said.startswith(b"HTTP/1.1 4"), said
    assert ErrorBody.model_validate_json(said.partition(b"\r\n\r\n")[2]).error.message


@pytest.mark.parametrize("sent", [b"POST /sc", head(100), head(100) + b'{"kernel"'], ids=["head", "no-body", "half"])
def test_half_a_request_costs_nobody_anything(open_rank: Rank, sent: bytes) -> None:
    raw(open_rank, sent).close()
    assert_grades(open_rank)


def test_the_grade_of_a_client_that_left_is_found_by_its_key(open_rank: Rank, tmp_path: Path) -> None:
    go = tmp_path / "go"
    body = json.dumps(GOOD | {"source": f"// fake: wait {go}"}).encode()
    connection = raw(open_rank, head(len(body), "Idempotency-Key: left\r\n") + body)
    wait_for(Path(f"{go}.reached"))
    connection.close()
    go.touch()
    answer = open_rank.post("/score", body, Idempotency_Key="left")
    assert answer.json()["outcome"] == "solved"
    assert open_rank.get(f"/grades/{answer.json()['grade_id']}").content == answer.content


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
REQUESTS = st.dictionaries(st.sampled_from([*GradeRequest.model_fields, "tool"]), JSON_VALUES | st.just("axpy"))


@given(body=JSON_VALUES | REQUESTS, route=st.sampled_from(["/score", "/submit"]))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_json_body_is_the_judges_fault(open_rank: Rank, body: Any, route: str) -> None:
    answer = open_rank.post(route, json.dumps(body).encode())
    assert answer.status_code < 500
    json.loads(answer.content.decode(), parse_constant=pytest.fail)
