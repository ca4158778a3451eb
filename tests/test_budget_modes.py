"""Budget modes: a budget of time is used up by resuming sessions, and never for ever; who may have one."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_node import DONE, KCOURT, READY, SECRET, NodeFiles
from agent_stub import StubJudge
from hypothesis import given
from hypothesis import strategies as st

from agent.budget import LEAST_RESUMED_S, Budget, BudgetMode, Session, resumes
from agent.harnesses import harness_class
from agent.prompts.promises import Enforced, broken
from agent.prompts.render import go_on
from agent.tools.offered import Tool, offered
from bench.cli import run
from bench.errors import ConfigError
from bench.judge.schemas import End, Language, SubmissionMode
from cluster.study.wave import read_wave

SINGLE, MULTI = SubmissionMode.SINGLE, SubmissionMode.MULTI
IN_TIME = Budget(100, 1000, BudgetMode.TIME)
WORKED = Session(End.FINISHED, "s", worked=True)


@pytest.mark.parametrize(
    ("session", "resumed", "left", "mode", "expected"),
    [
        pytest.param(WORKED, 0, IN_TIME, SINGLE, True, id="finished"),
        pytest.param(WORKED, 9, IN_TIME, SINGLE, True, id="again-and-again"),
        pytest.param(WORKED, 0, Budget(100, 1000), SINGLE, False, id="iterations"),
        pytest.param(WORKED, 0, Budget(LEAST_RESUMED_S, 1, BudgetMode.TIME), SINGLE, True, id="just-enough-time"),
        pytest.param(WORKED, 0, Budget(LEAST_RESUMED_S - 1, 1000, BudgetMode.TIME), SINGLE, False, id="too-late"),
        pytest.param(WORKED, 0, Budget(100, 0, BudgetMode.TIME), SINGLE, False, id="no-tokens"),
        pytest.param(Session(End.FINISHED, None, worked=True), 0, IN_TIME, SINGLE, False, id="no-session"),
        pytest.param(Session(End.FINISHED, "s", worked=False), 0, IN_TIME, SINGLE, True, id="idle-at-first"),
        pytest.param(Session(End.FINISHED, "s", worked=False), 1, IN_TIME, SINGLE, False, id="idle-again"),
        pytest.param(Session(End.SUBMITTED, "s", worked=True), 0, IN_TIME, SINGLE, False, id="single-submitted"),
        pytest.param(Session(End.SUBMITTED, "s", worked=True), 0, IN_TIME, MULTI, True, id="multi-submitted"),
        *[
            pytest.param(Session(end, "s", worked=True), 0, IN_TIME, MULTI, False, id=f"ended-{end}")
            for end in End
            if end not in (End.FINISHED, End.SUBMITTED)
        ],
    ],
)
def test_a_session_goes_on(session: Session, resumed: int, left: Budget, mode: SubmissionMode, expected: bool) -> None:
    assert resumes(session, resumed, left, mode) is expected


@given(st.sampled_from(SubmissionMode), st.floats(LEAST_RESUMED_S, 72000))
def test_what_a_resumed_agent_is_told_is_what_holds(mode: SubmissionMode, left_s: float) -> None:
    text = go_on(left_s, mode)
    assert f" {int(left_s)} seconds left" in text
    tools = offered(mode, Language.C)
    assert Tool.SUBMIT in tools
    assert broken(text, Enforced(mode, tools, Budget(left_s, 1000, BudgetMode.TIME), "gcc -O3")) is None


# One run with a setup for each way that sessions can go.

SAY_DONE = f"echo '{DONE}'"
# Counts its sessions in its folder, where the next one finds it, and tells its id.
BEGIN = f"""\
echo "$ATTEMPT:$RESUME" >> sessions
n=$(wc -l < sessions)
echo '{{"tools": {json.dumps(json.loads(READY)["tools"])}, "session": "s-'$n'"}}'
"""
TOOL = f"{shlex.join(KCOURT)} tool"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeFiles]:
    """A node that has run; nothing in it takes long, whatever the budgets."""
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path_factory.mktemp("time"), [judge.url], workers=3, budget_mode="time", timeout_s=3000)
        node.rogue("diligent", ["axpy"], shell=f"""{BEGIN} echo '{{"calls": '$((n < 3))'}}'; {SAY_DONE}""")
        node.rogue("idle", ["axpy"], shell=f"{BEGIN} {SAY_DONE}")
        node.add("late", ["axpy"], {"shell": f"{BEGIN} {SAY_DONE}"}, harness="rogue", budget={"timeout_s": 59})
        node.rogue("breaks", ["axpy"], shell=f"{BEGIN} [ $ATTEMPT$n = 12 ] && exit 1; {SAY_DONE}")
        submit = f"""echo '/* solved */' > axpy.c; {TOOL} submit '{{"file": "axpy.c"}}'"""
        node.rogue("submits", ["axpy"], shell=f"{BEGIN} if [ $n = 2 ]; then {submit}; fi; {SAY_DONE}")
        shell = f"{BEGIN} if [ $n = 1 ]; then {submit}; fi; {SAY_DONE}"
        node.add("multi", ["axpy"], {"shell": shell}, mode="multi", harness="rogue")
        node.run()
        yield node


def sessions(node: NodeFiles, setup: str, attempt: int = 1) -> list[str]:
    """`attempt:session resumed` of each session that ran in an attempt's folder."""
    kept = node.episode(setup, "axpy") / f"attempt-{attempt}" / "workspace" / "sessions"
    return kept.read_text().split()


def test_sessions_go_on_until_one_does_nothing(node: NodeFiles) -> None:
    record = node.record("diligent", "axpy")
    assert (record.end, record.attempts, record.resumed, record.tool_calls) == (End.FINISHED, 1, 2, 2)
    assert sessions(node, "diligent") == ["1:", "1:s-1", "1:s-2"]
    (first, second) = (event for event in node.events("session_resumed") if event["label"] == record.label)
    assert (first["session"], second["session"], first["attempt"]) == (2, 3, 1)


def test_every_session_leaves_its_evidence_in_its_attempt(node: NodeFiles) -> None:
    attempt = node.episode("diligent", "axpy") / "attempt-1"
    assert {path.name for path in attempt.glob("prompt*")} == {"prompt.txt", "prompt-2.txt", "prompt-3.txt"}
    assert {path.name for path in attempt.glob("*.log")} == {"rogue.log", "rogue-2.log", "rogue-3.log"}
    assert '"s-2"' in (attempt / "rogue-2.log").read_text()
    (left_s,) = re.findall(r"(\d+) seconds", (attempt / "prompt-2.txt").read_text())
    assert 2000 < int(left_s) < 3000


def test_a_session_that_does_nothing_is_resumed_once(node: NodeFiles) -> None:
    assert node.record("idle", "axpy").resumed == 1
    assert sessions(node, "idle") == ["1:", "1:s-1"]


def test_a_session_with_less_than_a_minute_left_is_not_resumed(node: NodeFiles) -> None:
    record = node.record("late", "axpy")
    assert (record.end, record.resumed) == (End.FINISHED, 0)


def test_a_resumed_session_that_crashes_starts_the_next_attempt_afresh(node: NodeFiles) -> None:
    record = node.record("breaks", "axpy")
    assert (record.end, record.attempts, record.resumed) == (End.FINISHED, 2, 2)
    assert sessions(node, "breaks", 1) == ["1:", "1:s-1"]
    assert sessions(node, "breaks", 2) == ["2:", "2:s-1"]


def test_a_submit_of_a_resumed_session_ends_a_single_episode(node: NodeFiles) -> None:
    record = node.record("submits", "axpy")
    assert (record.end, record.attempts, record.resumed) == (End.SUBMITTED, 1, 1)
    assert (record.submit_calls, record.outcome) == (1, "solved")


def test_an_early_submit_of_a_multi_episode_stays_its_answer(node: NodeFiles) -> None:
    record = node.record("multi", "axpy")
    assert (record.end, record.attempts, record.resumed) == (End.SUBMITTED, 1, 1)


# Who may have a budget of time


def test_a_harness_that_cannot_resume_has_no_budget_of_time(tmp_path: Path) -> None:
    node = NodeFiles(tmp_path, ["http://x"], budget_mode="time")
    node.script("s", [], ["axpy"])
    driver = node.start()
    _, err = driver.communicate(timeout=120)
    assert driver.returncode == 64
    assert "AGENT_BUDGET_MODE=time resumes a session that ends early, and harness scripted cannot" in err
    assert not node.run_dir.exists()


def test_a_job_refuses_a_budget_of_time_that_cannot_be_used_up(tmp_path: Path) -> None:
    env = tmp_path / ".env.s"
    env.write_text("SETUP=s\nKERNELS=axpy\nHARNESS=scripted\nAGENT_SCRIPT_RULE=gold\nAGENT_BUDGET_MODE=time\n")
    with pytest.raises(ConfigError, match=r"\.env\.s: HARNESS=scripted: AGENT_BUDGET_MODE=time resumes"):
        read_wave([env])


def test_a_submission_refuses_a_budget_of_time_that_cannot_be_used_up(tmp_path: Path) -> None:
    argv = ["study", "submit", "demo", "--local", "--set", "AGENT_BUDGET_MODE=time", "--render-to", str(tmp_path)]
    with pytest.raises(ConfigError, match=r"setup 'gold': AGENT_BUDGET_MODE=time resumes .* harness scripted cannot"):
        run(argv)
    assert list(tmp_path.iterdir()) == []


def test_which_installed_harnesses_resume() -> None:
    found = {
        name: harness_class(name).resumes for name in ("claude_code", "codex", "cursor", "openai_loop", "scripted")
    }
    assert [*found.values()] == [True, True, True, False, False]
