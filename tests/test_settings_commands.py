"""`kcourt settings` as a user meets it: every KEY listed, a value explained with all that it overrides."""

import json
import stat

import pytest
from goldens import check_golden

from bench import cli
from bench.errors import UsageError
from bench.places import checkout
from cluster.study.settings import keys

SHIPPED = checkout() / "experiments"
STUDY = """study: mine
question: "?"
experiment: short
tag: demo
control: {treatment: none}
models: [qwen3coder]
treatments: [none, hints]
hardware: h200
settings: {PRESET: L}
"""


@pytest.fixture
def said(capsys):
    """Runs a command in this process and returns what it prints."""

    def run(*arguments):
        assert cli.run(["settings", *arguments]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def env(tmp_path, monkeypatch, said):
    """A setup of an own study over the shipped layers, rendered; its env file."""
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(tmp_path))
    monkeypatch.setenv("KCOURT_SYSTEM", "local")
    monkeypatch.delenv("KCOURT_SCRATCH", raising=False)
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "mine.yaml").write_text(STUDY)
    assert cli.run(["study", "plan", "mine", "--json"]) == 0
    said("list")  # drops what the plan has printed
    return tmp_path / ".env.short-h200-qwen3coder-c"


def test_the_rendered_env_is_golden(env):
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    check_golden("env-short-h200-qwen3coder-c.env", env.read_text())


def test_every_key_is_listed(said):
    listed = json.loads(said("list", "--json"))["settings"]
    assert {row["key"] for row in listed} == set(keys())
    assert next(row for row in listed if row["key"] == "JUDGE_PORT")["type"] == "integer"
    assert [row["key"] for row in listed if row["secret"]] == ["SERPAPI_API_KEY"]


def test_a_role_is_listed_as_a_table(said):
    shown = said("list", "--role", "judge")
    assert "JUDGE_READY_SECONDS" in shown and "integer (s)" in shown and "AGENT_MAX_TOKENS" not in shown


def test_a_key_is_explained_without_a_setup(said):
    shown = said("explain", "AGENT_MAX_TOKENS")
    assert "Token cap of an episode" in shown and "120000000" in shown and "(tokens)" in shown


@pytest.mark.parametrize(
    ("key", "value", "layers"),
    [
        pytest.param("PRESET", "L", ["experiment standard", "experiment short", "study mine"], id="own"),
        pytest.param("AGENT_TIMEOUT_SECONDS", "3600", ["experiment standard", "experiment short"], id="experiment"),
        pytest.param("INFERENCE_NODES", "2", ["served", "replicas"], id="shape"),
        pytest.param("INFERENCE_EDF", "kcourt-vllm-h200", ["served", "hardware h200"], id="hardware"),
        pytest.param(
            "INFERENCE_CONTEXT_TOKENS", "131072", ["model-qwen3coder", "experiment short, model qwen3coder"], id="model"
        ),
        pytest.param("JUDGE_PORT", "", [], id="default"),
    ],
)
def test_a_value_is_explained_with_all_that_it_overrides(said, env, key, value, layers):
    found = json.loads(said("explain", key, "--setup", str(env), "--json"))
    assert found["value"] == value
    assert [origin["layer"] for origin in found["origins"]] == layers
    for origin in found["origins"]:
        with open(origin["path"]) as file:
            line = file.readlines()[origin["line"] - 1]
        assert key in line or origin["layer"] == "hardware h200"


def test_an_explanation_reads_from_the_winner_down(said, env):
    lines = said("explain", "PRESET", "--setup", "short-h200-qwen3coder-c").splitlines()
    assert lines[2].startswith("short-h200-qwen3coder-c: PRESET=L  from ")
    assert lines[2].endswith(f"{env.parent / 'studies' / 'mine.yaml'}:9 (study mine)")
    assert lines[3].startswith(f"  overrides M  from {SHIPPED / 'setups.yaml'}:")
    assert lines[4].startswith(f"  overrides XL  from {SHIPPED / 'setups.yaml'}:")


def test_an_env_file_that_was_edited_has_the_last_word(said, env):
    env.write_text(env.read_text().replace("PRESET=L", "PRESET=S"))
    line = env.read_text().splitlines().index("PRESET=S") + 1
    shown = said("explain", "PRESET", "--setup", str(env))
    assert f"PRESET=S  from {env}:{line} (env file of short-h200-qwen3coder-c)" in shown
    assert "overrides L" in shown


def test_what_the_env_file_lacks_is_a_default_whatever_the_layers_say_now(said, env):
    env.write_text(env.read_text().replace("INFERENCE_CONTEXT_TOKENS=131072\n", ""))
    assert "does not set it, so the default" in said("explain", "INFERENCE_CONTEXT_TOKENS", "--setup", str(env))


def test_a_setup_without_layers_has_its_env_file_alone(said, tmp_path):
    (tmp_path / ".env.own").write_text("SETUP=own\nKERNELS=axpy\nEXPERIMENT=nix\n")
    assert f"from {tmp_path / '.env.own'}:2 " in said("explain", "KERNELS", "--setup", str(tmp_path / ".env.own"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["explain", "JUDGE_PROT"], "did you mean 'JUDGE_PORT'?", id="key"),
        pytest.param(["explain", "PRESET", "--setup", "nix"], "no setup 'nix' is rendered", id="setup"),
        pytest.param(["list", "--role", "judg"], "'judge'", id="role"),
    ],
)
def test_a_mistake_is_answered(arguments, expected):
    with pytest.raises(UsageError, match=expected):
        cli.run(["settings", *arguments])
