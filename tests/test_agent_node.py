"""What an agent node does when judges are lost, tokens wrong, clients dead, jobs cancelled."""

import json
import signal
import threading
from pathlib import Path

from agent_node import SECRET, NodeFiles, finished
from agent_stub import StubJudge
from living import family

from bench.judge.schemas import End, Header

SOLVED = "/* solved */"
SCORE = {"tool": "score", "source": SOLVED}
SUBMIT = {"tool": "submit", "source": SOLVED}


def test_submit_in_flight_when_the_client_dies_still_counts(tmp_path: Path) -> None:
    with StubJudge(0, SECRET, hold=threading.Event()) as judge:
        node = NodeFiles(tmp_path, [judge.url])
        node.script("held", [SUBMIT], ["axpy"])
        driver = node.start()
        assert judge.arrived.wait(240)
        (player,) = family(driver.pid, "agent.harnesses.scripted_player")
        player.kill()
        assert finished(driver)["ends"] == {"submitted": 1}
        keys = {seen.headers["Idempotency-Key"] for seen in judge.seen}
        assert (len(judge.seen), len(keys)) == (2, 1)


def test_lost_home_rank_is_served_by_a_survivor(tmp_path: Path) -> None:
    with StubJudge(0, SECRET, lost=True) as home, StubJudge(1, SECRET) as survivor:
        node = NodeFiles(tmp_path, [home.url, survivor.url])
        node.script("s", [SCORE, SUBMIT], ["axpy"])
        assert node.run()["ends"] == {"submitted": 1}
        assert len(home.seen) == 1
        assert [seen.headers[Header.HOME_RANK] for seen in survivor.seen] == ["0", "0"]
        assert [seen.body["rank"] for seen in survivor.seen] == [1, 1]


def test_lost_rank_without_failover_is_a_crash(tmp_path: Path) -> None:
    with StubJudge(0, SECRET, lost=True) as home, StubJudge(1, SECRET) as other:
        node = NodeFiles(tmp_path, [home.url, other.url], failover=False, crash_attempts=1)
        node.script("s", [SUBMIT], ["axpy"])
        assert node.run()["ends"] == {"crash": 1}
        assert other.seen == []


def test_token_of_another_job_is_refused_and_nothing_counts(tmp_path: Path) -> None:
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path, [judge.url], secret=bytes(32))
        node.script("s", [SCORE, SUBMIT], ["axpy"])
        assert node.run()["ends"] == {"finished": 1}
        answers = node.episode("s", "axpy") / "attempt-1" / "calls" / "answers.jsonl"
        calls = [json.loads(line) for line in answers.read_text().splitlines()]
        assert [call["refusal"]["code"] for call in calls] == ["unauthorized", "unauthorized"]
        assert len(judge.seen) == 2


def test_cancel_marks_what_runs_and_leaves_the_rest_unstarted(tmp_path: Path) -> None:
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path, [judge.url])
        node.script("s", [{"tool": "sleep", "seconds": 300}], ["axpy", "gelu", "sgemm"])
        driver = node.start()
        node.until("attempt_started", 2)
        driver.send_signal(signal.SIGTERM)
        report = finished(driver, 130)
        assert (report["planned"], report["ends"]) == (3, {"cancelled": 2})
        assert sorted(path.parent.name[:9] for path in node.run_dir.glob("*/cancelled")) == [
            "problem-0",
            "problem-1",
        ]
        assert {node.record("s", kernel).end for kernel in ("axpy", "gelu")} == {End.CANCELLED}
        assert not list(node.run_dir.glob("problem-2*"))
        assert judge.seen == []


def test_cancel_does_not_wait_for_a_promotion(tmp_path: Path) -> None:
    with StubJudge(0, SECRET, hold=threading.Event()) as judge:
        node = NodeFiles(tmp_path, [judge.url])
        node.script("s", [SCORE], ["axpy"])
        driver = node.start()
        assert judge.arrived.wait(240)
        driver.send_signal(signal.SIGTERM)
        assert finished(driver, 130)["ends"] == {"cancelled": 1}


def test_each_node_takes_its_share_of_the_problems(tmp_path: Path) -> None:
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path, [judge.url], node=1, nodes=2)
        node.script("s", [SUBMIT], ["axpy", "gelu", "sgemm"])
        assert node.run()["planned"] == 1
        record = node.record("s", "gelu")
        assert (record.node, record.problem) == (1, 1)
