"""The router: passes bytes on, stays when the judge dies, restarts it, gives it up in the end."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from judge_rank import GOOD, PATIENCE_S, Rank, rank, wait_for, write_config

from bench.errors import ConfigError, EnvironmentFault
from bench.judge.router import run_router
from bench.judge.supervisor import RestartPolicy


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    with rank(tmp_path_factory.mktemp("router")) as started:
        yield started


PAUSES = {
    "first": ([], 0.0, 0.1),
    "second": ([0.0], 1.0, 0.3),
    "fifth": ([0, 1, 2, 3], 10.0, 8.1),
    "sixth": ([0, 1, 2, 3, 4], 10.0, None),
    "old-ones-are-forgotten": ([0, 1, 2, 3, 4], 600.5, 8.1),
    "all-forgotten": ([0, 1, 2, 3, 4], 700.0, 0.1),
}


@pytest.mark.parametrize(("restarts", "now", "pause"), PAUSES.values(), ids=PAUSES)
def test_the_pause_before_a_restart(restarts: list[float], now: float, pause: float | None) -> None:
    assert RestartPolicy().pause(restarts, now) == pytest.approx(pause)


def test_a_pause_has_an_upper_bound() -> None:
    assert RestartPolicy(limit=100).pause([0.0] * 50, 1.0) == 30.0


def test_a_request_id_is_kept_and_one_is_made(running: Rank) -> None:
    assert running.http.get("/health", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    made = running.http.get("/health").headers["x-request-id"]
    assert made != running.http.get("/health").headers["x-request-id"]
    assert running.http.get("/health", headers={"X-Request-Id": "a b"}).headers["x-request-id"] != "a b"


def test_a_request_id_is_in_the_logs(running: Rank) -> None:
    running.post("/score", GOOD, None, X_Request_Id="find-me")
    lines = (running.folder / "logs" / "upstream-0.log").read_text().splitlines()
    assert any(json.loads(line).get("request_id") == "find-me" for line in lines)


def test_answers_come_as_the_judge_gave_them(running: Rank) -> None:
    url = f"http://127.0.0.1:{running.config['judge_port']}/task/axpy?language=c"
    straight = httpx.get(url, timeout=PATIENCE_S)
    through = running.http.get("/task/axpy?language=c")
    assert (through.status_code, through.content) == (straight.status_code, straight.content)
    assert through.json()["signature"].startswith("void axpy(")


def test_head_and_chunks_pass(running: Rank) -> None:
    answer = running.http.head("/docs")
    assert (answer.status_code, answer.content) == (200, b"")
    body = json.dumps(GOOD).encode()
    assert running.http.post("/score", content=iter([body[:10], body[10:]])).json()["outcome"] == "solved"


HEALTHS = {
    "one": (b"GET /health HTTP/1.1\r\nHost: j\r\nConnection: close\r\n\r\n", 1),
    "old": (b"GET /health HTTP/1.0\r\n\r\n", 1),
    "two-at-once": (b"GET /health HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\nConnection: close\r\n\r\n", 2),
    "behind-another": (b"GET /nowhere HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\nConnection: close\r\n\r\n", 1),
    "with-a-query": (b"GET /health?now HTTP/1.1\r\nConnection: close\r\n\r\n", 1),
    "with-a-body": (b"GET /health HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", 1),
}


@pytest.mark.parametrize(("requests", "count"), HEALTHS.values(), ids=HEALTHS)
def test_the_judge_tells_its_health_however_it_is_asked(running: Rank, requests: bytes, count: int) -> None:
    expected = running.http.get("/health").content
    with socket.create_connection(("127.0.0.1", running.config["judge_port"]), timeout=PATIENCE_S) as connection:
        connection.sendall(requests)
        said = b"".join(iter(lambda: connection.recv(65536), b""))
    assert said.count(b"HTTP/1.1 200 OK") == said.count(expected) == count
    assert said.endswith(expected)


def test_docs_and_openapi_pass(running: Rank) -> None:
    assert "swagger" in running.http.get("/docs").text
    assert "/submit" in running.http.get("/openapi.json").json()["paths"]


def test_metrics_count(running: Rank) -> None:
    running.post("/score")
    text = running.http.get("/metrics").text
    assert 'kcourt_grades_total{kind="score",outcome="solved"}' in text
    assert "kcourt_queue_depth 0.0" in text


def test_health_answers_while_a_grade_runs(running: Rank, tmp_path: Path) -> None:
    go = tmp_path / "go"
    body = GOOD | {"source": f"// fake: wait {go}"}
    asking = threading.Thread(target=running.post, args=("/submit", body))
    asking.start()
    wait_for(Path(f"{go}.reached"))
    try:
        health = running.http.get("/health").json()
        assert (health["status"], health["inflight_submits"], health["queue_depth"]) == ("ok", 1, 0)
    finally:
        go.touch()
        asking.join()
    assert running.http.get("/health").json()["inflight_submits"] == 0


def test_a_judge_that_dies_is_restarted(running: Rank) -> None:
    first = running.judge()
    first.kill()
    first.wait()
    answer = running.post("/score")
    if answer.status_code == 502:
        assert answer.json()["error"]["code"] == "judge_restarting"
        assert "Idempotency-Key" in answer.json()["error"]["message"]
    running.wait_until_healthy()
    assert running.judge().pid != first.pid
    assert running.post("/score").json()["outcome"] == "solved"


def test_a_rank_whose_restarts_are_spent_is_lost(tmp_path: Path) -> None:
    with rank(tmp_path, restarts=0) as running:
        running.judge().kill()
        lost = running.post("/score")
        while lost.status_code == 502:
            lost = running.post("/score")
        assert (lost.status_code, lost.json()["error"]["code"]) == (503, "rank_lost")
        assert running.http.get("/health").status_code == 503
        assert running.stop() == 0


def test_the_end_of_the_router_ends_judge_and_worker(tmp_path: Path) -> None:
    with rank(tmp_path) as running:
        judge = running.judge()
        below = [judge, *judge.children()]
        assert len(below) == 2
        running.process.kill()
        for process in below:
            process.wait(PATIENCE_S)


def test_an_open_judge_serves_this_machine_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="secret_file"):
        run_router(write_config(tmp_path, router_host="0.0.0.0"))


def test_a_port_that_is_taken_is_named(running: Rank, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=str(running.port)):
        run_router(write_config(tmp_path, router_port=running.port))
