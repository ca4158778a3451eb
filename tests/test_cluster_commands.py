"""The cluster's commands as a user meets them: help, refusals without tracebacks, one JSON object."""

import json
import subprocess
import sys

import pytest

ENV = "SETUP=gold\nHARNESS=scripted\nAGENT_SCRIPT=plan.json\nKERNELS=axpy\nJUDGES_PER_NODE=2\n"


def kcourt(*arguments):
    """Run `kcourt` in a process of its own."""
    command = [sys.executable, "-c", "from bench.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.fixture
def env(tmp_path):
    (tmp_path / "plan.json").write_text("{}")
    path = tmp_path / ".env.gold"
    path.write_text(ENV)
    return path


@pytest.mark.parametrize("arguments", [["run"], ["demo"], ["cluster", "plan"]], ids=lambda words: "-".join(words))
def test_help_has_an_example(arguments):
    done = kcourt(*arguments, "--help")
    assert done.returncode == 0
    assert f"Example: kcourt {' '.join(arguments)}" in done.stdout
    assert "--json" in done.stdout


def test_plan_prints_the_split_and_every_rank_in_json(env):
    done = kcourt("cluster", "plan", env, "--hosts", "n1,n2,n3,n4", "--json")
    found = json.loads(done.stdout)
    assert (found["nodes"], found["inference"], found["agents"]) == (4, ["n1", "n2"], ["n3"])
    assert [judge["url"] for judge in found["judges"]] == ["http://n4:8800", "http://n4:8802"]


def test_plan_prints_the_nodes_to_ask_for(env):
    done = kcourt("cluster", "plan", env)
    assert "--nodes=4" in done.stdout
    assert "8802" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        pytest.param(["run", "{env}"], 2, "--local", id="where-to-run"),
        pytest.param(["run", "--local", "{env}.missing"], 64, "env file", id="no-file"),
        pytest.param(["run", "--local", "{env}"], 64, "INFERENCE_NODES", id="needs-inference"),
        pytest.param(["cluster", "plan", "{env}", "--hosts", "n1,n2"], 64, "= 4", id="wrong-sum"),
        pytest.param(["demo", "--preset", "XXL", "--render-to", "{env}-rendered"], 64, "PRESET", id="preset"),
    ],
)
def test_a_refusal_is_one_sentence_and_an_exit_code(env, arguments, code, expected):
    done = kcourt(*(word.format(env=env) for word in arguments))
    assert done.returncode == code
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
