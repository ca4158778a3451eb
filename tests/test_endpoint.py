"""Where clients find their model: endpoints by worker, and the proxy that adds a key which no client ever has."""

import json
import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from living import family

from agent.endpoint import NO_KEY, ModelService, ProxyAddress, endpoint_for
from agent.hosted import proxied
from agent.proxy import usage_of
from bench.errors import ConfigError
from bench.judge.schemas import token_for
from cluster.job.allocation import Host, Plan, Split, plan_job
from cluster.job.roles import model_service
from cluster.study.settings import JobSettings

KEY = "sk-hosted-key-of-this-test"
LABEL = "x.n0.p1.w2"
EVENTS = b"".join(
    b"data: " + json.dumps(event).encode() + b"\n\n"
    for event in (
        {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
        {"type": "content_block_delta", "delta": {"text": "Hello"}},
        {"type": "message_delta", "usage": {"output_tokens": 5}},
    )
)


class Provider(BaseHTTPRequestHandler):
    """Answers every POST; the path says how."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append((self.path, dict(self.headers), body))
        if "limited" in self.path:
            return self._say(429, b'{"type": "error"}', "application/json", **{"retry-after": "3"})
        if json.loads(body).get("stream"):
            return self._say(200, EVENTS, "text/event-stream")
        return self._say(200, b'{"usage": {"prompt_tokens": 3, "completion_tokens": 2}}', "application/json")

    def _say(self, status, body, kind, **headers):
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def provider():
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        server.asked, server.daemon_threads = [], True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def service_at(server, **changes):
    given = {"urls": (f"http://127.0.0.1:{server.server_port}",), "model": "m", "wires": ("messages",)}
    return ModelService(**{**given, "key_env": "THE_KEY", **changes})


@contextmanager
def proxy_to(server, tmp_path, monkeypatch, **changes):
    monkeypatch.setenv("THE_KEY", KEY)
    with proxied(service_at(server, **changes), tmp_path / "run" / "usage.jsonl") as proxy:
        yield proxy


def ask(proxy, path="/v1/messages", token=None, header="x-api-key", **body):
    token = token_for(proxy.secret, LABEL) if token is None else token
    given = {header: f"Bearer {token}" if header == "authorization" else token, "anthropic-version": "2023-06-01"}
    return httpx.post(proxy.url + path, json={"model": "m", **body}, headers=given, timeout=60)


def usage_lines(tmp_path):
    return [json.loads(line) for line in (tmp_path / "run" / "usage.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("auth", "header", "sent"),
    [("bearer", "Authorization", f"Bearer {KEY}"), ("x-api-key", "x-api-key", KEY)],
    ids=["bearer", "x-api-key"],
)
def test_the_provider_gets_its_key_and_the_client_its_answer(provider, tmp_path, monkeypatch, auth, header, sent):
    with proxy_to(provider, tmp_path, monkeypatch, auth=auth) as proxy:
        answer = ask(proxy, header="authorization")
    assert answer.json() == {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    path, headers, body = provider.asked[0]
    lowered = {name.lower(): value for name, value in headers.items()}
    assert (path, lowered[header.lower()], lowered["anthropic-version"]) == ("/v1/messages", sent, "2023-06-01")
    assert json.loads(body) == {"model": "m"}
    assert token_for(proxy.secret, LABEL) not in str(headers)
    (line,) = usage_lines(tmp_path)
    assert (line["label"], line["status"], line["usage"]["completion_tokens"]) == (LABEL, 200, 2)


def test_a_stream_comes_through_as_it_is_and_its_tokens_are_noted(provider, tmp_path, monkeypatch):
    with proxy_to(provider, tmp_path, monkeypatch) as proxy:
        answer = ask(proxy, stream=True)
    assert (answer.content, answer.headers["content-type"]) == (EVENTS, "text/event-stream")
    assert usage_lines(tmp_path)[0]["usage"] == {"input_tokens": 7, "output_tokens": 5}


def test_a_rate_limit_reaches_the_client_and_is_noted(provider, tmp_path, monkeypatch):
    with proxy_to(provider, tmp_path, monkeypatch) as proxy:
        answer = ask(proxy, "/v1/limited")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
    assert usage_lines(tmp_path)[0]["status"] == 429


@pytest.mark.parametrize("token", ["", "x.n0.p1.w2.0000", "nonsense", KEY], ids=["none", "forged", "odd", "the-key"])
def test_nobody_else_is_served(provider, tmp_path, monkeypatch, token):
    with proxy_to(provider, tmp_path, monkeypatch) as proxy:
        assert ask(proxy, token=token).status_code == 401
    assert provider.asked == []


def test_a_provider_that_is_gone_is_an_error_a_client_understands(provider, tmp_path, monkeypatch):
    with proxy_to(provider, tmp_path, monkeypatch, urls=("http://127.0.0.1:9",)) as proxy:
        answer = ask(proxy)
    assert (answer.status_code, answer.json()["error"]["type"]) == (502, "api_error")
    assert usage_lines(tmp_path)[0]["status"] is None


def test_the_key_is_in_no_environment_no_argument_and_no_file(provider, tmp_path, monkeypatch):
    with proxy_to(provider, tmp_path, monkeypatch) as proxy:
        ask(proxy, stream=True)
        assert "THE_KEY" not in os.environ
        children = family(os.getpid(), recursive=True)
        assert children
        for child in children:
            assert KEY not in " ".join(child.cmdline()) + str(child.environ())
    assert not any(KEY in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_a_key_that_is_not_there_is_named_and_nothing_starts(provider, tmp_path, monkeypatch):
    monkeypatch.delenv("THE_KEY", raising=False)
    with pytest.raises(ConfigError, match="THE_KEY is not set"), proxied(service_at(provider), tmp_path / "u"):
        pass


def test_a_service_without_a_key_has_no_proxy(tmp_path):
    service = ModelService(urls=("http://n1:8000",), model="m", wires=("chat",))
    with proxied(service, tmp_path / "usage.jsonl") as proxy:
        assert proxy is None


def test_replicas_are_dealt_by_the_workers_number():
    service = ModelService(urls=("http://n1:8000", "http://n2:8000"), model="m", wires=("messages",))
    found = [endpoint_for(service, worker, LABEL, None) for worker in range(4)]
    assert [one.base_url[7:9] for one in found] == ["n1", "n2", "n1", "n2"]
    assert {one.key for one in found} == {NO_KEY}


def test_behind_the_proxy_each_episode_has_a_token_of_its_own():
    service = ModelService(urls=("https://api.example.com",), model="m", wires=("messages",), key_env="K")
    proxy = ProxyAddress("http://127.0.0.1:5", b"s" * 32)
    one, other = (endpoint_for(service, 0, label, proxy) for label in ("a.n0.p0.w0", "a.n0.p1.w0"))
    assert one.base_url == other.base_url == proxy.url
    assert one.key != other.key


HOSTED = {
    "inference_nodes": 0,
    "inference_source": "service",
    "inference_service_base_url": "https://api.example.com/v1",
    "inference_service_model": "big",
    "inference_service_key_env": "K",
}
SERVED = {"inference_nodes": 2, "inference_model": "org/m", "inference_served_name": "m"}
GATEWAY = {**HOSTED, "agent_llm_mode": "gateway", "agent_gateway_url": "http://gate:4000/v1"}


@pytest.mark.parametrize(
    ("given", "urls", "model", "wires", "key"),
    [
        pytest.param({"inference_nodes": 0}, None, None, None, None, id="none"),
        pytest.param(HOSTED, ("https://api.example.com",), "big", ("messages",), "K", id="hosted"),
        pytest.param(
            {**HOSTED, "inference_service_api": "openai"},
            *(("https://api.example.com",), "big", ("chat", "responses"), "K"),
            id="hosted-openai",
        ),
        pytest.param(
            SERVED, ("http://a:8000", "http://b:8000"), "m", ("messages", "chat", "responses"), None, id="served"
        ),
        pytest.param(GATEWAY, ("http://gate:4000",), "big", ("messages", "chat", "responses"), "K", id="gateway"),
    ],
)
def test_what_serves_the_model_follows_from_the_settings(given, urls, model, wires, key):
    settings = JobSettings(**{"setup": "s", "kernels": "axpy", **given})
    hosts = [Host(name, (0, 1)) for name in ("a", "b", "c", "d")]
    plan = plan_job(hosts[: settings.nodes], settings)
    assert isinstance(plan, Plan)
    assert Split(len(plan.inference), len(plan.agents), 1).total == settings.nodes
    found = model_service(settings, plan)
    if urls is None:
        assert found is None
    else:
        assert found is not None
        assert (found.urls, found.model, found.wires, found.key_env) == (urls, model, wires, key)


@pytest.mark.parametrize(
    ("answer", "last"),
    [
        (b"", None),
        (b"not json", None),
        (b'{"usage": {"a": 1}}', {"a": 1}),
        (b'data: [DONE]\n\ndata: {"usage": null}\n\n', None),
        (b'data: {"response": {"usage": {"input_tokens": 2}}}\n\n', {"input_tokens": 2}),
        (EVENTS, {"input_tokens": 7, "output_tokens": 5}),
    ],
    ids=["empty", "text", "document", "no-usage", "responses", "messages"],
)
def test_what_an_answer_reports_of_tokens(answer, last):
    assert usage_of(answer) == last
