"""How an episode can go, each way as one setup of one run with the scripted client."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_node import SECRET, NodeFiles
from agent_stub import Seen, StubJudge

from bench.judge.schemas import End, EpisodeLabel, Header

# The run is dear: keep its tests on one worker of a parallel run.
pytestmark = pytest.mark.xdist_group("agent_scenes")

SOLVED, WRONG = "/* solved */", "/* wrong */"
SCORE = {"tool": "score", "source": SOLVED}
SUBMIT = {"tool": "submit", "source": SOLVED}
SLEEP = {"tool": "sleep", "seconds": 300}


class Scenes(NodeFiles):
    """A node that has run, and the judges it talked to."""

    judges: list[StubJudge]

    def requests(self, setup: str, judge: int | None = None) -> list[Seen]:
        """What a setup's episodes (or the driver for them) sent, to one rank or to all."""
        judges = self.judges if judge is None else [self.judges[judge]]
        asked = [seen for stub in judges for seen in stub.seen]
        return [seen for seen in asked if f"{setup}." in (seen.headers.get("Kcourt-Episode") or seen.label or "")]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenes]:
    """One run with a setup for each of the things that can happen."""
    root = tmp_path_factory.mktemp("scenes")
    with StubJudge(0, SECRET) as first, StubJudge(1, SECRET) as second:
        node = Scenes(root, [first.url, second.url], workers=3)
        node.judges = [first, second]
        node.script("gold", [SCORE, SUBMIT], ["axpy", "gelu"], slot=2)
        node.script("crash", [{"tool": "exit", "attempt": 1}, SCORE, {"tool": "exit", "attempt": 2}, SUBMIT], ["axpy"])
        node.script("dead", [{"tool": "exit", "code": 0}], ["axpy"])
        node.script("late", [SUBMIT, {"tool": "exit", "code": 9}], ["axpy"])
        steps = [SCORE, {"tool": "score", "source": WRONG}]
        node.script("preview", steps, ["axpy"])
        node.script("greedy", [SCORE, SCORE, SLEEP], ["axpy"], budget={"max_tokens": 2000})
        node.script("blind", [{"tool": "score", "source": SOLVED}], ["axpy"], mode="blind")
        fault = {"tool": "submit", "source": "/* judge_fault */"}
        node.script("fault", [fault], ["axpy"])
        node.script("multi", [{"tool": "submit", "source": WRONG}, SUBMIT], ["axpy"], mode="multi")
        node.report = node.run()  # type: ignore[attr-defined]
        yield node


def test_gold_is_submitted_with_its_evidence(scenes: Scenes) -> None:
    record = scenes.record("gold", "axpy")
    assert (record.end, record.attempts, record.exit_code, record.slot) == (End.SUBMITTED, 1, 0, 2)
    assert (record.tokens_fresh, record.tokens_output, record.tool_calls) == (2000, 200, 2)
    assert record.dollars is None
    attempt = scenes.episode("gold", "axpy") / "attempt-1"
    assert (attempt / "prompt.txt").read_text() == "Make axpy fast.\n"
    assert (attempt / "workspace" / "axpy.c").read_text() == SOLVED
    assert (attempt / "workspace" / "baseline.c").exists()
    assert len((attempt / "calls" / "answers.jsonl").read_text().splitlines()) == 2
    assert (attempt / "tools.json").stat().st_mode & 0o077 == 0


def test_problems_are_striped_over_the_ranks(scenes: Scenes) -> None:
    for rank in (0, 1):
        labels = {EpisodeLabel.parse(str(seen.label)) for seen in scenes.requests("gold", rank)}
        assert [label.problem % 2 for label in labels] == [rank]


def test_tool_attaches_label_attempt_and_tokens(scenes: Scenes) -> None:
    preview, submit = scenes.requests("crash")[-2:]
    label = EpisodeLabel.parse(str(submit.label))
    assert (label.setup, label.node) == ("crash", 0)
    assert (preview.headers[Header.ATTEMPT], submit.headers[Header.ATTEMPT]) == ("3", "3")
    # One step of attempt 2 and one or two of attempt 3, at 1100 tokens each.
    assert int(submit.headers[Header.TOKENS]) in (2200, 3300)
    assert Header.KIND not in submit.headers


def test_crash_starts_from_a_fresh_folder_and_keeps_every_attempt(scenes: Scenes) -> None:
    record = scenes.record("crash", "axpy")
    assert (record.end, record.attempts) == (End.SUBMITTED, 3)
    episode = scenes.episode("crash", "axpy")
    assert sorted(path.name for path in episode.glob("attempt-*")) == ["attempt-1", "attempt-2", "attempt-3"]
    assert not (episode / "attempt-1" / "workspace" / "axpy.c").exists()
    lines = [json.loads(line) for line in (scenes.root / "agent-folders.jsonl").read_text().splitlines()]
    mine = [line for line in lines if line["label"] == record.label]
    assert [line["attempt"] for line in mine] == [1, 2, 3]
    assert len({line["path"] for line in lines}) == len({line["n"] for line in lines}) == len(lines)
    assert all(Path(line["path"]).name == f"agent-{line['n']}" for line in lines)


def test_spent_launches_are_a_crash_whatever_the_exit_code(scenes: Scenes) -> None:
    record = scenes.record("dead", "axpy")
    assert (record.end, record.attempts, record.exit_code) == (End.CRASH, 3, 0)


def test_first_submit_ends_a_single_episode_whatever_the_client_exits_with(scenes: Scenes) -> None:
    record = scenes.record("late", "axpy")
    assert (record.end, record.attempts) == (End.SUBMITTED, 1)


def test_first_submit_ends_a_single_episode_of_a_client_that_lingers(tmp_path: Path) -> None:
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path, [judge.url], exit_grace_s=0.3)
        node.script("s", [SUBMIT, SLEEP], ["axpy"])
        node.run()
    record = node.record("s", "axpy")
    assert (record.end, record.attempts) == (End.SUBMITTED, 1)
    assert record.wall_s < 200


def test_last_correct_preview_is_promoted(scenes: Scenes) -> None:
    assert scenes.record("preview", "axpy").end is End.FINISHED
    score, _, promoted = scenes.requests("preview")
    assert promoted.label == "driver"
    assert promoted.headers[Header.KIND] == "promoted"
    assert promoted.headers[Header.ATTEMPT] == "1"
    assert promoted.body["source"] == SOLVED
    key = score.headers["Idempotency-Key"]
    graded = next(stub.answers[key] for stub in scenes.judges if key in stub.answers)
    assert promoted.headers[Header.OF_GRADE] == graded["grade_id"]


def test_timeout_is_not_relaunched_but_promoted(tmp_path: Path) -> None:
    for budget_s in (4, 20, 100):  # the last ones for a machine too busy to answer the preview in time
        with StubJudge(0, SECRET) as judge:
            node = NodeFiles(tmp_path / str(budget_s), [judge.url])
            node.script("slow", [SCORE, SLEEP], ["axpy"], budget={"timeout_s": budget_s})
            node.run()
        record = node.record("slow", "axpy")
        assert (record.end, record.attempts) == (End.TIME, 1)
        assert record.wall_s >= budget_s
        if len(judge.seen) == 2:
            break
    assert [seen.headers.get(Header.KIND) for seen in judge.seen] == [None, "promoted"]


def test_token_cap_ends_the_episode(scenes: Scenes) -> None:
    record = scenes.record("greedy", "axpy")
    assert record.end is End.TOKENS
    assert (record.tokens_fresh or 0) + (record.tokens_output or 0) >= 2000


def test_blind_episode_is_harvested(scenes: Scenes) -> None:
    assert scenes.record("blind", "axpy").end is End.FINISHED
    harvested = scenes.requests("blind")[-1]
    assert (harvested.label, harvested.headers[Header.KIND]) == ("driver", "harvested")
    assert harvested.body["source"] == SOLVED
    assert Header.OF_GRADE not in harvested.headers


def test_judge_fault_is_asked_again_under_the_same_key_and_is_no_submit(scenes: Scenes) -> None:
    assert scenes.record("fault", "axpy").end is End.FINISHED
    keys = [seen.headers["Idempotency-Key"] for seen in scenes.requests("fault")]
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_multi_mode_goes_on_after_a_submit(scenes: Scenes) -> None:
    assert scenes.record("multi", "axpy").end is End.SUBMITTED
    assert [seen.route for seen in scenes.requests("multi")] == ["/submit", "/submit"]


def test_report_and_events_account_for_every_episode(scenes: Scenes) -> None:
    report = scenes.report  # type: ignore[attr-defined]
    assert report["planned"] == sum(report["ends"].values()) == len(scenes.problems)
    ended = scenes.events("episode_ended")
    assert len(scenes.events("episode_started")) == len(ended) == len(scenes.problems)
    assert {"label", "kernel", "end", "seconds"} <= set(ended[0])
