"""Engines that serve a model: their command lines, whether they serve, and what is written down of them."""

import contextlib
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import fake_engine
import httpx
import pytest
from goldens import check_golden
from ports import free_port

from bench.errors import ConfigError
from cluster.job.allocation import Host
from cluster.job.health import EngineHealth, ServiceState
from cluster.job.inference import Engine, engine_env, engines_of, inference_record
from cluster.job.inference.engines import ask, version_of
from cluster.study.settings import JobSettings

PATIENCE_S = 60
EVERYTHING = {
    "inference_served_name": "coder",
    "inference_checkpoint": "8f2a1c0",
    "inference_tensor_parallel": 2,
    "inference_context_tokens": 131072,
    "inference_args": "--enable-auto-tool-choice --chat-template '/models/my template.jinja'",
    "inference_port": 8123,
}
# What the fake engine takes.
FAKE = {"inference_served_name": "coder", "inference_tensor_parallel": 2, "inference_args": "--dtype auto"}


def settings(**values) -> JobSettings:
    return JobSettings(**{"setup": "s", "kernels": "axpy", "inference_model": "org/Coder-30B"} | values)


def node(name: str, address: str = "") -> Host:
    return Host(name, (0, 1, 2, 3), address=address)


def argv(**values) -> tuple[str, ...]:
    return engines_of(settings(**values), [node("n1", "10.0.0.1")])[0].argv


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("values", [pytest.param({}, id="least"), pytest.param(EVERYTHING, id="most")])
def test_the_command_line(engine, values, request):
    case = request.node.callspec.id.partition("-")[0]
    lines = re.sub(r" (--)", r"\n\1", shlex.join(argv(inference_engine=engine, **values)))
    check_golden(f"engine-{engine}-{case}.txt", lines + "\n")


@pytest.mark.parametrize(
    ("values", "gpus"),
    [
        pytest.param({"gpus_per_node": 4}, "4", id="of-the-node"),
        pytest.param({"gpus_per_node": 4, "inference_tensor_parallel": 2}, "2", id="said"),
        pytest.param({"gpus_per_node": 0}, None, id="none-there"),
        pytest.param({}, None, id="not-known"),
    ],
)
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_gpus_that_share_a_layer(engine, values, gpus):
    words = argv(inference_engine=engine, **values)
    said = dict(pairwise(words)).get("--tensor-parallel-size")
    assert said == gpus


@pytest.mark.parametrize(
    ("model", "revision"),
    [
        pytest.param("org/Coder-30B", "v2", id="of-a-hub"),
        pytest.param("/models/coder", None, id="a-folder"),
        pytest.param("./coder", None, id="a-folder-here"),
    ],
)
def test_a_revision_is_asked_of_a_hub_alone(model, revision):
    words = argv(inference_model=model, inference_checkpoint="v2")
    assert dict(pairwise(words)).get("--revision") == revision


def test_one_replica_a_node():
    engines = engines_of(settings(), [node("n1", "10.0.0.1"), node("n2")])
    assert [engine.url for engine in engines] == ["http://10.0.0.1:8000", "http://n2:8000"]
    assert [engine.replica for engine in engines] == [0, 1]
    assert {engine.served_name for engine in engines} == {"org/Coder-30B"}


def test_replicas_on_one_machine_have_ports_of_their_own():
    engines = engines_of(settings(inference_port=9000), [node("n1"), node("n2"), node("n1")])
    assert [(engine.host.name, engine.port) for engine in engines] == [("n1", 9000), ("n2", 9000), ("n1", 9001)]
    assert ["9000" in engine.argv for engine in engines] == [True, True, False]


def test_a_job_without_inference_nodes_has_no_engine():
    assert engines_of(settings(inference_model="", inference_nodes=0), []) == ()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"inference_model": ""}, "set INFERENCE_MODEL", id="no-model"),
        pytest.param({"inference_mode": "pipeline"}, "INFERENCE_MODE=pipeline over 2 nodes", id="pipeline"),
        pytest.param({"inference_port": 65535}, "INFERENCE_PORT=65535", id="port"),
        pytest.param({"inference_args": "--a 'b"}, "close every quote", id="quote"),
        pytest.param({"inference_args": "--port 9"}, "INFERENCE_PORT decides", id="repeated"),
        pytest.param({"inference_args": "--max_model_len=9"}, "INFERENCE_CONTEXT_TOKENS decides", id="other-spelling"),
        pytest.param({"inference_args": "--api-key=k3y"}, "holds --api-key", id="secret"),
    ],
)
def test_what_cannot_be_started_is_refused_with_a_sentence(values, said):
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        engines_of(settings(**values), [node("n1"), node("n2")])
    assert "k3y" not in str(caught.value)


def test_a_pipeline_of_one_node_is_a_replica():
    assert argv(inference_mode="pipeline") == argv()


def test_an_engine_is_told_where_weights_and_kernels_are_kept():
    assert engine_env(settings()) == {}
    assert engine_env(settings(hf_home="/store/hf", jit_cache_dir="/store/jit")) == {
        "HF_HOME": "/store/hf",
        "TRITON_CACHE_DIR": "/store/jit/triton",
        "TORCHINDUCTOR_CACHE_DIR": "/store/jit/inductor",
        "VLLM_CACHE_ROOT": "/store/jit/vllm",
    }


class Served:
    """An engine as a process, asked as a job would; `folder` is where it is told what to do."""

    def __init__(self, folder: Path, engine: Engine, http: httpx.Client, process: "subprocess.Popen[bytes]") -> None:
        self.folder, self.engine, self.http, self.process = folder, engine, http, process

    def ask(self, ready: bool = False) -> EngineHealth:
        return ask(self.engine, self.http, ready)

    def becomes(self, state: ServiceState, ready: bool = False) -> EngineHealth:
        """Ask until the engine is in a state."""
        deadline = time.monotonic() + PATIENCE_S
        while (health := self.ask(ready)).state is not state:
            assert time.monotonic() < deadline, health
            time.sleep(0.02)
        return health


@contextlib.contextmanager
def serve(folder: Path, **wishes) -> Iterator[Served]:
    """A fake vLLM on loopback that was started as a job starts one, by its name."""
    fake_engine.install(folder)
    fake_engine.behave(folder, **wishes)
    engine = engines_of(settings(inference_port=free_port(), **FAKE), [node("n1", "127.0.0.1")])[0]
    env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    with (folder / "engine.log").open("wb") as log:
        process = subprocess.Popen(engine.argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        with httpx.Client(timeout=3, trust_env=False) as http:
            yield Served(folder, engine, http, process)
    finally:
        process.kill()
        process.wait()


def test_an_engine_starts_and_serves(tmp_path):
    with serve(tmp_path, starts_after_s=3600) as served:
        health = served.ask()
        assert (health.state, health.replica) == (ServiceState.STARTING, 0)
        assert served.engine.url in health.reason
        fake_engine.behave(tmp_path)
        assert served.becomes(ServiceState.READY).reason == ""
        asked = {"model": "coder", "messages": [{"role": "user", "content": "How are you?"}]}
        answer = served.http.post(f"{served.engine.url}/v1/chat/completions", json=asked).json()
        assert answer["choices"][0]["message"]["content"] == "Fine."
        metrics = served.http.get(f"{served.engine.url}/metrics").text
        assert 'vllm:generation_tokens_total{model_name="coder"} 1\n' in metrics


def test_another_served_name_is_a_lost_engine(tmp_path):
    with serve(tmp_path, serves="somebody-elses") as served:
        reason = served.becomes(ServiceState.LOST).reason
    assert "serves 'somebody-elses'" in reason
    assert "clients ask for 'coder'" in reason
    assert "INFERENCE_PORT" in reason


def test_an_engine_that_was_ready_and_died_is_lost(tmp_path):
    with serve(tmp_path) as served:
        served.becomes(ServiceState.READY)
        fake_engine.behave(tmp_path, dies_after_s=0)
        assert served.process.wait(PATIENCE_S) == fake_engine.EXIT_CODE
        assert served.ask(ready=True).state is ServiceState.LOST
        assert f"nobody listens at {served.engine.url}" in served.ask(ready=True).reason
        assert served.ask().state is ServiceState.STARTING
    assert "EngineDeadError" in (tmp_path / "engine.log").read_text()


def test_a_network_that_fails_says_nothing_of_an_engine_that_was_ready():
    def no_name(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Name or service not known")

    engine = engines_of(settings(), [node("n1")])[0]
    with httpx.Client(transport=httpx.MockTransport(no_name)) as http:
        assert ask(engine, http, ready=True).state is ServiceState.STARTING


def test_an_engine_that_is_silent_may_be_busy(tmp_path):
    with serve(tmp_path) as served, httpx.Client(timeout=0.5, trust_env=False) as hasty:
        served.becomes(ServiceState.READY)
        fake_engine.behave(tmp_path, freezes_after_s=0)
        assert served.http.get(f"{served.engine.url}/health").status_code == 200
        health = ask(served.engine, hasty, ready=True)
        assert health.state is ServiceState.STARTING
        assert f"{served.engine.url} gives no answer" in health.reason
        fake_engine.behave(tmp_path)
        served.becomes(ServiceState.READY, ready=True)


def test_a_server_that_is_no_engine_is_named(tmp_path):
    def no_engine(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="hello")

    engine = engines_of(settings(), [node("n1", "10.0.0.1")])[0]
    with httpx.Client(transport=httpx.MockTransport(no_engine)) as http:
        assert ask(engine, http) == EngineHealth(
            0, ServiceState.LOST, "http://10.0.0.1:8000/v1/models lists no models; set INFERENCE_PORT to a free port"
        )
        assert version_of(engine, http) is None


def test_an_engine_that_answers_unavailable_is_starting():
    engine = engines_of(settings(inference_engine="sglang"), [node("n1", "10.0.0.1")])[0]
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(503))) as http:
        health = ask(engine, http)
    assert health == EngineHealth(0, ServiceState.STARTING, "http://10.0.0.1:8000/health answers 503")


def test_what_served_the_model_is_written_down(tmp_path):
    with serve(tmp_path) as served:
        served.becomes(ServiceState.READY)
        version = version_of(served.engine, served.http)
    chosen = settings(**EVERYTHING, hf_home="/store/hf")
    engines = engines_of(chosen, [node("n1", "10.0.0.1"), node("n2", "10.0.0.2")])
    record = inference_record(chosen, engines, version, "2026-01-01T00:00:00.000+00:00")
    assert [one.pop("argv") for one in record["engines"]] == [list(engine.argv) for engine in engines]
    assert record == {
        "source": "served",
        "engine": "vllm",
        "version": fake_engine.VERSION,
        "model": "org/Coder-30B",
        "checkpoint": "8f2a1c0",
        "served_name": "coder",
        "started_at": "2026-01-01T00:00:00.000+00:00",
        "nodes": ["n1", "n2"],
        "engines": [
            {"replica": 0, "url": "http://10.0.0.1:8123"},
            {"replica": 1, "url": "http://10.0.0.2:8123"},
        ],
    }


def test_the_version_is_unknown_where_the_engine_does_not_say_it():
    engine = engines_of(settings(), [node("n1", "127.0.0.1")])[0]
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(404, json={"detail": "?"}))) as http:
        assert version_of(engine, http) is None
