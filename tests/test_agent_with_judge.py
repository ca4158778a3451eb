"""An agent node against a real router and judge (whose measuring process is the fake one)."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_node import NodeFiles
from judge_rank import PATIENCE_S
from ports import free_port

from agent.answers import accepted_submit, read_calls
from bench.config import JudgeConfig
from bench.judge.client import JudgeClient, JudgeRefused
from bench.judge.schemas import End, Outcome

HERE = Path(__file__).parent
SOLVED, WRONG = "/* right */", "// fake: wrong"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeFiles]:
    """A node with three setups and the judge that serves them."""
    router_port, judge_port = free_port(), free_port()
    url = f"http://127.0.0.1:{router_port}"
    node = NodeFiles(tmp_path, [url], workers=3)
    node.script("gold", [{"tool": "score", "source": WRONG}, {"tool": "submit", "source": SOLVED}], ["axpy"])
    steps = [{"tool": "score", "source": SOLVED}, {"tool": "score", "source": WRONG}]
    node.script("preview", steps, ["axpy"])
    node.script("blind", [{"tool": "score", "source": SOLVED}], ["axpy"], mode="blind")
    config = JudgeConfig(
        run_id="job",
        router_port=router_port,
        judge_port=judge_port,
        shard=tmp_path / "rank-0" / "grades.db",
        log_dir=tmp_path / "logs",
        cache_dir=tmp_path / "cache",
        shared_dir=tmp_path / "shared",
        secret_file=node.secret_file,
        setups=node.setups,
        problems=("axpy",) * 3,
        allow_sandbox="limits",
    )
    path = tmp_path / "judge.json"
    path.write_text(config.model_dump_json())
    argv = [sys.executable, str(HERE / "fake_rank.py"), str(path), "5", str(PATIENCE_S)]
    judge = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=os.environ)
    try:
        _until_healthy(url)
        yield node
    finally:
        judge.terminate()
        judge.wait(PATIENCE_S)


def _until_healthy(url: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    with JudgeClient(url) as client:
        while time.monotonic() < deadline:
            try:
                if client.health().status == "ok":
                    return
            except JudgeRefused:
                pass
            time.sleep(0.1)
    raise AssertionError("the judge never became healthy")


def test_submit_promotion_and_harvest_are_recorded(node: NodeFiles) -> None:
    assert node.run()["ends"] == {"submitted": 1, "finished": 2}
    assert node.record("gold", "axpy").end is End.SUBMITTED
    answers = {event["label"].split(".")[0]: event for event in node.events("answered")}
    assert set(answers) == {"preview", "blind"}
    assert {event["outcome"] for event in answers.values()} == {Outcome.SOLVED}
    calls = read_calls(node.episode("gold", "axpy") / "attempt-1" / "calls" / "answers.jsonl")
    submitted = accepted_submit(calls)
    assert submitted is not None
    assert calls[0].answer is not None
    assert calls[0].answer.outcome is Outcome.WRONG

    (refused,) = read_calls(node.episode("blind", "axpy") / "attempt-1" / "calls" / "answers.jsonl")
    assert refused.refusal is not None
    assert refused.refusal.status == 403
