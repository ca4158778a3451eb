"""The life of a grade: one key one grade, recorded before it is answered, whatever dies in between."""

import contextlib
import hashlib
import json
import socket
import sqlite3
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from judge_rank import GOOD, PATIENCE_S, Rank, rank, wait_for, wait_for_text

from bench.judge.client import Envelope, JudgeClient, JudgeRefused
from bench.verdict import json_safe


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    with rank(tmp_path_factory.mktemp("grades")) as started:
        yield started


def rows(running: Rank, query: str, *values: Any) -> list[Any]:
    with contextlib.closing(sqlite3.connect(running.shard)) as shard:
        return shard.execute(query, values).fetchall()


def waiting(go: Path) -> dict[str, str]:
    """A submission whose grade lasts until `go` exists."""
    return {"kernel": "axpy", "source": f"// fake: wait {go}"}


def test_an_answer_is_recorded_with_its_source_and_seed(running: Rank) -> None:
    answer = running.post("/submit", GOOD | {"source": "// recorded"})
    grade_id = answer.json()["grade_id"]
    (row,) = rows(
        running,
        "SELECT job_id, kind, outcome, answer, protocol, seed_commitment, seed, content FROM grades"
        " JOIN reveals USING (grade_id) JOIN grade_sources USING (grade_id) JOIN sources USING (sha256)"
        " WHERE grade_id = ?",
        grade_id,
    )
    assert row[:5] == ("adhoc", "submit", "solved", answer.text, "mw4x5")
    assert row[5] == hashlib.sha256(bytes.fromhex(row[6])).hexdigest()
    assert row[7] == b"// recorded"


def test_a_score_shows_values_and_a_submit_does_not(running: Rank) -> None:
    body = GOOD | {"source": "// fake: wrong"}
    score, submit = running.post("/score", body).json(), running.post("/submit", body).json()
    assert score["detail"] == {
        "property": "values",
        "output": "out",
        "index": [3],
        "got": 1.5,
        "expected": None,
        "bound": 1e-6,
        "log": "a log that names hidden inputs",
    }
    assert submit["detail"] == {"property": "values"}
    assert score["score"] is None and score["interval"] is None


def test_a_submit_that_does_not_build_shows_its_log(running: Rank) -> None:
    submit = running.post("/submit", GOOD | {"source": "// fake: build_failed"}).json()
    assert submit["detail"] == {"property": "values", "log": "a log that names hidden inputs"}


def test_numbers_that_json_lacks_become_words() -> None:
    found = {"got": float("nan"), "index": (1, 2), "bounds": [float("-inf"), {"inner": float("inf")}, 1.5]}
    assert json_safe(found) == {"got": "nan", "index": [1, 2], "bounds": ["-inf", {"inner": "inf"}, 1.5]}


def test_a_key_answers_with_the_same_bytes(running: Rank) -> None:
    first = running.post("/submit", GOOD, Idempotency_Key="same")
    again = running.post("/submit", GOOD, Idempotency_Key="same")
    assert again.content == first.content
    other = running.post("/score", GOOD, Idempotency_Key="same")
    assert other.json()["grade_id"] != first.json()["grade_id"]


def test_a_key_with_another_body_is_refused(running: Rank) -> None:
    running.post("/submit", GOOD, Idempotency_Key="body")
    answer = running.post("/submit", GOOD | {"source": "// other"}, Idempotency_Key="body")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "key_reused")


def test_a_key_in_flight_waits_for_the_same_grade(running: Rank, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(running.post, "/submit", waiting(go), Idempotency_Key="flight")
        wait_for(Path(f"{go}.reached"))
        more = [threads.submit(running.post, "/submit", waiting(go), Idempotency_Key="flight") for _ in range(3)]
        differs = running.post("/submit", GOOD, Idempotency_Key="flight")
        go.touch()
        contents = {answer.result().content for answer in [first, *more]}
    assert len(contents) == 1
    assert differs.status_code == 400
    assert rows(running, "SELECT count(*) FROM grades WHERE idempotency_key = 'flight'") == [(1,)]


def test_the_same_key_at_once_is_graded_once(running: Rank) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = [threads.submit(running.post, "/score", GOOD, Idempotency_Key="burst") for _ in range(8)]
        assert len({answer.result().content for answer in answers}) == 1


def test_an_asynchronous_request_is_polled(running: Rank, tmp_path: Path) -> None:
    go = tmp_path / "go"
    queued = running.post("/submit", waiting(go), Prefer="respond-async", Idempotency_Key="async")
    assert (queued.status_code, queued.json()["status"]) == (202, "queued")
    path = queued.headers["location"]
    assert path == f"/grades/{queued.json()['grade_id']}"
    wait_for(Path(f"{go}.reached"))
    assert running.get(path).status_code == 202
    go.touch()
    answer = running.post("/submit", waiting(go), Idempotency_Key="async")
    assert running.get(path).content == answer.content
    assert answer.json()["grade_id"] == queued.json()["grade_id"]


@pytest.mark.parametrize("word", ["fault", "die"])
def test_a_fault_of_the_judge_is_said_and_graded_again(running: Rank, tmp_path: Path, word: str) -> None:
    body = GOOD | {"source": f"// fake: {word}"}
    fault = running.post("/submit", body, Idempotency_Key=f"key-{word}")
    assert (fault.status_code, fault.json()["outcome"]) == (200, "judge_fault")
    assert "Idempotency-Key" in fault.json()["detail"]["log"]
    again = running.post("/submit", body, Idempotency_Key=f"key-{word}")
    assert again.json()["grade_id"] != fault.json()["grade_id"]
    assert running.post("/score").json()["outcome"] == "solved"
    (reason,) = rows(running, "SELECT reason FROM grades WHERE grade_id = ?", fault.json()["grade_id"])
    assert reason[0].startswith("infra: ")


def test_a_retry_after_a_fault_may_succeed(running: Rank, tmp_path: Path) -> None:
    body = GOOD | {"source": f"// fake: fault-once {tmp_path / 'failed'}"}
    assert running.post("/submit", body, Idempotency_Key="retry").json()["outcome"] == "judge_fault"
    good = running.post("/submit", body, Idempotency_Key="retry")
    assert good.json()["outcome"] == "solved"
    assert running.post("/submit", body, Idempotency_Key="retry").content == good.content


def test_a_full_queue_says_so(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with rank(tmp_path, queue_limit=1) as running:
        running.post("/score", waiting(go), Prefer="respond-async")
        wait_for(Path(f"{go}.reached"))
        assert running.post("/score", GOOD, Prefer="respond-async").status_code == 202
        assert running.http.get("/health").json()["queue_depth"] == 1
        full = running.post("/score", GOOD)
        assert (full.status_code, full.json()["error"]["code"]) == (429, "queue_full")
        go.touch()


def test_a_judge_that_cannot_measure_is_unfit_until_it_can(tmp_path: Path) -> None:
    why = tmp_path / "unfit"
    why.write_text("gcc was not found")
    with rank(tmp_path, healthy=False) as running:
        assert running.wait_for_health(status="unfit")["self_grade"] == "gcc was not found"
        refused = running.post("/score")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unfit")
        assert "gcc was not found" in refused.json()["error"]["message"]
        why.unlink()
        running.wait_until_healthy()
        assert running.post("/score").json()["outcome"] == "solved"


def test_a_refusal_that_came_after_202_is_told_to_who_polls(tmp_path: Path) -> None:
    go, why = tmp_path / "go", tmp_path / "unfit"
    with rank(tmp_path) as running:
        running.post("/submit", waiting(go), Prefer="respond-async")
        wait_for(Path(f"{go}.reached"))
        running.post("/submit", GOOD | {"source": "// fake: die"}, Prefer="respond-async")
        queued = running.post("/submit", GOOD, Prefer="respond-async")
        path = queued.headers["location"]
        assert (queued.status_code, running.get(path).status_code) == (202, 202)
        why.write_text("gcc was not found")
        go.touch()
        running.wait_for_health(status="unfit")
        refused = running.get(path)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unfit")
        assert "gcc was not found" in refused.json()["error"]["message"]
        running.wait_for_health(inflight_submits=0)


def test_a_judge_killed_in_mid_grade_grades_the_retry_once(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with rank(tmp_path) as running, ThreadPoolExecutor(1) as thread:
        asking = thread.submit(running.post, "/submit", waiting(go), Idempotency_Key="once")
        wait_for(Path(f"{go}.reached"))
        running.judge().kill()
        lost = asking.result()
        assert (lost.status_code, lost.json()["error"]["code"]) == (502, "judge_restarting")
        go.touch()
        running.wait_until_healthy()
        answer = running.post("/submit", waiting(go), Idempotency_Key="once")
        assert answer.json()["outcome"] == "solved"
        assert running.post("/submit", waiting(go), Idempotency_Key="once").content == answer.content
        assert rows(running, "SELECT grade_id FROM grades") == [(answer.json()["grade_id"],)]


def test_sigterm_finishes_what_is_graded(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with rank(tmp_path) as running, ThreadPoolExecutor(2) as threads:
        asking = threads.submit(running.post, "/submit", waiting(go))
        wait_for(Path(f"{go}.reached"))
        ending = threads.submit(running.stop)
        wait_for_text(running.folder / "logs" / "upstream-0.log", '"draining"')
        url = f"http://127.0.0.1:{running.config['judge_port']}/submit"
        refused = httpx.post(url, json=GOOD, timeout=PATIENCE_S)
        go.touch()
        assert asking.result().json()["outcome"] == "solved"
        assert ending.result() == 0
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "stopping")
        assert rows(running, "SELECT outcome FROM grades") == [("solved",)]


def test_the_contract_tells_ranges_and_no_size(running: Rank) -> None:
    contract = running.get("/task/axpy?language=c").json()
    assert contract["signature"] == "void axpy(const float *x, const float *y, float *out, int64_t n, float a);"
    low, high = contract["timed_sizes"]["n"]
    assert 0 < low < high
    assert contract["sizes"]["n"][0] == 1
    assert "|got - expected|" in contract["tolerance"]
    assert "gcc" in contract["build"]
    assert "seed" not in json.dumps(contract)
    assert running.get("/task/axpy?language=python").json()["signature"] == "def axpy(x, y, out, n, a):"


def test_a_baseline_has_a_time_once_it_was_timed(running: Rank) -> None:
    assert running.get("/baseline/sgemm").json()["denominators"]["baseline.c"] == {"median_ns": None}
    running.post("/score", GOOD | {"kernel": "sgemm"})
    assert running.get("/baseline/sgemm").json()["denominators"]["baseline.c"] == {"median_ns": 2040.0}


def client_of(running: Rank, **options: Any) -> JudgeClient:
    return JudgeClient(f"http://127.0.0.1:{running.port}", **options)


def test_the_client_asks_everything(running: Rank) -> None:
    with client_of(running) as client:
        assert client.health().status == "ok"
        answer = client.score(GOOD)
        assert client.grade(answer.grade_id) == answer
        assert client.submit(GOOD).protocol == "mw4x5"
        assert client.task("axpy", "c")["kernel"] == "axpy"
        assert client.baseline("axpy")["rank"] == 0


def test_the_client_raises_what_the_judge_says(running: Rank) -> None:
    with client_of(running) as client, pytest.raises(JudgeRefused, match="axpy") as refused:
        client.score({"kernel": "axpi", "source": "x"})
    assert (refused.value.code, refused.value.status, refused.value.passing) == ("unknown_kernel", 404, False)


def test_the_client_says_that_nobody_is_there(running: Rank) -> None:
    with JudgeClient("http://127.0.0.1:9", attempts=1) as client, pytest.raises(JudgeRefused) as refused:
        client.score(GOOD)
    assert (refused.value.code, refused.value.status) == ("unreachable", None)


def test_the_client_stops_waiting_and_the_grade_goes_on(running: Rank, tmp_path: Path) -> None:
    go, envelope = tmp_path / "go", Envelope()
    with client_of(running, timeout_s=0.5) as client, pytest.raises(JudgeRefused) as refused:
        client.score(waiting(go), envelope)
    assert refused.value.code == "no_answer_yet"
    go.touch()
    with client_of(running) as client:
        assert client.score(waiting(go), envelope).outcome == "solved"


def test_the_client_rides_out_a_judge_that_is_killed(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with rank(tmp_path) as running, client_of(running) as client, ThreadPoolExecutor(1) as thread:
        asking = thread.submit(client.submit, waiting(go))
        wait_for(Path(f"{go}.reached"))
        running.judge().kill()
        go.touch()
        answer = asking.result()
        assert answer.outcome == "solved"
        assert rows(running, "SELECT grade_id FROM grades") == [(answer.grade_id,)]


def test_a_client_that_leaves_is_logged(running: Rank, tmp_path: Path) -> None:
    go, body, name = tmp_path / "go", json.dumps(waiting(tmp_path / "go")), uuid.uuid4().hex
    with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE_S) as client:
        head = f"POST /score HTTP/1.1\r\nHost: judge\r\nX-Request-Id: {name}\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(f"{head}{body}".encode())
        wait_for(Path(f"{go}.reached"))
    log = running.folder / "logs" / "upstream-0.log"
    wait_for_text(log, name)
    found = [json.loads(line) for line in log.read_text().splitlines() if name in line]
    go.touch()
    assert [(line["event"], line["status"]) for line in found] == [("client_gone", 499)]
