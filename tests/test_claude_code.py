"""Episodes of the real Claude Code client, driven by a scripted model; sealed where bubblewrap is there."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_node import SECRET, NodeFiles, finished
from agent_stub import StubJudge
from judge_rank import rank, wait_for
from living import gone, new_nap
from scripted_model import ScriptedModel, read_script

from agent.answers import Call, read_calls
from agent.harnesses.clients import INSTALLED
from agent.tools.offered import Tool, offered
from bench.judge.schemas import End, Language, Outcome, SubmissionMode

MODEL = "served-model"
pytestmark = [
    pytest.mark.skipif(not os.access(INSTALLED / "claude", os.X_OK), reason="run `make setup-agents`"),
    pytest.mark.xdist_group("clients"),
]
PROGRAM = Path(__file__).with_name("claude_node.py")
SOLVED, WRONG = "/* solved */\n", "/* wrong */\n"
SCORE, SUBMIT, PROFILE = {"call": "score"}, {"call": "submit"}, {"call": "profile", "input": {"tool": "perf"}}


def write(source: str = SOLVED, name: str = "axpy.c") -> dict[str, Any]:
    return {"write": name, "source": source}


def node_for(root: Path, judge: str, model: ScriptedModel, **settings: Any) -> NodeFiles:
    service = {"urls": [model.url], "model": MODEL, "wires": ["messages"]}
    sealed = {"seal": "auto" if shutil.which("bwrap") else "off"}
    node = NodeFiles(root, [judge], **{"service": service} | sealed | settings)
    node.program = PROGRAM
    return node


def calls_of(node: NodeFiles, setup: str, kernel: str, attempt: int = 1) -> list[Call]:
    return read_calls(node.episode(setup, kernel) / f"attempt-{attempt}" / "calls" / "answers.jsonl")


def log_of(node: NodeFiles, setup: str, kernel: str, attempt: int = 1) -> list[dict[str, Any]]:
    text = (node.episode(setup, kernel) / f"attempt-{attempt}" / "claude.log").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_an_agent_scores_twice_profiles_and_submits_to_a_judge_that_restarts(tmp_path: Path) -> None:
    go = tmp_path / "go"
    right = f"// fake: wait {go}\n"
    tools = {"tools": offered(SubmissionMode.SINGLE, Language.C, on=[Tool.PROFILE])}
    steps = [write("// fake: wrong\n"), SCORE, write(right), SCORE, PROFILE, SUBMIT]
    setups = {"s": {"setup": "s", "harness": "claude_code"}}
    with (
        ScriptedModel(read_script({"axpy": steps})) as model,
        rank(tmp_path / "judge", closed=True, setups=setups, problems=["axpy"]) as judge,
    ):
        node = node_for(tmp_path, f"http://127.0.0.1:{judge.port}", model)
        node.add("s", ["axpy"], {}, harness="claude_code")
        node.give("s", ["axpy"], **tools)
        driver = node.start()
        wait_for(Path(f"{go}.reached"))
        judge.judge().kill()
        go.touch()
        assert finished(driver)["ends"] == {"submitted": 1}
    calls = calls_of(node, "s", "axpy")
    assert [call.route for call in calls] == ["score", "score", "profile", "submit"]
    assert [call.answer.outcome for call in calls if call.answer] == [Outcome.WRONG, Outcome.SOLVED, Outcome.SOLVED]
    assert [call.tokens for call in calls] == sorted({call.tokens for call in calls})
    said = [result for asked in model.asked for result in asked.results[-1:]]
    assert [json.loads(said[turn])["outcome"] for turn in (1, 3)] == ["wrong", "solved"]
    record = node.record("s", "axpy")
    assert record.model == MODEL
    assert record.harness_version in (INSTALLED.parent / "@anthropic-ai/claude-code/package.json").read_text()
    assert record.turns in (6, 7)
    assert (record.tokens_fresh, record.tokens_cached) == (100 * record.turns, 20 * record.turns)
    assert record.tool_calls == 6


# Scenes that share one node: kernel → harness, what more its problem says, the model's steps, how it ends, launches.
NAP = new_nap()
GOES_ON = [{"shell": "true"}] * 50
SCENES: dict[str, tuple[str, dict[str, Any], list[dict[str, Any]], End, int]] = {
    "stalls": ("claude_code", {}, [{"text": "So", "stall": "pings", "times": 1}, SUBMIT], End.SUBMITTED, 2),
    "blind": ("claude_code", {"mode": "blind"}, [SUBMIT], End.SUBMITTED, 1),
    "once": ("claude_code", {}, [SUBMIT, {"shell": f"sleep {NAP}"}], End.SUBMITTED, 1),
    "twice": ("claude_code", {"mode": "multi"}, [SUBMIT, SUBMIT], End.SUBMITTED, 1),
    "talks": ("claude_code", {}, [{"text": "I would rather not."}], End.FINISHED, 1),
    "tokens": ("claude_code", {"budget": {"max_tokens": 700}}, GOES_ON, End.TOKENS, 1),
    "wall": ("claude_code", {"budget": {"timeout_s": 20}}, [{"shell": f"sleep {NAP}"}], End.TIME, 1),
    "fails": ("claude_code", {}, [SCORE, {"error": 500}], End.API, 1),
    "recovers": ("claude_code", {}, [{"error": 529, "times": 1}, SUBMIT], End.SUBMITTED, 1),
    "overflows": ("claude_code", {}, [{"error": 400, "message": "prompt is too long: 3 > 2"}], End.CONTEXT, 1),
    "lingers": ("lingers", {}, [{"text": "Done."}], End.FINISHED, 1),
    "slow": ("slow_tools", {}, [SUBMIT], End.SUBMITTED, 1),
    "none": ("no_tools", {}, [SUBMIT], End.TOOLS_UNAVAILABLE, 2),
    "other": ("other_model", {}, [SUBMIT], End.START_FAILED, 1),
    # The call that finds the server dead may fail; it is started again at the latest for the one after.
    "dies": ("mortal_tools", {}, [SCORE, {"shell": "kill -9 $(cat server.pid)"}, SUBMIT, SUBMIT], End.SUBMITTED, 1),
    "denied": ("claude_code", {}, [write(name=".claude/settings.json"), SUBMIT], End.SUBMITTED, 1),
    "leaves": ("claude_code", {}, [{"shell": f"sleep {NAP} & setsid sleep {NAP} &"}, SUBMIT], End.SUBMITTED, 1),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NodeFiles, ScriptedModel]]:
    """One node that has played all scenes, and the model that they asked."""
    script = {kernel: [write(name=f"{kernel}.c"), *steps] for kernel, (_, _, steps, _, _) in SCENES.items()}
    with StubJudge(0, SECRET) as judge, ScriptedModel(read_script(script)) as model:
        limits = {"workers": 4, "crash_attempts": 2, "exit_grace_s": 1.0, "idle_timeout_s": 40.0}
        node = node_for(tmp_path_factory.mktemp("scenes"), judge.url, model, **limits)
        for kernel, (harness, more, *_) in SCENES.items():
            node.add(setup_of(kernel), [kernel], {}, harness=harness, **more)
        node.run()
        yield node, model


def setup_of(kernel: str) -> str:
    """The stub judge takes more than one submit from a setup of this name alone."""
    return "multi" if kernel == "twice" else kernel


@pytest.mark.parametrize("kernel", SCENES)
def test_a_scene_ends_as_it_must(played: tuple[NodeFiles, ScriptedModel], kernel: str) -> None:
    record = played[0].record(setup_of(kernel), kernel)
    *_, end, launches = SCENES[kernel]
    assert (record.end, record.attempts) == (end, launches)


def test_what_clients_leave_in_the_background_is_gone(played: tuple[NodeFiles, ScriptedModel]) -> None:
    assert any(NAP in command for command in commands(played[0], "leaves"))
    assert gone(NAP)


def commands(node: NodeFiles, kernel: str) -> list[str]:
    """What a scene's shell was told."""
    said = [event["message"]["content"] for event in log_of(node, kernel, kernel) if event["type"] == "assistant"]
    return [block["input"]["command"] for blocks in said for block in blocks if block.get("name") == "Bash"]


def test_an_agent_is_told_what_was_denied_and_goes_on(played: tuple[NodeFiles, ScriptedModel]) -> None:
    said = [asked.results for asked in played[1].asked if "denied" in asked.prompt][-1]
    assert "Permission to use Write has been denied" in said[1]


def test_a_tool_server_that_died_is_started_again_for_the_next_call(played: tuple[NodeFiles, ScriptedModel]) -> None:
    assert [call.route for call in calls_of(played[0], "dies", "dies")][:2] == ["score", "submit"]


def test_a_request_that_fails_costs_no_preview(played: tuple[NodeFiles, ScriptedModel]) -> None:
    answered = {event["label"].partition(".")[0]: event["outcome"] for event in played[0].events("answered")}
    assert answered["fails"] == Outcome.SOLVED


def test_another_model_is_recorded_and_not_worked_with(played: tuple[NodeFiles, ScriptedModel]) -> None:
    assert played[0].record("other", "other").model == "other-model"
    assert {played[0].record(setup_of(kernel), kernel).model for kernel in SCENES if kernel != "other"} == {MODEL}


def test_only_the_served_model_is_ever_asked_for(played: tuple[NodeFiles, ScriptedModel]) -> None:
    assert {asked.body["model"] for asked in played[1].asked} <= {MODEL, "other-model"}


def test_every_attempt_keeps_a_stream_without_pieces(played: tuple[NodeFiles, ScriptedModel]) -> None:
    kinds = {event["event"]["type"] for event in log_of(played[0], "once", "once") if event["type"] == "stream_event"}
    assert kinds == {"message_delta"}
    assert log_of(played[0], "stalls", "stalls", 1) and log_of(played[0], "stalls", "stalls", 2)


def test_a_token_cap_is_met_within_a_turn(played: tuple[NodeFiles, ScriptedModel]) -> None:
    record = played[0].record("tokens", "tokens")
    total = (record.tokens_fresh or 0) + (record.tokens_cached or 0) + (record.tokens_output or 0)
    assert 700 <= total < 700 + 2 * 130


def test_six_at_a_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    count = 6
    with (
        StubJudge(0, SECRET) as judge,
        ScriptedModel(read_script({"axpy": [write(), SCORE, SUBMIT]})) as model,
    ):
        node = node_for(tmp_path, judge.url, model, workers=count, seal="off")
        node.add("s", ["axpy"] * count, {}, harness="claude_code")
        assert node.run()["ends"] == {"submitted": count}
    homes = list(node.run_dir.glob("*/attempt-1/home"))
    assert len(homes) == count
    configs = [json.loads((home / ".claude" / ".claude.json").read_text()) for home in homes]
    assert len({config["userID"] for config in configs}) == count


def test_a_session_that_ends_early_goes_on_within_its_time(tmp_path: Path) -> None:
    steps = [write(), SCORE, {"text": "That is enough."}, SUBMIT]
    with StubJudge(0, SECRET) as judge, ScriptedModel(read_script({"axpy": steps})) as model:
        node = node_for(tmp_path, judge.url, model, budget_mode="time")
        node.add("s", ["axpy"], {}, harness="claude_code")
        assert node.run()["ends"] == {"submitted": 1}
        record = node.record("s", "axpy")
        asked = [one for one in model.asked if one.tools]
    assert (record.attempts, record.resumed) == (1, 1)
    assert (record.tokens_fresh, record.tokens_cached) == (100 * len(asked), 20 * len(asked))
    assert [call.route for call in calls_of(node, "s", "axpy")] == ["score", "submit"]


KEY = "sk-the-key-of-a-provider"
LOOKS = "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; cat ~/.claude/* /opt/kcourt/* 2>&1; ls -a / ~ ."


def test_an_agent_that_prints_all_it_can_see_shows_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_KEY", KEY)
    script = read_script({"axpy": [{"shell": LOOKS}, write(), SUBMIT]})
    with StubJudge(0, SECRET) as judge, ScriptedModel(script) as model:
        hosted = {"urls": [model.url], "model": MODEL, "wires": ["messages"], "key_env": "PROVIDER_KEY"}
        node = node_for(tmp_path, judge.url, model, service=hosted, usage_file=tmp_path / "usage.jsonl")
        node.add("s", ["axpy"], {}, harness="claude_code")
        assert node.run()["ends"] == {"submitted": 1}
    assert '"status": 200' in (tmp_path / "usage.jsonl").read_text()
    assert "KCOURT_TOOLS=" in (node.episode("s", "axpy") / "attempt-1" / "claude.log").read_text()
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [str(path) for path in files if KEY.encode() in path.read_bytes()] == []
    assert KEY not in "".join(result for asked in model.asked for result in asked.results)
