"""Long grades: 202 now and the answer later, and a client that asks until it has it."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from judge_rank import GOOD, Rank, rank, wait_for

from bench.judge import client
from bench.judge.caller import Preference, preference
from bench.judge.client import Envelope, JudgeClient, JudgeRefused
from bench.judge.schemas import Queued


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    with rank(tmp_path_factory.mktemp("later")) as started:
        yield started


def waiting(go: Path) -> dict[str, str]:
    """A submission whose grade lasts until `go` exists."""
    return {"kernel": "axpy", "source": f"// fake: wait {go}"}


def grades(running: Rank) -> list[Any]:
    with contextlib.closing(sqlite3.connect(running.shard)) as shard:
        return shard.execute("SELECT grade_id FROM grades").fetchall()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([], Preference(False, 0)),
        (["respond-async"], Preference(True, 0)),
        (["respond-async, wait=30"], Preference(True, 30)),
        (["wait=5", "Respond-Async"], Preference(True, 5)),
        (['return=minimal; foo="bar", respond-async;x=1 , wait = "7"'], Preference(True, 7)),
        (["wait=1, wait=9"], Preference(False, 1)),
        (["wait=-1, wait-async"], Preference(False, 0)),
        (["wait=99999999999"], Preference(False, 0)),
        (["wait, ,="], Preference(False, 0)),
        (["not-respond-async"], Preference(False, 0)),
    ],
)
def test_what_prefer_says(fields: list[str], expected: Preference) -> None:
    assert preference(fields) == expected


def test_a_short_grade_is_answered_by_the_first_request(running: Rank) -> None:
    answer = running.post("/submit", GOOD, Prefer="respond-async, wait=600")
    assert (answer.status_code, answer.json()["outcome"]) == (200, "solved")


def test_a_long_grade_is_answered_later(running: Rank, tmp_path: Path) -> None:
    go = tmp_path / "go"
    began = time.monotonic()
    queued = running.post("/submit", waiting(go), Prefer="respond-async, wait=1")
    assert queued.status_code == 202
    assert time.monotonic() - began >= 1
    path = f"/grades/{Queued.model_validate_json(queued.content).grade_id}"
    assert queued.headers["location"] == path
    assert running.get(path).status_code == 202
    with ThreadPoolExecutor(1) as thread:
        asking = thread.submit(running.http.get, path, headers={"Prefer": "wait=600"})
        go.touch()
        assert (asking.result().status_code, asking.result().json()["outcome"]) == (200, "solved")
    assert running.get(path).content == asking.result().content


def test_openapi_tells_of_it(running: Rank) -> None:
    paths = running.get("/openapi.json").json()["paths"]
    told = [path for path, methods in paths.items() for method in methods.values() if "202" in method["responses"]]
    assert told == ["/score", "/submit", "/grades/{grade_id}"]


def test_a_client_polls_and_asks_anew_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WAIT_S", 0)
    go = tmp_path / "go"
    with rank(tmp_path) as running, ThreadPoolExecutor(1) as thread:
        with JudgeClient(f"http://127.0.0.1:{running.port}") as asking:
            answering = thread.submit(asking.submit, waiting(go))
            wait_for(Path(f"{go}.reached"))
            running.judge().kill()
            go.touch()
            answer = answering.result()
        assert answer.outcome == "solved"
        assert grades(running) == [(answer.grade_id,)]


def test_a_client_gives_up_and_finds_its_grade_later(
    running: Rank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "WAIT_S", 0)
    go, envelope, url = tmp_path / "go", Envelope(), f"http://127.0.0.1:{running.port}"
    with JudgeClient(url) as patient:
        monkeypatch.setattr(patient, "_timeout_s", 0.5)
        with pytest.raises(JudgeRefused, match="the grade goes on") as refused:
            patient.score(waiting(go), envelope)
    assert (refused.value.code, refused.value.passing) == ("no_answer_yet", False)
    go.touch()
    with JudgeClient(url) as patient:
        assert patient.score(waiting(go), envelope).outcome == "solved"
