"""The cluster's commands as a user meets them: help, refusals without tracebacks, one JSON object."""

import pytest

from bench.cli import commands, load_command

ENV = "SETUP=gold\nHARNESS=scripted\nAGENT_SCRIPT=plan.json\nKERNELS=axpy\nJUDGES_PER_NODE=2\n"


@pytest.fixture
def env(tmp_path):
    (tmp_path / "plan.json").write_text("{}")
    path = tmp_path / ".env.gold"
    path.write_text(ENV)
    return path


def every_command():
    """Words of every command of this installation, groups too."""

    def below(command, words):
        yield words
        for name, inner in getattr(command, "commands", {}).items():
            yield from below(inner, [*words, name])

    for name in commands():
        yield from below(load_command(name), [name])


@pytest.mark.parametrize("arguments", [*every_command()], ids=lambda words: "-".join(words))
def test_help_has_an_example(arguments):
    command = load_command(arguments[0])
    for name in arguments[1:]:
        command = command.commands[name]
    assert f"Example: kcourt {' '.join(arguments)}" in command.help
    if not hasattr(command, "commands"):
        assert any("--json" in option.opts for option in command.params)


def test_plan_prints_the_split_and_every_rank_in_json(kcourt, env):
    found = kcourt("cluster", "plan", env, "--hosts", "n1,n2,n3,n4", "--json").json
    assert (found["nodes"], found["inference"], found["agents"]) == (4, ["n1", "n2"], ["n3"])
    assert [judge["url"] for judge in found["judges"]] == ["http://n4:8800", "http://n4:8802"]


def test_plan_prints_the_nodes_to_ask_for(kcourt, env):
    printed = kcourt("cluster", "plan", env).out
    assert "--nodes=4" in printed
    assert "8802" in printed


def test_a_pipe_cuts_no_address(kcourt, env):
    host = f"judge-{'x' * 50}.cluster.example"
    assert f"http://{host}:8802" in kcourt("cluster", "plan", env, "--hosts", f"n1,n2,n3,{host}").out


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        pytest.param(["run", "{env}"], 2, "--local", id="where-to-run"),
        pytest.param(["run", "--local", "{env}.missing"], 64, "env file", id="no-file"),
        pytest.param(["run", "--local", "{env}"], 64, "INFERENCE_NODES", id="needs-inference"),
        pytest.param(["cluster", "plan", "{env}", "--hosts", "n1,n2"], 64, "= 4", id="wrong-sum"),
        pytest.param(["db", "merge", "{env}.db", "{env}", "--secret", "no"], 2, "--secret: no: no job", id="secret"),
        pytest.param(["run", "--local", "/proc/version"], 64, "/proc/version:1", id="no-env"),
        pytest.param(["demo", "--render-to", "/proc/x"], 1, "/proc/x", id="unwritable"),
        pytest.param(["demo", "--preset", "XXL", "--render-to", "{env}-rendered"], 64, "PRESET", id="preset"),
    ],
)
def test_a_refusal_is_one_sentence_and_an_exit_code(kcourt, env, arguments, code, expected):
    done = kcourt(*(word.format(env=env) for word in arguments))
    assert done.code == code
    assert expected in done.err
    assert done.err.startswith("error: ")
