"""Web search: what is found, read and summed up; what is refused; what never leaves, and what never stays."""

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_rank import GOOD, Rank, rank
from pydantic import ValidationError
from stub_search import KEY, StubSearch
from tool_files import tool_settings

from agent.answers import read_calls
from agent.tools.offered import Tool, offered
from agent.tools.shown import looked_up
from agent.tools.toolbox import Toolbox
from bench.errors import ConfigError
from bench.judge.refusal import Refused
from bench.judge.schemas import JudgeTool, Language, SearchAnswer, SearchRequest, Source, SubmissionMode
from bench.judge.search.addresses import may_serve
from bench.judge.search.config import KEY_VARIABLE, SearchConfig
from bench.judge.search.excerpts import excerpt
from bench.judge.search.pace import Pace
from bench.judge.search.page_text import text_of
from bench.judge.search.provider import SearchFault, results_of
from bench.judge.search.searches import Searches
from bench.judge.search.summing_up import question
from cluster.commands.study_view import refuse_unset_keys
from cluster.job.allocation import Host, plan_job
from cluster.job.roles import judge_tools, search_config
from cluster.study.settings import JobSettings
from tests.scripted_model import ScriptedModel

HERE = ("127.0.0.1/32",)
WITH = "many.n0.p0.w0"
TOOLS = {"many": ["score", "profile", "search"], "dark": ["search"], "plus": []}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def stub() -> Iterator[StubSearch]:
    with StubSearch() as running:
        yield running


def settings(stub: StubSearch, **more: Any) -> dict[str, Any]:
    return {"provider": stub.provider, "networks": HERE, "page_timeout_s": 20, "per_minute": 1000, **more}


def found(stub: StubSearch, *results: str, query: str = "cache blocking", **more: Any) -> SearchAnswer:
    """One search by a judge's own parts, without the judge."""
    stub.results = list(results)

    async def ask() -> str:
        searches = Searches(SearchConfig.model_validate(settings(stub, **more)), KEY, lambda: (0,), lambda _: None)
        try:
            return await searches.answer(None, SearchRequest(query=query))
        finally:
            await searches.close()

    return SearchAnswer.model_validate_json(asyncio.run(ask()))


def failure(stub: StubSearch, **more: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        found(stub, "/good", **more)
    return refused.value


# What is found


def test_pages_are_read_and_the_rest_is_told_by_the_provider(stub: StubSearch) -> None:
    answer = found(stub, "/good", "/moved", "/plain", "/good", pages=3)
    assert (answer.query, answer.answer, answer.model) == ("cache blocking", None, None)
    assert answer.note == "no model sums up here; these are excerpts"
    first, moved, plain, last = answer.sources
    assert first.text.startswith("Cache blocking\n\nTile the loops so that a block fits the L1 cache & is used again.")
    assert "for (int i = 0; i < n; i += 64)\n    work(i);" in first.text
    assert "tile 64" in first.text
    assert not any(word in first.text for word in ("Home", "hidden", "color", "Imprint"))
    assert (moved.text, plain.text) == (first.text, "prefetch distance: 8 lines")
    assert (last.text, last.unread) == ("What the provider says of /good.", "beyond the pages that are read")
    assert [source.unread for source in (first, moved, plain)] == [None] * 3


def test_the_provider_is_asked_as_its_settings_say(stub: StubSearch) -> None:
    found(stub, "/good", query=" loop tiling ", engine="bing", results=5, pages=1)
    assert stub.asked == [{"engine": "bing", "q": "loop tiling", "num": "5", "api_key": KEY}]
    (_, headers) = stub.fetched[0]
    assert headers["Host"] == stub.url().removeprefix("http://")
    assert KEY not in json.dumps(headers)


def test_nothing_found_is_an_answer(stub: StubSearch) -> None:
    answer = found(stub)
    assert (answer.sources, answer.note) == ((), "nothing was found; ask in other words")


UNREAD = {
    "slow": ("/slow", {"page_timeout_s": 2}, "took longer than 2 s"),
    "binary": ("/binary", {}, "is no text"),
    "disguised": ("/disguised", {}, "is no text"),
    "packed": ("/packed", {}, "comes packed"),
    "empty": ("/empty", {}, "holds no text"),
    "missing": ("/missing", {}, "answers 404"),
    "unusual-status": ("/unusual", {}, "answers 520"),
    "redirect-loop": ("/loop", {}, "redirects more than 5 times"),
    "redirect-inward": ("/inward", {}, "is not on the public web"),
    "redirect-elsewhere": ("/elsewhere", {}, "is no http or https address"),
    "loopback": ("/good", {"networks": ()}, "is not on the public web"),
    "by-name": ("http://localhost:1/", {"networks": ()}, "is not on the public web"),
    "metadata-service": ("http://169.254.169.254/latest", {}, "is not on the public web"),
    "password": ("http://me:word@127.0.0.1/", {}, "has a password in its address"),
    "nobody-listens": ("http://127.0.0.1:1/", {}, "cannot be reached"),
    "unknown-host": ("http://nowhere.invalid/", {}, "has an unknown host"),
    "no-address": ("http://[::1/", {}, "cannot be reached"),
}


@pytest.mark.parametrize(("result", "more", "why"), UNREAD.values(), ids=UNREAD)
def test_a_page_that_is_not_read_says_why_and_costs_no_other(
    stub: StubSearch, result: str, more: dict[str, Any], why: str
) -> None:
    bad, good = found(stub, result, "/good", **more).sources
    assert why in (bad.unread or "")
    assert bad.text == f"What the provider says of {result}."
    assert (good.unread is None) == ("networks" not in more)


def test_a_huge_page_is_cut(stub: StubSearch) -> None:
    (source,) = found(stub, "/huge", page_bytes=64 << 10, excerpt_chars=500).sources
    assert source.unread is None
    assert 0 < len(source.text) <= 500


def test_a_page_made_to_keep_a_parser_busy_is_given_up(stub: StubSearch) -> None:
    hostile, good = found(stub, "/hostile", "/good").sources
    assert hostile.unread in ("cannot be read within the limits", "holds no text", None)
    assert good.unread is None


def test_a_sites_web_proxy_fetches_what_nodes_cannot_name(stub: StubSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", stub.url())
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    outside, inside = found(stub, "http://pages.invalid/good", "http://10.0.0.1/good").sources
    assert outside.unread is None and outside.text.startswith("Cache blocking")
    assert inside.unread == "is not on the public web"
    assert [path for path, _ in stub.fetched] == ["http://pages.invalid/good"]


ADDRESSES = {
    "public": ("93.184.216.34", 443, True),
    "public-6": ("2606:2800:220:1::1", 80, True),
    "other-port": ("93.184.216.34", 8800, False),
    "loopback": ("127.0.0.1", 80, False),
    "loopback-6": ("::1", 80, False),
    "any": ("0.0.0.0", 80, False),
    "private": ("10.1.2.3", 443, False),
    "shared": ("100.64.0.1", 443, False),
    "link-local": ("169.254.169.254", 80, False),
    "link-local-6": ("fe80::1%eth0", 80, False),
    "unique-local": ("fd00::1", 80, False),
    "multicast": ("224.0.0.251", 80, False),
    "mapped": ("::ffff:10.0.0.1", 80, False),
    "translated": ("64:ff9b::7f00:1", 80, False),
    "translated-public": ("64:ff9b::5db8:d822", 80, True),
    "six-to-four": ("2002:7f00:1::", 80, False),
    "no-address": ("localhost", 80, False),
}


@pytest.mark.parametrize(("address", "port", "allowed"), ADDRESSES.values(), ids=ADDRESSES)
def test_where_a_page_may_come_from(address: str, port: int, allowed: bool) -> None:
    assert may_serve(address, port, ()) is allowed


def test_a_named_network_may_serve_at_any_port() -> None:
    networks = SearchConfig.model_validate({"networks": ["10.1.0.0/16"]}).networks
    assert may_serve("10.1.2.3", 8080, networks) and not may_serve("10.2.2.3", 80, networks)


# The text of a page


@pytest.mark.parametrize("path", ["/latin", "/meta"])
def test_a_page_is_read_in_its_own_encoding(stub: StubSearch, path: str) -> None:
    assert found(stub, path).sources[0].text == "Größe"


def test_what_is_left_open_hides_no_text() -> None:
    assert text_of(b"<title>x</title><p>one<p>two<li>three", "html", "nonsense") == "one\ntwo\nthree"


@given(st.binary(max_size=300), st.sampled_from(["html", "plain"]), st.text(max_size=8))
def test_any_bytes_have_a_text(page: bytes, kind: str, charset: str) -> None:
    assert isinstance(text_of(page, kind, charset), str)


@given(st.text(alphabet="ab \n", max_size=4000), st.integers(100, 600))
def test_an_excerpt_is_never_longer_than_asked(text: str, limit: int) -> None:
    assert len(excerpt(text, "a b", limit)) <= limit


def test_an_excerpt_is_what_the_query_is_about() -> None:
    paragraphs = ["nothing to see here " * 10, "Tile the loop for the cache.", "more of nothing " * 10, "cache lines"]
    text = excerpt("\n\n".join(paragraphs), "cache loop tile", 100)
    assert text == "Tile the loop for the cache.\n[...]\ncache lines"


# A model sums up


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_the_jobs_model_sums_up(stub: StubSearch, wire: str) -> None:
    with ScriptedModel({}) as model:
        asked = {"url": model.url, "model": "served", "wire": wire, "max_tokens": 77}
        answer = found(stub, "/good", model=asked)
    assert (answer.answer, answer.model, answer.note) == ("A title", "served", None)
    (request,) = model.asked
    assert (request.body["model"], request.body["max_tokens"]) == ("served", 77)
    assert "Question: cache blocking" in request.prompt and "[1] About /good" in request.prompt
    assert "fits the L1 cache" in request.prompt


def test_the_sources_of_a_summary_are_numbered() -> None:
    sources = [
        Source(title="One", url="http://one", text="first"),
        Source(title="Two", url="http://two", text="second"),
    ]
    assert question("why", sources) == "Question: why\n\n[1] One\nhttp://one\nfirst\n\n[2] Two\nhttp://two\nsecond"


def test_without_its_model_a_search_still_answers(stub: StubSearch) -> None:
    gone = {"url": "http://127.0.0.1:1", "model": "served"}
    wrong = {"url": stub.url(), "model": "served"}
    assert (
        found(stub, "/good", model=gone).note == "the model served does not answer (ConnectError); these are excerpts"
    )
    answer = found(stub, "/good", model=wrong)
    assert answer.answer is None and answer.sources[0].unread is None
    assert answer.note == "the model served answers 501; these are excerpts"


# What a provider does wrong


def test_a_provider_that_fails_is_named(stub: StubSearch) -> None:
    faults = {
        (401, f'{{"error": "Invalid key {KEY}"}}'.encode()): "refuses the key",
        (429, b"{}"): "takes no more searches of this account now",
        (520, b"?"): "answers 520",
        (200, b"<html>"): "answers something that is not JSON",
        (200, b"[]"): "answers something that is no JSON object",
        (200, b'{"search_metadata": {"status": "Error"}, "error": "x"}'): "reports that the search failed",
    }
    for stub.answers, why in faults.items():
        refused = failure(stub)
        assert (refused.status, refused.code) == (504, "search_failed")
        assert f"the search provider {why}; go on without" in refused.message
        assert KEY not in refused.message


def test_a_provider_that_is_slow_or_gone_is_given_up(stub: StubSearch) -> None:
    assert "does not answer (ConnectError)" in failure(stub, provider="http://127.0.0.1:1/search.json").message
    stub.delay_s = 30
    began = time.monotonic()
    refused = failure(stub, timeout_s=0.3)
    assert refused.code == "search_failed" and time.monotonic() - began < 20


def test_results_that_are_none_are_passed_over() -> None:
    results = [
        {"title": "a", "link": "javascript:x"},
        {"title": "b"},
        "c",
        {"title": "\ud800 d\n", "link": "https://d"},
    ]
    (one,) = results_of(json.dumps({"organic_results": results}).encode())
    assert (one.title, one.url, one.snippet) == ("? d", "https://d", "")
    with pytest.raises(SearchFault):
        next(results_of(b"no"))


@pytest.mark.parametrize(
    "url", ["http://example.org/search", "https://a:b@example.org/", "https://example.org/?key=1", "example.org"]
)
def test_a_key_is_sent_nowhere_that_others_read(url: str) -> None:
    with pytest.raises(ValidationError, match="provider"):
        SearchConfig.model_validate({"provider": url})


def test_an_episode_searches_so_often() -> None:
    now = 0.0
    pace = Pace(2, 3, lambda: now)
    pace.take("a")
    now = 10.0
    pace.take("a")
    pace.take("b")
    with pytest.raises(Refused, match="at most 2 searches a minute; send this one again in 50 s") as refused:
        pace.take("a")
    assert (refused.value.status, refused.value.code) == (429, "search_pace")
    now = 60.0
    pace.take("a")
    now = 1000.0
    with pytest.raises(Refused, match="its 3 searches; go on without") as refused:
        pace.take("a")
    assert (refused.value.status, refused.value.code) == (403, "searches_spent")


# The judge


@pytest.fixture(scope="module")
def provider() -> Iterator[StubSearch]:
    with StubSearch(results=["/good", "/binary"]) as running:
        yield running


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory, provider: StubSearch) -> Iterator[Rank]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(KEY_VARIABLE, KEY)
        patched.setenv("NO_PROXY", "127.0.0.1")
        folder = tmp_path_factory.mktemp("search")
        with rank(folder, closed=True, tools=TOOLS, search=settings(provider, per_episode=3)) as running:
            yield running


def ask(running: Rank, label: str | None = WITH, query: Any = "cache blocking") -> Any:
    """A search carries no rank."""
    return running.post("/search", json.dumps({"query": query}).encode(), label)


def test_a_search_is_answered_counted_logged_and_not_recorded(closed: Rank) -> None:
    answer = ask(closed)
    assert answer.status_code == 200
    good, binary = SearchAnswer.model_validate_json(answer.content).sources
    assert "Tile the loops" in good.text and binary.unread == "is no text"
    assert 'kcourt_searches_total{result="answered"}' in closed.get("/metrics").text
    lines = (closed.folder / "logs" / "upstream-0.log").read_text().splitlines()
    (line,) = [found for found in map(json.loads, lines) if found.get("event") == "searched"]
    assert (line["label"], line["query"], line["sources"], line["read"]) == (WITH, "cache blocking", 2, 1)
    with contextlib.closing(sqlite3.connect(closed.shard)) as shard:
        assert shard.execute("SELECT count(*) FROM grades").fetchone() == (0,)


REFUSED = {
    "token": (None, "q", 401, "token_missing", "token"),
    "treatment": ("solo.n0.p0.w0", "q", 403, "tool_withheld", "treatment 'none' of setup 'solo' has no search"),
    "driver": ("driver", "q", 403, "driver_only_submits", "/submit only"),
    "empty": (WITH, "  ", 400, "bad_request", "field 'query'"),
    "long": (WITH, "x" * 501, 400, "bad_request", "at most 500"),
    "number": (WITH, 7, 400, "bad_request", "field 'query'"),
}


@pytest.mark.parametrize(("label", "query", "status", "code", "says"), REFUSED.values(), ids=REFUSED)
def test_a_search_that_is_refused(
    closed: Rank, label: str | None, query: Any, status: int, code: str, says: str
) -> None:
    answer = ask(closed, label, query)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert says in error["message"]


def test_a_query_comes_alone(closed: Rank) -> None:
    answer = closed.post("/search", json.dumps({"query": "q", "rank": 0}).encode(), WITH)
    assert answer.json()["error"]["message"] == "unknown field 'rank'; the fields are query"


def test_a_blind_episode_may_search(closed: Rank) -> None:
    assert ask(closed, "dark.n0.p0.w0").status_code == 200


@pytest.mark.parametrize("route", ["score", "profile"])
def test_a_judge_withholds_what_a_treatment_does(closed: Rank, route: str) -> None:
    body = GOOD | ({"tool": "perf"} if route == "profile" else {})
    error = closed.post(f"/{route}", body, "plus.n0.p0.w0").json()["error"]
    assert (error["code"], error["message"]) == (
        *("tool_withheld", f"treatment 'none' of setup 'plus' has no {route}; go on without it"),
    )
    assert closed.post(f"/{route}", body, "many.n0.p0.w0").status_code == 200


def test_the_agents_tool_searches_within_its_episodes_limit(closed: Rank, provider: StubSearch, tmp_path: Path) -> None:
    tools = offered(SubmissionMode.MULTI, Language.C, on=[Tool.SEARCH])
    url = f"http://127.0.0.1:{closed.port}"
    told = tool_settings(tmp_path, [url], "many.n0.p7.w0", mode="multi", tools=tools)
    box = Toolbox(told)
    assert [tool.schema["required"] for tool in box.listed() if tool.name == "search"] == [["query"]]
    asked = len(provider.asked)
    reply = box.call("search", {"query": "cache blocking"})
    assert not reply.refused
    assert reply.body["note"] == "no model sums up here; these are excerpts"
    assert [source["title"] for source in reply.body["sources"]] == ["About /good", "About /binary"]
    assert box.call("search", {"query": ""}).body["error"]["code"] == "bad_arguments"
    for _ in range(2):
        assert not box.call("search", {"query": "cache"}).refused
    spent = box.call("search", {"query": "cache"})
    assert spent.refused and spent.body["error"]["code"] == "searches_spent"
    assert len(provider.asked) == asked + 3
    calls = read_calls(told.answers_file)
    assert [(call.route, call.search is not None) for call in calls] == [*[("search", True)] * 3, ("search", False)]
    assert KEY not in told.answers_file.read_text()


def test_a_summary_is_shown_with_its_sources_alone() -> None:
    source = Source(title="One", url="http://one", text="long")
    answer = SearchAnswer(query="q", answer="so [1]", model="m", sources=(source,))
    assert looked_up(answer) == {"answer": "so [1]", "sources": ["[1] One: http://one"]}


def test_the_key_stays_in_the_judge(closed: Rank, provider: StubSearch) -> None:
    provider.answers = (403, f"the key {KEY} is not good".encode())
    try:
        refused = ask(closed, "many.n0.p8.w0")
    finally:
        provider.answers = None
    assert refused.status_code == 504 and KEY not in refused.text
    provider.results = [f"/good?key={KEY}"]
    try:
        assert KEY not in ask(closed, "many.n0.p8.w0").text
    finally:
        provider.results = ["/good", "/binary"]
    files = [path for path in closed.folder.rglob("*") if path.is_file()]
    assert files and [path for path in files if KEY.encode() in path.read_bytes()] == []
    worker = closed.judge().children()[0]
    assert KEY_VARIABLE not in worker.environ()
    assert closed.judge().environ()[KEY_VARIABLE] == KEY


def test_without_a_key_there_is_no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with rank(tmp_path, closed=True, tools=TOOLS) as running:
        error = ask(running).json()["error"]
        assert (error["code"], ask(running).status_code) == ("not_provisioned", 503)
        assert "go on without it" in error["message"]
        tools = offered(SubmissionMode.MULTI, Language.C, on=[Tool.SEARCH])
        url = f"http://127.0.0.1:{running.port}"
        box = Toolbox(tool_settings(tmp_path / "told", [url], WITH, mode="multi", tools=tools))
        assert box.call("search", {"query": "x"}).body["error"]["code"] == "not_provisioned"


# The job


def job(**given: Any) -> JobSettings:
    return JobSettings(**{"setup": "s", "kernels": "axpy", "harness": "claude_code", **given})


def search_of(rank: int = 0, **given: Any) -> SearchConfig:
    settings = job(**given)
    hosts = [Host(f"n{number}", (0, 1)) for number in range(settings.nodes)]
    return search_config(settings, plan_job(hosts, settings), rank)


def test_the_defaults_of_the_keys_are_the_judges_own() -> None:
    assert search_of(inference_nodes=0) == SearchConfig()


SERVED = {"inference_nodes": 2, "inference_model": "org/m"}
GATEWAY = {"inference_nodes": 0, "agent_llm_mode": "gateway", "agent_gateway_url": "http://gate:4000/v1"}


@pytest.mark.parametrize(
    ("given", "rank", "expected"),
    [
        pytest.param(SERVED, 1, "http://n1:8000", id="engine"),
        pytest.param(SERVED | {"search_summary": False}, 0, None, id="off"),
        pytest.param(GATEWAY, 3, "http://gate:4000", id="gateway"),
        pytest.param(GATEWAY | {"inference_service_key_env": "A_KEY"}, 0, None, id="gateway-with-a-key"),
    ],
)
def test_who_sums_up_for_a_job(given: dict[str, Any], rank: int, expected: str | None) -> None:
    model = search_of(rank, **given).model
    assert (model and model.url) == expected


def test_judges_know_the_tools_of_their_setups() -> None:
    def told(**given: Any) -> tuple[JudgeTool, ...]:
        return judge_tools(SimpleNamespace(settings=job(**given)))  # type: ignore[arg-type]

    assert told() == (JudgeTool.SCORE,)
    assert told(agent_tools_on="search,profile") == (JudgeTool.SCORE, JudgeTool.PROFILE, JudgeTool.SEARCH)
    assert told(agent_tools_off="score") == ()


def test_a_study_with_search_is_not_submitted_without_its_key() -> None:
    rendered = [SimpleNamespace(name="s", settings=job(agent_tools_on="profile,search"))]
    with pytest.raises(ConfigError, match=f"'s': {KEY_VARIABLE} is not set, and holds the key of the tool 'search'"):
        refuse_unset_keys(rendered, {})  # type: ignore[arg-type]
    refuse_unset_keys(rendered, {KEY_VARIABLE: KEY})  # type: ignore[arg-type]
