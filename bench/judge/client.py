"""The judge's HTTP client: one connection pool, bounded retries under one idempotency key, typed answers.

Needs httpx, stamina and the schemas only, because the agent container has nothing else.
"""

import json
import math
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import stamina
from pydantic import ValidationError

from bench.judge.schemas import (
    Answer,
    Closed,
    ErrorBody,
    GradeRequest,
    Header,
    Health,
    Kind,
    Language,
    ProfileAnswer,
    ProfileRequest,
    Queued,
    SearchAnswer,
    SearchRequest,
)

A = TypeVar("A", Answer, ProfileAnswer, SearchAnswer, Queued)
# A judge that restarts grades itself before it answers again; these waits add up to about two minutes.
ATTEMPTS = 28
WAIT_FIRST_S, WAIT_MAX_S = 0.2, 5.0
CONNECT_S = 10.0
# No request for a grade stays open longer than most proxies let one; the answer to a long grade is asked for again.
WAIT_S = 30
POLL_FIRST_S, POLL_MAX_S = 0.2, 2.0
# A grade may take an hour, and a node that is gone closes no connection: Linux probes whether it is there.
_NOTICE_S, _PROBE_EVERY_S, _PROBES = 14, 3, 3
_SOCKET_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _NOTICE_S - _PROBES * _PROBE_EVERY_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_EVERY_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _NOTICE_S),
)

RETRIED = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE})
# 503s that waiting does not mend: the caller fails over to another rank, or does without.
FINAL_CODES = frozenset({"rank_lost", "not_provisioned"})


class JudgeRefused(Exception):
    """A judge answered with an error, or did not answer; `status` is None when no HTTP answer came."""

    def __init__(self, code: str, status: int | None, message: str) -> None:
        super().__init__(message)
        self.code, self.status, self.message = code, status, message

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later at the same judge."""
        return self.code == "unreachable" or (self.status in RETRIED and self.code not in FINAL_CODES)


def _new_key() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Envelope:
    """What travels beside a request, in headers; the agent's own request never carries these.

    `key` is the idempotency key: a request repeated with the envelope's key is graded once. `kind`,
    `of_grade` and `episode` are the driver's (promotion and harvest) and need the driver's token.
    """

    key: str = field(default_factory=_new_key)
    attempt: int | None = None
    tokens: int | None = None
    home_rank: int | None = None
    kind: Kind | None = None
    of_grade: str | None = None
    episode: str | None = None

    def headers(self) -> dict[str, str]:
        named = {
            Header.IDEMPOTENCY: self.key,
            Header.ATTEMPT: self.attempt,
            Header.TOKENS: self.tokens,
            Header.HOME_RANK: self.home_rank,
            Header.KIND: self.kind,
            Header.OF_GRADE: self.of_grade,
            Header.EPISODE: self.episode,
        }
        return {name: str(value) for name, value in named.items() if value is not None}


class JudgeClient:
    """Talks to one judge through its router. Safe to share between threads; close it, or use it in a `with`.

    Every method raises JudgeRefused: at once for an answer that waiting does not change, else after
    `attempts` tries, or when nobody has reached the router for `unreachable_s` seconds. `timeout_s` bounds the wait
    for one answer, in seconds; a grade goes on after it and the same envelope finds it.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout_s: float = 3600.0,
        attempts: int = ATTEMPTS,
        unreachable_s: float = math.inf,
    ) -> None:
        self.url = url.rstrip("/")
        self._timeout_s, self._attempts, self._unreachable_s = timeout_s, attempts, unreachable_s
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
            transport=httpx.HTTPTransport(
                limits=httpx.Limits(max_connections=64, max_keepalive_connections=64, keepalive_expiry=60.0),
                trust_env=False,
                socket_options=_SOCKET_OPTIONS,
            ),
            # A site's web proxy does not know the judges.
            trust_env=False,
        )

    def score(self, request: GradeRequest | Mapping[str, Any], envelope: Envelope | None = None) -> Answer:
        """Preview grade. A mapping is sent as it is, so that the judge says what is wrong with it."""
        return self._grade("/score", request, envelope or Envelope())

    def submit(self, request: GradeRequest | Mapping[str, Any], envelope: Envelope | None = None) -> Answer:
        """The grade that counts."""
        return self._grade("/submit", request, envelope or Envelope())

    def profile(self, request: ProfileRequest | Mapping[str, Any]) -> ProfileAnswer:
        """One profiler run; not recorded, so that a retry is a new one."""
        body, headers = _letter(request, Envelope())
        return _answer(self._send("POST", "/profile", body, headers), ProfileAnswer)

    def search(self, request: SearchRequest | Mapping[str, Any]) -> SearchAnswer:
        """One web search; not recorded either."""
        body, headers = _letter(request, Envelope())
        return _answer(self._send("POST", "/search", body, headers), SearchAnswer)

    def grade(self, grade_id: str) -> Answer | None:
        """The answer to an earlier request, or None while it is being graded."""
        response = self._send("GET", f"/grades/{grade_id}")
        return None if response.status_code == HTTPStatus.ACCEPTED else _answer(response, Answer)

    def health(self) -> Health:
        """The judge's state; asked once, without retries."""
        return Health.model_validate_json(self._send("GET", "/health", attempts=1).content)

    def task(self, kernel: str, language: Language | str | None = None) -> dict[str, Any]:
        """The leak-free contract of a kernel, in the asked language."""
        query = f"?language={language}" if language else ""
        return self._object(f"/task/{kernel}{query}")

    def baseline(self, kernel: str) -> dict[str, Any]:
        """The kernel's denominators and their median times on this rank."""
        return self._object(f"/baseline/{kernel}")

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _object(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self._send("GET", path).json()
        return found

    def _grade(self, route: str, request: GradeRequest | Mapping[str, Any], envelope: Envelope) -> Answer:
        body, headers = _letter(request, envelope)
        headers |= {"Prefer": f"respond-async, wait={WAIT_S}"}
        deadline, pause_s = time.monotonic() + self._timeout_s, POLL_FIRST_S
        response = self._send("POST", route, body, headers)
        while response.status_code == HTTPStatus.ACCEPTED:
            if time.monotonic() >= deadline:
                raise _no_answer_yet(f"{self.url}{route}")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, POLL_MAX_S)
            try:
                path = f"/grades/{_answer(response, Queued).grade_id}"
                response = self._send("GET", path, headers={"Prefer": f"wait={WAIT_S}"}, attempts=1)
            except JudgeRefused as error:
                # A judge that restarted knows no more of what it was grading; under its key it is graded again.
                if not (error.passing or error.code == "unknown_grade"):
                    raise
                response = self._send("POST", route, body, headers)
        return _answer(response, Answer)

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        attempts: int | None = None,
    ) -> httpx.Response:
        for attempt in stamina.retry_context(
            on=_Patience(self._unreachable_s),
            attempts=attempts or self._attempts,
            timeout=None,
            wait_initial=WAIT_FIRST_S,
            wait_max=WAIT_MAX_S,
            wait_jitter=WAIT_FIRST_S,
        ):
            with attempt:
                return self._send_once(method, path, body, headers)
        raise AssertionError("the retry context returns or raises")

    def _send_once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> httpx.Response:
        try:
            response = self._http.request(method, path, content=body, headers=headers)
        except httpx.ReadTimeout as error:
            raise _no_answer_yet(f"{self.url}{path}") from error
        except (httpx.TransportError, httpx.InvalidURL) as error:
            message = f"{self.url}{path}: {error or type(error).__name__}; is the judge running there?"
            raise JudgeRefused("unreachable", None, message) from error
        if response.is_success:
            return response
        raise _refusal(response)


class _Patience:
    """Which refusals of one request are worth another try."""

    def __init__(self, unreachable_s: float) -> None:
        self._limit_s = unreachable_s
        self._unreachable_since: float | None = None

    def __call__(self, error: Exception) -> bool:
        if not isinstance(error, JudgeRefused) or error.code != "unreachable":
            self._unreachable_since = None
            return isinstance(error, JudgeRefused) and error.passing
        now = time.monotonic()
        if self._unreachable_since is None:
            self._unreachable_since = now
        return now - self._unreachable_since < self._limit_s


def _letter(request: Closed | Mapping[str, Any], envelope: Envelope) -> tuple[bytes, dict[str, str]]:
    """Body and headers, made once: a retry must carry the same bytes, the judge compares them under the key."""
    fields = request.model_dump(mode="json", exclude_none=True) if isinstance(request, Closed) else request
    return json.dumps(fields).encode(), {"Content-Type": "application/json", **envelope.headers()}


def _no_answer_yet(where: str) -> JudgeRefused:
    message = f"{where}: no answer in time; the grade goes on, so ask again with the same key"
    return JudgeRefused("no_answer_yet", None, message)


def _answer(response: httpx.Response, model: type[A]) -> A:
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        message = (
            f"{response.url}: the answer is no grade: {response.text[:200]!r}; use a client of the judge's version"
        )
        raise JudgeRefused("not_a_grade", response.status_code, message) from error


def _refusal(response: httpx.Response) -> JudgeRefused:
    """The error that a judge or its router answered with; anything else there is named as such."""
    try:
        error = ErrorBody.model_validate_json(response.content).error
    except ValidationError:
        message = f"{response.url}: answered {response.status_code} {response.text[:200]!r}; this is no judge"
        return JudgeRefused("not_a_judge", response.status_code, message)
    return JudgeRefused(error.code, response.status_code, error.message)
