"""Env files: what is read back is what was written; a mistake is named with file, line and nearest key."""

import string
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config import AgentConfig
from bench.config import JudgeConfig
from bench.errors import ConfigError
from bench.judge.schemas import Language, Preset, SubmissionMode
from cluster.job.launchers.local import LocalLauncher
from cluster.job.life import make_plan
from cluster.study import wave
from cluster.study.env_files import read_env, render_env
from cluster.study.settings import JobSettings, read_settings, reference_rows

MINIMAL = "SETUP=gold\nHARNESS=scripted\nAGENT_SCRIPT=plan.json\nKERNELS=axpy\n"

SERVICE = """INFERENCE_SOURCE=service
INFERENCE_NODES=0
INFERENCE_SERVICE_BASE_URL=http://models.example/v1
INFERENCE_SERVICE_MODEL=m
INFERENCE_SERVICE_KEY_ENV=A_KEY
"""


def env_file(tmp_path, text):
    path = tmp_path / ".env.test"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_are_those_of_the_cluster_page(tmp_path):
    settings = read_settings(env_file(tmp_path, MINIMAL))
    assert (settings.inference_nodes, settings.agent_nodes, settings.judge_nodes) == (2, 1, 1)
    assert (settings.agents_per_node, settings.agent_timeout_seconds) == (4, 72000)
    assert (settings.agent_max_tokens, settings.agent_crash_attempts) == (120_000_000, 3)
    assert settings.agent_submission_mode is SubmissionMode.SINGLE
    assert (settings.step_stop_grace_seconds, settings.judge_drain_reserve_seconds) == (120, 900)
    assert settings.agent_stall_abort_seconds == 3600


def test_files_are_relative_to_the_env_file(tmp_path):
    settings = read_settings(env_file(tmp_path, MINIMAL + "PROBLEMS_FILE=sub/problems.jsonl\n"))
    assert settings.agent_script == tmp_path / "plan.json"
    assert settings.problems_file == tmp_path / "sub" / "problems.jsonl"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("JOB_WALL_SECONDS=1021\n", id="a-second-for-agents"),
        pytest.param("AGENT_LLM_MODE=gateway\nAGENT_GATEWAY_URL=http://gate/v1\n", id="gateway"),
    ],
)
def test_what_just_fits_is_taken(tmp_path, text):
    assert read_settings(env_file(tmp_path, MINIMAL + text))


def test_overrides_win(tmp_path):
    path = env_file(tmp_path, MINIMAL + "SANDBOX_ALLOW=full\n")
    assert read_settings(path, {"SANDBOX_ALLOW": "limits"}).sandbox_allow == "limits"


def test_the_setup_record_carries_the_setup_keys(tmp_path):
    text = MINIMAL + "PRESET=S\nLANGUAGE=cpp\nAGENT_SUBMISSION_MODE=multi\nMODEL='a b'\nTEMPERATURE=0.5\n"
    record = read_settings(env_file(tmp_path, text)).record
    assert (record.setup, record.preset, record.language) == ("gold", Preset.S, Language.CPP)
    assert (record.submission_mode, record.model, record.temperature) == (SubmissionMode.MULTI, "a b", 0.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            MINIMAL + "\nFINAL_PROTOCOL=mw4x5-aa\n", [":6: ", "no final protocol; those are mw4x5"], id="final"
        ),
        pytest.param(MINIMAL + "\nPREVIEW_PROTOCOL=mw4x5\n", [":6: ", "no preview protocol"], id="preview"),
        pytest.param(MINIMAL + "\n# note\nJUDGE_PROT=8800\n", [":7: ", "JUDGE_PROT", "JUDGE_PORT"], id="unknown"),
        pytest.param(MINIMAL + "judge_port=8800\n", [":5: ", "judge_port", "JUDGE_PORT"], id="small-letters"),
        pytest.param(MINIMAL + "JUDGE_PORT=many\n", [":5: JUDGE_PORT", "'many'"], id="type"),
        pytest.param(MINIMAL + "JUDGE_PORT=70000\n", [":5: JUDGE_PORT", "65534"], id="range"),
        pytest.param(MINIMAL + "PRESET=XXL\n", [":5: PRESET", "'XL'"], id="word"),
        pytest.param("HARNESS=claude_code\nKERNELS=axpy\n", ["SETUP", "required"], id="missing"),
        pytest.param("SETUP=gold\n", ["neither PROBLEMS_FILE nor KERNELS"], id="nothing-to-do"),
        pytest.param("SETUP=gold\nKERNELS=axpy\nHARNESS=scripted\n", ["AGENT_SCRIPT"], id="no-script"),
        pytest.param(MINIMAL + "SETUP=again\n", [":5: SETUP", "line 1"], id="twice"),
        pytest.param(MINIMAL + "JUST A LINE\n", [":5: ", "JUST A LINE"], id="no-assignment"),
        pytest.param(MINIMAL + "MODEL='open\n", [":5: "], id="open-quote"),
        pytest.param(MINIMAL + "JOB_WALL_SECONDS=60\n", ["JOB_WALL_SECONDS=60", "1020"], id="no-time"),
        pytest.param(MINIMAL + "JOB_WALL_SECONDS=1020\n", ["leaves agents no time"], id="just-no-time"),
        pytest.param(MINIMAL + "AGENT_SCRIPT_RULE=gold\n", ["AGENT_SCRIPT_RULE"], id="plan-and-rule"),
        pytest.param(
            "SETUP=s\nKERNELS=axpy\nHARNESS=codex\nAGENT_SCRIPT_RULE=gold\n", ["not codex"], id="rule-of-no-script"
        ),
        pytest.param(MINIMAL + "AGENT_LLM_MODE=gateway\n", ["AGENT_GATEWAY_URL"], id="gateway-without-url"),
        pytest.param(MINIMAL + "AGENT_GATEWAY_URL=http://gate/v1\n", ["AGENT_LLM_MODE"], id="url-without-gateway"),
        pytest.param("SETUP='a b'\nKERNELS=axpy\n", [":1: SETUP"], id="setup-name"),
        pytest.param(MINIMAL + "SERPAPI_API_KEY=hidden\n", [":5: SERPAPI_API_KEY", "export it"], id="secret"),
        pytest.param(MINIMAL + SERVICE.replace("A_KEY", "sk-hidden"), [":9: ", "NAME of the variable"], id="no-name"),
        pytest.param(
            MINIMAL + SERVICE.replace("//", "//me:hidden@"), [":7: ", "holds no password"], id="password-in-a-url"
        ),
        pytest.param(MINIMAL + SERVICE.replace("/v1", ""), [":7: ", "ends in /v1"], id="url-without-version"),
        pytest.param(
            MINIMAL + SERVICE.replace("NODES=0", "NODES=1"), ["INFERENCE_NODES=1", "set INFERENCE_NODES=0"], id="both"
        ),
        pytest.param(MINIMAL + "INFERENCE_SOURCE=service\n", ["BASE_URL", "_MODEL", "_KEY_ENV"], id="half-a-service"),
        pytest.param(MINIMAL + "AGENT_NODES=0\n", ["AGENT_NODES=0 and JUDGE_NODES=1"], id="no-agents"),
        pytest.param(MINIMAL + "TEMPERATURE=2.5\n", [":5: TEMPERATURE", "'2.5'"], id="hot"),
        pytest.param("SETUP=s\nAGENT_NODES=0\nJUDGE_NODES=0\nINFERENCE_NODES=0\n", ["all 0"], id="no-nodes-at-all"),
    ],
)
def test_a_mistake_is_named(tmp_path, text, expected):
    path = env_file(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_settings(path)
    assert str(path) in str(caught.value)
    for part in expected:
        assert part in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        read_settings(tmp_path / "nowhere")


def test_a_secret_is_not_taken_from_the_command_line_either(tmp_path):
    with pytest.raises(ConfigError, match="SERPAPI_API_KEY: a secret") as caught:
        read_settings(env_file(tmp_path, MINIMAL), {"SERPAPI_API_KEY": "hidden"})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "trains"),
    [
        pytest.param("", False, id="served"),
        pytest.param(SERVICE, False, id="standard"),
        pytest.param(SERVICE + "INFERENCE_SERVICE_TIER=contributor\n", True, id="contributor"),
    ],
)
def test_a_provider_that_trains_on_the_traffic_is_known(tmp_path, text, trains):
    assert read_settings(env_file(tmp_path, MINIMAL + text)).trains_on_traffic is trains


def test_a_job_that_only_serves_needs_no_problems(tmp_path):
    settings = read_settings(env_file(tmp_path, "SETUP=s\nAGENT_NODES=0\nJUDGE_NODES=0\n"))
    assert settings.serves_only and settings.nodes == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"container_runtime": "ce"}, "CONTAINER_RUNTIME=ce", id="runtime"),
        pytest.param({"device": "hip"}, "DEVICE=hip: the job has no GPU on 127.0.0.1", id="no-gpu"),
        pytest.param(
            {"inference_nodes": 1, "agent_nodes": 0, "judge_nodes": 0}, "only serves a model", id="serve-only"
        ),
        pytest.param({"arena_power": 2.0}, "ARENA_POWER=2.0: nothing uses", id="arena"),
    ],
)
def test_what_no_job_can_do_yet_is_refused(given, expected):
    settings = JobSettings(**{"setup": "s", "kernels": "axpy", "inference_nodes": 0, **given})
    with pytest.raises(ConfigError, match=expected):
        make_plan(settings, LocalLauncher(settings.nodes))


@pytest.mark.parametrize(("spoken", "fits"), [("messages", True), ("none", True), ("chat", False)])
def test_a_harness_speaks_what_its_service_speaks(tmp_path, monkeypatch, spoken, fits):
    monkeypatch.setattr(wave, "load_harness", lambda name, options: SimpleNamespace(wire_format=spoken))
    env = env_file(tmp_path, MINIMAL.replace("scripted", "other") + SERVICE)
    if fits:
        assert wave.read_wave([env]).settings.inference_source == "service"
    else:
        with pytest.raises(ConfigError, match="speaks chat, and INFERENCE_SERVICE_API=anthropic is messages"):
            wave.read_wave([env])


# What a role is told: its field, and the KEY that sets it.
SET_BY = {
    JudgeConfig: {
        "input_mode": "JUDGE_INPUT_MODE",
        "final_protocol": "FINAL_PROTOCOL",
        "preview_protocol": "PREVIEW_PROTOCOL",
        "failed_submit_step_s": "JUDGE_FAILED_SUBMIT_STEP_SECONDS",
        "queue_limit": "JUDGE_QUEUE_LIMIT",
        "max_body_bytes": "JUDGE_MAX_BODY_BYTES",
        "allow_sandbox": "SANDBOX_ALLOW",
        "device": "DEVICE",
    },
    AgentConfig: {
        "workers": "AGENTS_PER_NODE",
        "timeout_s": "AGENT_TIMEOUT_SECONDS",
        "max_tokens": "AGENT_MAX_TOKENS",
        "budget_mode": "AGENT_BUDGET_MODE",
        "max_iterations": "AGENT_MAX_ITERATIONS",
        "crash_attempts": "AGENT_CRASH_ATTEMPTS",
        "ready_timeout_s": "AGENT_READY_SECONDS",
        "idle_timeout_s": "AGENT_IDLE_SECONDS",
        "exit_grace_s": "AGENT_EXIT_GRACE_SECONDS",
        "failover": "AGENT_FAILOVER",
    },
}


@pytest.mark.parametrize(
    ("config", "field", "key"), [(config, *pair) for config, pairs in SET_BY.items() for pair in pairs.items()]
)
def test_a_key_has_the_default_of_the_role_that_reads_it(config, field, key):
    assert JobSettings.model_fields[key.lower()].default == config.model_fields[field].default


def test_nothing_is_expanded_or_run(tmp_path):
    marker = tmp_path / "marker"
    path = env_file(tmp_path, f'A="$HOME"\nB=${{HOME}}\nC=$(touch {marker})\n')
    values, _ = read_env(path)
    assert values == {"A": "$HOME", "B": "${HOME}", "C": f"$(touch {marker})"}
    assert not marker.exists()


CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " éßŁ漢😀"


@given(
    st.dictionaries(
        st.text(string.ascii_uppercase + "_", min_size=1),
        st.text(CHARACTERS) | st.text(CHARACTERS[-40:], max_size=8),
        max_size=6,
    )
)
def test_values_survive_the_env_file(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("env") / ".env"
    path.write_text(render_env(values), encoding="utf-8")
    assert read_env(path)[0] == values


@pytest.mark.parametrize("text", ["a\nb", "a\0", "a\rb"], ids=["newline", "nul", "return"])
def test_a_control_character_is_refused(text):
    with pytest.raises(ConfigError, match="MODEL"):
        render_env({"MODEL": text})


def test_settings_survive_the_env_file(tmp_path):
    settings = read_settings(env_file(tmp_path, MINIMAL + "AGENT_FAILOVER=false\nJUDGE_PORT=9000\n"))
    again = tmp_path / ".env.again"
    again.write_text(render_env(settings.values), encoding="utf-8")
    assert read_settings(again) == settings


def test_every_key_has_a_row_in_the_reference():
    rows = {row.key: row for row in reference_rows()}
    assert set(rows) == {name.upper() for name in JobSettings.model_fields}
    assert all(row.meaning.endswith(".") and row.type for row in rows.values())
    assert (rows["AGENT_TIMEOUT_SECONDS"].unit, rows["AGENT_TIMEOUT_SECONDS"].default) == ("s", "72000")
    assert rows["SETUP"].default == "required"
    assert rows["PRESET"].type == "one of S, M, L, XL"
