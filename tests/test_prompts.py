"""Prompts: for every shipped treatment, mode and language, what is promised is what is enforced."""

import itertools

import pytest
from agent_node import SECRET, NodeFiles
from agent_stub import StubJudge
from hypothesis import given
from hypothesis import strategies as st

from agent.budget import Budget, BudgetMode
from agent.config import read_problems
from agent.prompts.promises import Enforced, broken, promises
from agent.prompts.render import sections_of, shipped_sections, template_of
from agent.tools.offered import Tool, offered, why_forbidden
from agent.usage import Usage
from bench.build.builder import build_command
from bench.errors import ConfigError
from bench.judge.schemas import Language, SubmissionMode
from bench.task import find_task
from cluster.study.briefing import check_treatment, enforced_for, launch_material, told, tools_of
from cluster.study.problems import make_problem, problems_of
from cluster.study.settings import JobSettings, read_settings
from cluster.study.treatments import known_treatments, read_treatment

TREATMENTS = [*known_treatments(), "hints+skills+reference"]
CELLS = [*itertools.product(TREATMENTS, SubmissionMode, Language)]


def prompt_for(settings, treatment, problem):
    return told(launch_material(settings, treatment), settings, problem).prompt


def setup_of(treatment, mode, language, **values):
    keys = {key.lower(): value for key, value in treatment.env.items()}
    return JobSettings(setup="s", kernels="axpy", language=language, agent_submission_mode=mode, **keys, **values)


def promised(prompt, settings, problem):
    """The words that promise something, all of which hold."""
    found = promises(prompt, enforced_for(settings, problem))
    assert [promise for promise in found if promise.broken] == []
    return {promise.phrase for promise in found}


@pytest.mark.parametrize(("name", "mode", "language"), CELLS, ids=lambda value: str(value))
def test_a_prompt_promises_what_is_enforced(name, mode, language):
    treatment = read_treatment(name)
    settings = setup_of(treatment, mode, language, agent_timeout_seconds=5400, agent_max_tokens=250_000)
    problem = make_problem(settings, find_task("axpy"))
    if any(why_forbidden(tool, mode, language) for tool, switch in treatment.tools.items() if switch.on):
        with pytest.raises(ConfigError, match="has the tool 'profile' on"):
            check_treatment(settings, treatment, problem)
        return
    check_treatment(settings, treatment, problem)
    found = promised(prompt_for(settings, treatment, problem), settings, problem)
    assert {f"`{tool}`" for tool in tools_of(settings)} <= found
    assert ("submit again" in found) is (mode is SubmissionMode.MULTI)
    assert {"5400 seconds", "250000 tokens", build_command(language, "axpy")} <= found


def test_a_problems_own_budget_is_the_one_that_is_promised():
    settings = setup_of(read_treatment("none"), SubmissionMode.SINGLE, Language.C)
    problem = make_problem(settings, find_task("axpy")).model_copy(update={"budget": {"timeout_s": 60}})
    assert "60 seconds" in promised(prompt_for(settings, read_treatment("none"), problem), settings, problem)


@pytest.mark.parametrize("mode", SubmissionMode)
@pytest.mark.parametrize(
    ("budget", "versions", "goes_on"),
    [
        ({}, False, False),
        ({"agent_max_iterations": 7}, True, False),
        ({"agent_budget_mode": "time"}, False, True),
        ({"agent_budget_mode": "time", "agent_max_iterations": 7}, False, True),
    ],
    ids=["no-number", "versions", "time", "time-alone"],
)
def test_a_prompt_asks_for_what_its_budget_mode_is(mode, budget, versions, goes_on):
    treatment = read_treatment("none")
    settings = setup_of(treatment, mode, Language.C, **budget)
    problem = make_problem(settings, find_task("axpy"))
    check_treatment(settings, treatment, problem)
    found = promised(prompt_for(settings, treatment, problem), settings, problem)
    assert ("Write 7 versions" in found, "asked to go on" in found) == (versions, goes_on)


@pytest.mark.parametrize(
    ("text", "budget", "kept"),
    [
        ("Write 5 versions.", {"iterations": 5}, True),
        ("Try at least 5 different versions.", {"iterations": 5}, True),
        ("Write 5 versions.", {"iterations": 6}, False),
        ("Write 5 versions.", {}, False),
        ("You have 5 iterations.", {"mode": BudgetMode.TIME, "iterations": 5}, False),
        ("If you stop, you are asked to go on.", {"mode": BudgetMode.TIME}, True),
        ("If you stop, you are asked to go on.", {"iterations": 5}, False),
        ("The session is resumed.", {}, False),
        ("There are 5 versions of gcc, and 100 iterations of the loop.", {}, True),
        ("Try 2 versions of the flag.", {}, True),
    ],
)
def test_what_a_text_says_of_versions_and_of_going_on_must_hold(text, budget, kept):
    enforced = Enforced(SubmissionMode.SINGLE, (), Budget(60, 1000, **budget), "gcc -O3")
    assert (broken(text, enforced) is None) is kept


def test_a_prompt_can_be_taken_apart_again():
    assert sections_of(template_of(shipped_sections())) == {
        name: text if name == [*shipped_sections()][-1] else f"{text}\n" for name, text in shipped_sections().items()
    }


@pytest.mark.parametrize("language", ["c", "python"])
def test_the_prompt_of_a_rendered_setup_is_printed_as_its_agents_get_it(kcourt, tmp_path, language):
    env = tmp_path / ".env.mine"
    env.write_text(f"SETUP=mine\nKERNELS=axpy,gelu\nLANGUAGE={language}\nTREATMENT=hints\nAGENT_MAX_ITERATIONS=4\n")
    text, found = (kcourt("prompt", "gelu", "--setup", str(env), *form) for form in ((), ("--json",)))
    settings = read_settings(env)
    problem = next(problem for problem in problems_of(settings) if problem.kernel == "gelu")
    assert text.out == found.json["prompt"] == prompt_for(settings, read_treatment("hints"), problem)
    assert found.json["tools"] == ["score", "submit", "syntax_check"]
    assert [*found.json["sections"]] == ["role", "task", "build", "tools", "budget", "submission", "hints"]
    assert all(section.strip() in text.out for section in found.json["sections"].values())
    assert "Write 4 versions" in found.json["sections"]["budget"]


def test_a_prompt_that_promises_what_does_not_hold_is_not_printed(kcourt, tmp_path):
    env = tmp_path / ".env.mine"
    env.write_text("SETUP=mine\nKERNELS=axpy\n")
    wrong = kcourt("prompt", "axpi", "--setup", str(env))
    assert (wrong.code, wrong.err) == (
        2,
        "error: setup 'mine' has no kernel 'axpi'; did you mean 'axpy'?\n",
    )
    kept = tmp_path / ".env.mine.launch"
    kept.mkdir()
    (kept / "prompt.md").write_text("You may submit again and again.")
    (kept / "brief.json").write_text('{"tools": ["score", "submit", "syntax_check"]}')
    promised = kcourt("prompt", "axpy", "--setup", str(env))
    assert promised.code == 64
    assert "promises 'submit again', and mode single takes one submission" in promised.err


@given(st.sampled_from(SubmissionMode), st.sampled_from(Language), st.sets(st.sampled_from(Tool)))
def test_a_tool_that_the_judge_refuses_is_never_offered(mode, language, on):
    found = offered(mode, language, on)
    assert not any(why_forbidden(tool, mode, language) for tool in found)
    assert Tool.SUBMIT in found


@given(st.sampled_from(SubmissionMode), st.sets(st.sampled_from(Tool)), st.text(max_size=40))
def test_a_text_around_a_promise_hides_none(mode, tools, text):
    enforced = Enforced(mode, tuple(tools), Budget(60, 1000), "gcc -O3")
    for tool in Tool:
        found = broken(f"{text}\n\nUse `{tool}`.\n", enforced)
        assert tool in tools or found is not None


def stage(node, name, mode):
    """What a job would stage for the setup `s`, whose problem is axpy."""
    treatment = read_treatment(name)
    settings = setup_of(treatment, mode, Language.C)
    for path, content in launch_material(settings, treatment).items():
        target = node.root / "shared" / "setups" / "s" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def test_a_client_gets_its_prompt_and_must_announce_the_tools_of_its_treatment(tmp_path):
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(tmp_path, [judge.url], timeout_s=240)
        node.script("s", [{"tool": "exit", "attempt": 1}, {"tool": "submit", "source": "/* solved */"}], ["axpy"])
        names = ("seconds", "tokens", "mode", "tools | join(' ')", "start | join", "hints[0]", "skills[0].path")
        template = " ".join(f"{{{{ {name} }}}}" for name in names)
        node.give(
            "s", ["axpy"], template, tools=["submit", "profile"], hints=["Go."], skills=[{"name": "t", "trigger": "x"}]
        )
        assert node.run()["ends"] == {"submitted": 1}
        attempts = [node.episode("s", "axpy") / f"attempt-{number}" for number in (1, 2)]
        first, second = ((attempt / "prompt.txt").read_text().split() for attempt in attempts)
        assert first[:2] == ["240", "120000000"]
        assert int(second[0]) < 240
        page = tmp_path / "shared" / "setups" / "s" / "skills" / "t" / "SKILL.md"
        assert first[2:] == second[2:] == ["single", "submit", "profile", "baseline.c", "Go.", str(page)]
        assert '"tools":["submit","profile"]' in (attempts[0] / "scripted.log").read_text().replace(" ", "")


def test_a_node_reads_what_a_job_stages(tmp_path):
    node = NodeFiles(tmp_path, ["http://x"])
    node.add("s", ["axpy"], {})
    stage(node, "hints+profile", SubmissionMode.MULTI)
    assert [problem.kernel for _, problem in read_problems(node.config())] == ["axpy"]


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("brief.json", None, "brief.json: cannot be read .*; stage what"),
        ("brief.json", '{"tools": ["hammer"]}', "brief.json: tools.0: "),
        ("contracts/axpy.json", None, "axpy.json is not there; stage the contract"),
    ],
    ids=["no-brief", "tool", "no-contract"],
)
def test_a_node_that_lacks_what_its_agents_are_given_does_not_start(tmp_path, file, content, expected):
    node = NodeFiles(tmp_path, ["http://x"])
    node.add("s", ["axpy"], {})
    path = tmp_path / "shared" / "setups" / "s" / file
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(ConfigError, match=expected):
        read_problems(node.config())


def test_a_later_attempt_is_told_what_is_left():
    assert Budget(100, 1000).left(Usage(tokens_fresh=300), 40) == Budget(60, 700)
    assert Budget(100, 1000).left(Usage(tokens_fresh=3000), 400) == Budget(0, 0)
