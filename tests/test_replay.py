"""Recorded episodes as plans: what was sent, in its order, and played again by the scripted harness."""

import json
from pathlib import Path
from typing import Any

import pytest
from agent_node import SECRET, NodeFiles
from agent_stub import StubJudge
from results_rows import LABEL, SETUPS, episode, origin, report

from bench.cli import run
from bench.errors import UsageError
from bench.judge.schemas import Kind, Outcome
from bench.records import SourceFile
from bench.results.merge import merge
from bench.results.shard import Shard

WRONG, SOLVED, OLD = b"/* wrong */\n", b"/* solved */\n", b"/* solved */ long ago\n"
# Job, attempt, kind, outcome, source.
REQUESTS = [
    ("6", 1, Kind.SUBMIT, Outcome.SOLVED, OLD),
    ("7", 1, Kind.SCORE, Outcome.SOLVED, OLD),
    ("7", 2, Kind.SCORE, Outcome.WRONG, WRONG),
    ("7", 2, Kind.SCORE, Outcome.JUDGE_FAULT, SOLVED),
    ("7", 2, Kind.SCORE, Outcome.SOLVED, SOLVED),
    ("7", 2, Kind.SUBMIT, Outcome.SOLVED, SOLVED),
    ("7", 2, Kind.REGRADE, Outcome.SOLVED, OLD),
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A merged database of two jobs, in the second of which the episode's client crashed once."""
    for job in ("6", "7"):
        with Shard.open(tmp_path / f"{job}.db", job, 0, SETUPS) as shard:
            for number, (of_job, attempt, kind, outcome, content) in enumerate(REQUESTS):
                if of_job == job:
                    asked: dict[str, Any] = {
                        "kind": kind,
                        "attempt": attempt,
                        "requested_at": f"2026-01-01T00:00:{number:02}.000+00:00",
                    }
                    source = SourceFile(role="submission", name="axpy.c", content=content)
                    shard.record(origin(**asked), report(f"g{number}", outcome=outcome, sources=(source,)))
        merge(tmp_path / f"results-{job}.db", [tmp_path / f"{job}.db"], [episode(LABEL)])
    merge(tmp_path / "results.db", [tmp_path / "results-6.db", tmp_path / "results-7.db"], [])
    return tmp_path / "results.db"


def test_an_episode_is_played_again_by_the_scripted_harness(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["db", "replay", str(results), "--setup", "demo-gold-c", "--into", str(tmp_path / "again"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["kernels"], told["requests"]) == (["axpy"], 3)
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path / "node", [judge.url])
        node.add("s", ["axpy"], {"plan": told["plan"]})
        assert node.run()["ends"] == {"submitted": 1}
    sent = [(seen.route, seen.body["source"].encode()) for seen in judge.seen]
    assert sent == [("/score", WRONG), ("/score", SOLVED), ("/submit", SOLVED)]


def test_a_setup_that_is_not_there_is_answered_with_the_nearest(results: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no episode of 'demo-gold' in slot 0 .* did you mean 'demo-gold-c'"):
        run(["db", "replay", str(results), "--setup", "demo-gold", "--into", str(tmp_path / "again")])
    assert not (tmp_path / "again").exists()
