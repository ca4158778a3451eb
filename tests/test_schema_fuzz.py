"""The judge's own OpenAPI document against what the judge does: requests made from it, good and bad, by all sorts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from judge_rank import GOOD, PATIENCE_S, SECRET, Rank, rank
from schemathesis.checks import CheckFunction
from schemathesis.specs.openapi import checks

from bench.judge.schemas import DRIVER_LABEL, Header, token_for
from bench.judge.service import ROUTES

EXAMPLES = 60
CALM = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
EPISODE, BLIND, ONCE = "many.n0.p0.w0", "dark.n0.p0.w0", "solo.n0.p0.w0"
# What an answer must keep to. That any body which fits the schema is taken is not promised: a kernel may be unknown.
CHECKS: list[CheckFunction] = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
    checks.allow_header_conformance,
]
# The only faults of a server that a request can bring about: what this judge lacks.
LACKS = {"not_provisioned"}


def _bearer(label: str) -> str:
    return f"Bearer {token_for(SECRET, label)}"


FORGED = f"Bearer {EPISODE}.{'0' * 64}"
TOKENS = st.sampled_from(
    [
        *[_bearer(EPISODE)] * 4,
        *(_bearer(BLIND), _bearer(ONCE), _bearer(DRIVER_LABEL), _bearer("gone.n0.p0.w0"), _bearer("many.n0.p99.w0")),
        *(_bearer("no label"), FORGED, "Bearer", "Bearer ", "Basic Zm9vOmJhcg==", _bearer(EPISODE).upper(), ""),
    ]
)
# What HTTP lets into the value of a header.
WORDS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=30)
NUMBERS = st.integers(-1, 2**64).map(str)
# These go with any request, and most requests have none of them.
AGENT_HEADERS: dict[str, st.SearchStrategy[str]] = {
    Header.IDEMPOTENCY: st.sampled_from(["a", "b", "k" * 200, "k" * 201]) | WORDS,
    Header.ATTEMPT: st.just("2") | NUMBERS | WORDS,
    Header.TOKENS: st.just("5") | NUMBERS | WORDS,
    Header.HOME_RANK: st.just("0") | NUMBERS | WORDS,
    Header.REQUEST_ID: WORDS,
    "Prefer": st.sampled_from(["respond-async", "respond-async, wait=1", "wait=0"]) | WORDS,
    "Content-Type": st.sampled_from(["application/json", "text/plain", "application/json; charset=utf-16"]),
}
DRIVER_HEADERS: dict[str, st.SearchStrategy[str]] = {
    Header.EPISODE: st.sampled_from([EPISODE, ONCE]) | WORDS,
    Header.KIND: st.sampled_from(["promoted", "harvested", "submit"]) | WORDS,
    Header.OF_GRADE: WORDS,
}
SOME_AGENT = st.sampled_from([*sorted(AGENT_HEADERS), "Prefer", "Prefer"]).flatmap(
    lambda name: st.fixed_dictionaries({name: AGENT_HEADERS[name]})
)
HEADERS: st.SearchStrategy[dict[str, str]] = st.one_of(
    *[st.just({})] * 3, *[SOME_AGENT] * 3, st.fixed_dictionaries({}, optional=AGENT_HEADERS | DRIVER_HEADERS)
)
# The words that the fake measuring process knows, and some text.
SOURCES = st.sampled_from(
    ["", *(f"// fake: {word}" for word in ("solved", "wrong", "build_failed", "policy", "nan", "fault", "lacking"))]
) | st.text(max_size=20)


@dataclass(frozen=True)
class Asked:
    """A judge, and a grade that it has made."""

    judge: Rank
    grade_id: str
    closed: bool

    def sent(self, case: Any, headers: dict[str, str]) -> Any:
        """The answer to a request, by an episode unless `headers` say whose it is."""
        own = {"Authorization": _bearer(EPISODE)} if self.closed else {}
        return case.call(
            headers={name: value.encode("latin-1") for name, value in (own | headers).items()}, timeout=PATIENCE_S
        )


@pytest.fixture(scope="module", params=["open", "closed"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    closed = request.param == "closed"
    with rank(tmp_path_factory.mktemp("schema"), closed) as judge:
        graded = judge.post("/submit", GOOD, EPISODE if closed else None)
        yield Asked(judge, graded.json()["grade_id"], closed)
        judge.wait_until_healthy()
        assert '"judge_error"' not in (judge.folder / "logs" / "upstream-0.log").read_text()


@pytest.fixture(scope="module")
def document(asked: Asked) -> Any:
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{asked.judge.port}/openapi.json")


requests_of = schemathesis.pytest.from_fixture("document")


@requests_of.parametrize()
@settings(CALM, phases=[Phase.explicit])
def test_the_edges_of_the_schema_are_answered_as_it_tells(case: Any, asked: Asked) -> None:
    check(case, asked.sent(case, {}))


@requests_of.given(data=st.data())
@requests_of.parametrize()
@settings(CALM, max_examples=EXAMPLES)
def test_every_answer_is_one_that_the_schema_tells_of(case: Any, asked: Asked, data: st.DataObject) -> None:
    if case.meta.generation.mode.is_positive and data.draw(st.sampled_from([True, True, False])):
        make_likely(case, asked, data)
    headers = data.draw(HEADERS)
    check(case, asked.sent(case, headers | ({"Authorization": data.draw(TOKENS)} if asked.closed else {})))


def check(case: Any, answer: Any) -> None:
    """An answer that has its id, is no fault of the judge, and fits the schema."""
    assert answer.headers["x-request-id"]
    if answer.status_code >= 500:
        assert answer.json()["error"]["code"] in LACKS, answer.text
    case.validate_response(answer, checks=CHECKS)


def make_likely(case: Any, asked: Asked, data: st.DataObject) -> None:
    """Let a request name what there is, so that its answer is more than 'there is no such thing'."""
    likely = {"kernel": "axpy", "grade_id": asked.grade_id}
    case.path_parameters = {name: likely[name] for name in case.path_parameters or {}}
    if case.operation.method == "post" and case.operation.path != "/search":
        case.body = {"kernel": "axpy", "rank": 0, "source": data.draw(SOURCES), "workspace_bytes": 0}
        if case.operation.path == "/profile":
            case.body |= {"tool": "callgrind"}


def test_the_document_is_whole(asked: Asked) -> None:
    found = asked.judge.get("/openapi.json").json()
    assert {path.split("/")[1] for path in found["paths"]} == {route[1:] for route in ROUTES}
    for reference in references(found):
        here = found
        for name in reference.removeprefix("#/").split("/"):
            here = here[name]
    schemathesis.openapi.from_dict(found).validate()


def references(part: Any) -> Iterator[str]:
    """Every `$ref` of a JSON document."""
    if isinstance(part, dict):
        yield from (value for name, value in part.items() if name == "$ref")
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from references(inner)
