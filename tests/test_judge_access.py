"""Who may do what: tokens, episodes, submission modes, the driver's promotions."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judge_rank import GOOD, SECRET, Rank, rank, wait_for

from bench.judge.schemas import token_for


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rank]:
    with rank(tmp_path_factory.mktemp("access"), closed=True) as running:
        yield running


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


TOKENS = {
    "none": ({}, 401, "token_missing"),
    "basic": ({"Authorization": "Basic abc"}, 401, "token_missing"),
    "forged": (bearer("many.n0.p0.w0." + "0" * 64), 401, "token_invalid"),
    "no-label": (bearer("abc"), 401, "token_invalid"),
    "another-secret": (bearer(token_for(b"x" * 32, "many.n0.p0.w0")), 401, "token_invalid"),
    "not-an-episode": (bearer(token_for(SECRET, "somebody")), 403, "no_episode"),
    "another-job": (bearer(token_for(SECRET, "other.n0.p0.w0")), 403, "unknown_setup"),
    "beyond-the-problems": (bearer(token_for(SECRET, "many.n0.p99.w0")), 403, "unknown_problem"),
    "beyond-all-numbers": (bearer(token_for(SECRET, f"many.n0.p{'9' * 40}.w0")), 403, "no_episode"),
    "for-another": (
        bearer(token_for(SECRET, "many.n0.p0.w0")) | {"Kcourt-Episode": "many.n0.p1.w0"},
        *(403, "other_episode"),
    ),
    "as-the-driver": (
        bearer(token_for(SECRET, "many.n0.p0.w0")) | {"Kcourt-Kind": "promoted"},
        *(403, "driver_only"),
    ),
    "promoting": (
        bearer(token_for(SECRET, "many.n0.p0.w0")) | {"Kcourt-Of-Grade": "x"},
        *(403, "driver_only"),
    ),
    "driver-for-nobody": (bearer(token_for(SECRET, "driver")), 403, "episode_missing"),
}


@pytest.mark.parametrize(("headers", "status", "word"), TOKENS.values(), ids=TOKENS)
def test_a_token_that_does_not_fit(closed: Rank, headers: dict[str, str], status: int, word: str) -> None:
    answer = closed.http.post("/submit", json={"rank": 0, **GOOD}, headers=headers)
    assert code(answer) == (status, word)


def test_the_token_is_looked_at_before_the_body(closed: Rank) -> None:
    assert closed.http.post("/score", content=b"{").status_code == 401
    assert closed.http.post("/profile").status_code == 401


@pytest.mark.parametrize("sent", ["Kcourt-Kind", "Kcourt-Of-Grade"])
def test_what_only_the_driver_may_send_is_named(closed: Rank, sent: str) -> None:
    headers = {sent.replace("-", "_"): "promoted"}
    assert closed.post("/submit", GOOD, "many.n0.p0.w0", **headers).json()["error"]["message"].startswith(f"{sent}: ")


@pytest.mark.parametrize("route", ["/score", "/submit"])
def test_a_token_is_good_for_its_episodes_kernel(closed: Rank, route: str) -> None:
    label = "many.n0.p16.w0"
    refused = closed.post(route, GOOD, label)
    assert code(refused) == (403, "other_kernel")
    assert "this episode's kernel is gelu" in refused.json()["error"]["message"]
    assert closed.post(route, GOOD | {"kernel": "gelu"}, label).json()["kernel"] == "gelu"
    assert code(closed.post(route, GOOD | {"kernel": "gelu"}, "many.n0.p0.w0")) == (403, "other_kernel")


def test_the_driver_hands_in_the_episodes_kernel_only(closed: Rank) -> None:
    headers = {"Kcourt_Episode": "dark.n0.p16.w0", "Kcourt_Kind": "harvested"}
    assert code(closed.post("/submit", GOOD, "driver", **headers)) == (403, "other_kernel")


@pytest.mark.parametrize(
    ("label", "query", "language"),
    [("plus.n0.p0.w0", "", "cpp"), ("plus.n0.p0.w0", "?language=python", "python"), (None, "", "c")],
    ids=["setup", "asked", "nobody"],
)
def test_the_contract_is_in_the_setups_language(closed: Rank, label: str | None, query: str, language: str) -> None:
    assert closed.get(f"/task/axpy{query}", label).json()["language"] == language


def test_a_closed_judge_wants_its_rank(closed: Rank) -> None:
    answer = closed.post("/score", GOOD | {"rank": None}, "many.n0.p0.w0")
    assert code(answer) == (400, "rank_missing")


def test_only_the_setups_language_is_taken(closed: Rank) -> None:
    answer = closed.post("/score", GOOD | {"language": "python"}, "many.n0.p0.w0")
    assert code(answer) == (400, "wrong_language")
    assert "JUDGE_INPUT_MODE=source" in answer.json()["error"]["message"]


def test_a_grade_is_read_by_its_episode_and_the_driver(closed: Rank) -> None:
    answer = closed.post("/score", GOOD, "many.n0.p1.w0")
    path = f"/grades/{answer.json()['grade_id']}"
    assert closed.get(path, "many.n0.p1.w0").content == answer.content
    assert closed.get(path, "driver").content == answer.content
    assert code(closed.get(path, "many.n0.p2.w0")) == (403, "other_episode")
    assert code(closed.get(path)) == (401, "token_missing")


def test_multi_mode_takes_many_submits(closed: Rank) -> None:
    for _ in range(2):
        assert closed.post("/submit", GOOD, "many.n0.p3.w0").json()["outcome"] == "solved"


def test_single_mode_takes_one_submit(closed: Rank) -> None:
    label = "solo.n0.p0.w0"
    assert closed.post("/score", GOOD, label).status_code == 200
    wrong = closed.post("/submit", {"kernel": "axpy", "source": "// fake: wrong"}, label, Idempotency_Key="1")
    assert wrong.json()["outcome"] == "wrong"
    again = closed.post("/submit", GOOD, label)
    assert code(again) == (409, "already_submitted")
    assert wrong.json()["grade_id"] in again.json()["error"]["message"]
    repeated = closed.post("/submit", {"kernel": "axpy", "source": "// fake: wrong"}, label, Idempotency_Key="1")
    assert repeated.content == wrong.content


def test_single_mode_takes_one_submit_at_a_time(closed: Rank, tmp_path: Path) -> None:
    label, go = "solo.n0.p1.w0", tmp_path / "go"
    body = {"kernel": "axpy", "source": f"// fake: wait {go}"}
    first = threading.Thread(target=closed.post, args=("/submit", body, label))
    first.start()
    wait_for(Path(f"{go}.reached"))
    second = closed.post("/submit", GOOD, label)
    go.touch()
    first.join()
    assert code(second) == (409, "submit_in_flight")


def test_a_fault_of_the_judge_is_no_submit(closed: Rank) -> None:
    label = "solo.n0.p2.w0"
    fault = closed.post("/submit", {"kernel": "axpy", "source": "// fake: fault"}, label)
    assert fault.json()["outcome"] == "judge_fault"
    assert closed.post("/submit", GOOD, label).json()["outcome"] == "solved"


def test_blind_mode_has_no_previews(closed: Rank) -> None:
    label = "dark.n0.p0.w0"
    assert code(closed.post("/score", GOOD, label)) == (403, "blind_mode")
    assert closed.post("/submit", GOOD, label).json()["outcome"] == "solved"
    assert code(closed.post("/submit", GOOD, label)) == (409, "already_submitted")


def test_single_mode_remembers_over_a_restart(tmp_path: Path) -> None:
    label = "solo.n0.p0.w0"
    with rank(tmp_path, closed=True) as running:
        assert running.post("/submit", GOOD, label).status_code == 200
        judge = running.judge()
        judge.kill()
        judge.wait()
        running.wait_until_healthy()
        assert code(running.post("/submit", GOOD, label)) == (409, "already_submitted")


def test_a_failed_submit_is_recorded_and_takes_a_round_time(tmp_path: Path) -> None:
    label = "many.n0.p0.w0"
    wrong, broken = ({"kernel": "axpy", "source": f"// fake: {word}"} for word in ("wrong", "build_failed"))
    with rank(tmp_path, closed=True, failed_submit_step_s=600) as running:
        queued = running.post("/submit", wrong, label, Prefer="respond-async")
        grade = queued.json()["grade_id"]
        # None of these waits.
        assert running.post("/submit", GOOD, label).json()["outcome"] == "solved"
        assert running.post("/submit", broken, label).json()["outcome"] == "build_failed"
        assert running.post("/score", wrong, label).json()["outcome"] == "wrong"
        with sqlite3.connect(running.shard) as shard:
            recorded = shard.execute("SELECT outcome FROM grades WHERE grade_id = ?", [grade]).fetchone()
        assert recorded == ("wrong",)
        assert running.get(f"/grades/{grade}", label).status_code == 202


def test_a_failed_submit_is_answered_after_its_time(tmp_path: Path) -> None:
    with rank(tmp_path, closed=True, failed_submit_step_s=1) as running:
        started = time.monotonic()
        answer = running.post("/submit", {"kernel": "axpy", "source": "// fake: wrong"}, "many.n0.p0.w0")
        assert answer.json()["outcome"] == "wrong"
        assert time.monotonic() - started >= 0.9


def promote(closed: Rank, label: str, score: str, source: str = GOOD["source"]) -> Any:
    headers = {"Kcourt_Episode": label, "Kcourt_Kind": "promoted", "Kcourt_Of_Grade": score}
    return closed.post("/submit", {"kernel": "axpy", "source": source}, "driver", **headers)


def test_the_driver_promotes_a_solved_score(closed: Rank) -> None:
    label = "solo.n0.p4.w0"
    score = closed.post("/score", GOOD, label).json()["grade_id"]
    answer = promote(closed, label, score)
    assert answer.json()["outcome"] == "solved"
    with sqlite3.connect(closed.shard) as shard:
        row = shard.execute(
            "SELECT label, kind, of_grade_id FROM grades WHERE grade_id = ?", [answer.json()["grade_id"]]
        ).fetchone()
    assert row == (label, "promoted", score)
    assert code(closed.post("/submit", GOOD, label)) == (409, "already_submitted")


def test_the_driver_promotes_nothing_else(closed: Rank) -> None:
    label = "solo.n0.p5.w0"
    wrong = closed.post("/score", {"kernel": "axpy", "source": "// fake: wrong"}, label).json()["grade_id"]
    score = closed.post("/score", GOOD, label).json()["grade_id"]
    foreign = closed.post("/score", GOOD, "solo.n0.p6.w0").json()["grade_id"]
    assert code(promote(closed, label, wrong, "// fake: wrong")) == (400, "bad_promotion")
    assert code(promote(closed, label, foreign)) == (400, "bad_promotion")
    assert code(promote(closed, label, "unknown")) == (400, "bad_promotion")
    assert code(promote(closed, label, score, "// another source")) == (400, "bad_promotion")


def test_the_driver_harvests(closed: Rank) -> None:
    headers = {"Kcourt_Episode": "dark.n0.p7.w0", "Kcourt_Kind": "harvested"}
    assert closed.post("/submit", GOOD, "driver", **headers).json()["outcome"] == "solved"
    assert code(closed.post("/submit", GOOD, "dark.n0.p7.w0")) == (409, "already_submitted")


def test_a_rank_that_takes_over_asks_the_lost_ranks_shard(closed: Rank, tmp_path: Path) -> None:
    body, label = {"kernel": "axpy", "source": "// here"}, "solo.n0.p10.w0"
    first = closed.post("/submit", body | {"rank": 0}, label, Idempotency_Key="moved")
    with rank(tmp_path, closed=True, rank=1, ranks=3, peer_shards={"0": str(closed.shard)}) as other:
        there = {"Kcourt_Home_Rank": "0"}
        again = other.post("/submit", GOOD | {"rank": 1}, label, **there)
        assert code(again) == (409, "already_submitted")
        assert first.json()["grade_id"] in again.json()["error"]["message"]
        repeated = other.post("/submit", body | {"rank": 1}, label, Idempotency_Key="moved", **there)
        assert repeated.content == first.content
        unseen = other.post("/submit", GOOD | {"rank": 1}, "solo.n0.p11.w0", **there)
        assert unseen.json()["outcome"] == "solved"
        unknown = other.post("/submit", GOOD | {"rank": 1}, "solo.n0.p12.w0", Kcourt_Home_Rank="2")
        assert code(unknown) == (503, "home_shard_unreadable")
        assert other.post("/score", GOOD | {"rank": 1}, "solo.n0.p12.w0", Kcourt_Home_Rank="2").status_code == 200
    with sqlite3.connect(tmp_path / "shard.db") as shard:
        found = shard.execute("SELECT rank, home_rank FROM grades WHERE kind = 'submit'").fetchall()
    assert found == [(1, 0)]


def test_a_rank_that_takes_over_knows_the_keys_of_every_mode(closed: Rank, tmp_path: Path) -> None:
    label = "many.n0.p13.w0"
    first = closed.post("/submit", GOOD, label, Idempotency_Key="moved-on")
    score = closed.post("/score", GOOD, "solo.n0.p13.w0").json()["grade_id"]
    with rank(tmp_path, closed=True, rank=1, ranks=2, peer_shards={"0": str(closed.shard)}) as other:
        there, body = {"Kcourt_Home_Rank": "0"}, GOOD | {"rank": 1}
        assert other.post("/submit", body, label, Idempotency_Key="moved-on", **there).content == first.content
        again = other.post("/submit", body, label, Idempotency_Key="new", **there)
        assert again.json()["grade_id"] != first.json()["grade_id"]
        driver = {"Kcourt_Episode": "solo.n0.p13.w0", "Kcourt_Kind": "promoted", "Kcourt_Of_Grade": score}
        assert other.post("/submit", body, "driver", **driver, **there).json()["outcome"] == "solved"


MARKS = {
    "no-kind": ({}, 400, "bad_header"),
    "another-kind": ({"Kcourt_Kind": "submit"}, 400, "bad_header"),
    "promoted-what": ({"Kcourt_Kind": "promoted"}, 400, "bad_header"),
    "harvested-of-a-grade": ({"Kcourt_Kind": "harvested", "Kcourt_Of_Grade": "x"}, 400, "bad_header"),
}


@pytest.mark.parametrize(("headers", "status", "word"), MARKS.values(), ids=MARKS)
def test_the_driver_says_what_it_does(closed: Rank, headers: dict[str, str], status: int, word: str) -> None:
    answer = closed.post("/submit", GOOD, "driver", Kcourt_Episode="many.n0.p8.w0", **headers)
    assert code(answer) == (status, word)
    score = closed.post("/score", GOOD, "driver", Kcourt_Episode="many.n0.p8.w0", **headers)
    assert code(score) == (403, "driver_only_submits")


def test_what_the_headers_say_is_on_the_row(closed: Rank) -> None:
    headers = {"Kcourt_Attempt": "2", "Kcourt_Tokens": "12345", "Idempotency_Key": "row-1"}
    answer = closed.post("/submit", GOOD, "many.n0.p9.w1.s3", **headers).json()
    with sqlite3.connect(closed.shard) as shard:
        row = shard.execute(
            "SELECT job_id, setup, label, slot, attempt, tokens_spent, idempotency_key, preset FROM grades"
            " WHERE grade_id = ?",
            [answer["grade_id"]],
        ).fetchone()
    assert row == ("job-1", "many", "many.n0.p9.w1.s3", 3, 2, 12345, "row-1", "S")
