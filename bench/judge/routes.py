"""The judge's routes: each turns a request into a question to the service, and the finding into an answer."""

import asyncio
from collections.abc import Callable
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from bench.judge.admission import admit, admit_profile, known_task, parse, wrong_value
from bench.judge.caller import Caller, check_submit, check_tool, identify, preference
from bench.judge.contract import contract
from bench.judge.gateway import Gateway
from bench.judge.metrics import CONTENT_TYPE, Metrics
from bench.judge.refusal import Refused, error_body, too_large
from bench.judge.schemas import (
    Answer,
    Closed,
    Device,
    ErrorBody,
    GradeRequest,
    Health,
    JudgeTool,
    Kind,
    Language,
    ProfileAnswer,
    ProfileRequest,
    Queued,
    SearchAnswer,
    SearchRequest,
    graded_on,
    not_graded,
)
from bench.judge.search.searches import Searches
from bench.judge.service import ROUTES, GradeService, Pending
from bench.results.shard import StoredAnswer
from bench.version import package_version

log = structlog.get_logger()

JSON = "application/json"
CLIENT_GONE = 499


def _body_of(model: type[Closed]) -> dict[str, Any]:
    """The OpenAPI part that describes a route's body; what it refers to is described with the answers."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}


class Endpoints:
    """The judge's routes over one service; `searches` is None where no web search is provisioned."""

    def __init__(self, service: GradeService, metrics: Metrics, searches: Searches | None) -> None:
        self._service, self._metrics, self._searches = service, metrics, searches
        self._config = service.config

    async def health(self) -> Health:
        """Whether this judge grades, and how much waits."""
        return self._service.health()

    async def score(self, request: Request) -> Response:
        """Preview grade: repeatable, recorded, never credited."""
        caller = self._caller(request)
        check_tool(JudgeTool.SCORE, caller, self._config)
        return await self._grade(Kind.SCORE, caller, request)

    async def submit(self, request: Request) -> Response:
        """The grade that counts."""
        caller = self._caller(request)
        check_submit(caller)
        return await self._grade(Kind.SUBMIT, caller, request)

    async def grade(self, grade_id: str, request: Request) -> Response:
        """The stored answer to an earlier request; 202 while it is being graded."""
        found = await self._service.find(grade_id, self._caller(request))
        return await _within(found, request, preference(request.headers.getlist("prefer")).wait_s)

    async def task(self, kernel: str, request: Request, language: Language | None = None) -> dict[str, Any]:
        """The leak-free contract of a kernel: signature, sizes as ranges, tolerance, build command.

        Without `language` it is in the language of the token's setup, else in the kernel's first that is graded here.
        """
        task, judge = known_task(kernel), Device(self._config.device)
        preset, own, name = self._config.preset, None, self._service.device_name
        if "authorization" in request.headers:
            setup = self._caller(request).setup
            preset, own, name = setup.preset, setup.language, setup.hardware or name
        graded = (one for one in task.manifest.languages if not not_graded(one, graded_on(judge)))
        spoken = own if own in task.manifest.languages else next(graded, task.manifest.languages[0])
        return contract(task, language or spoken, preset, judge, name)

    async def baseline(self, kernel: str) -> dict[str, Any]:
        """The kernel's denominators and their median times on this rank, null before one was timed."""
        task = known_task(kernel)
        declared = task.defining_baselines if Device(self._config.device) is Device.CPU else task.gpu_baselines
        names = dict.fromkeys([*(path.name for path in declared), *self._service.raced(kernel)])
        times = {name: {"median_ns": self._service.denominator_ns(kernel, name)} for name in names}
        return {"kernel": kernel, "rank": self._config.rank, "denominators": times}

    async def profile(self, request: Request) -> Response:
        """One profiler run: where the time goes, by function and line. It is no grade, and not recorded."""
        caller = self._caller(request)
        check_tool(JudgeTool.PROFILE, caller, self._config)
        body, secret = await _body(request, self._config.max_body_bytes), self._service.secret
        order = await asyncio.to_thread(admit_profile, body, request.headers, caller, self._config, secret)
        answering = asyncio.ensure_future(self._service.profile(order))
        return await _unless_left(request, answering, kernel=order.kernel, tool=order.tool)

    async def search(self, request: Request) -> Response:
        """Web search: pages that are about a query, and what the job's model makes of them. It is not recorded."""
        caller = self._caller(request)
        check_tool(JudgeTool.SEARCH, caller, self._config)
        if self._searches is None:
            raise Refused(503, "not_provisioned", "no web search is provisioned on this judge; go on without it")
        asked = parse(await _body(request, self._config.max_body_bytes), SearchRequest)
        answering = asyncio.ensure_future(self._searches.answer(caller.label, asked))
        return await _unless_left(request, answering, query=asked.query)

    async def metrics(self) -> Response:
        """Prometheus metrics."""
        return Response(self._metrics.text(), media_type=CONTENT_TYPE)

    def _caller(self, request: Request) -> Caller:
        return identify(request.headers, self._config, self._service.secret)

    async def _grade(self, kind: Kind, caller: Caller, request: Request) -> Response:
        body = await _body(request, self._config.max_body_bytes)
        submission = await asyncio.to_thread(admit, kind, body, request.headers, caller, self._config)
        found = await self._service.open(submission)
        asked = preference(request.headers.getlist("prefer"))
        return await _within(found, request, asked.wait_s if asked.later else None)


async def _body(request: Request, limit_bytes: int) -> bytes:
    """The whole body; raises Refused (413) as soon as it is known to be too large."""
    if int(request.headers.get("content-length", 0)) > limit_bytes:
        raise too_large(limit_bytes)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit_bytes:
                raise too_large(limit_bytes)
    except ClientDisconnect as error:
        raise Refused(400, "incomplete_body", "the body ended before its Content-Length") from error
    return bytes(body)


async def _within(found: Pending | StoredAnswer, request: Request, wait_s: int | None) -> Response:
    """The answer, or 202 when it is not there after `wait_s` seconds (None: however long it takes)."""
    if isinstance(found, StoredAnswer):
        return Response(found.answer, media_type=JSON)
    if await _leaves(request, found.done, wait_s, grade_id=found.grade_id):
        return Response(status_code=CLIENT_GONE)
    return Response(found.done.result(), media_type=JSON) if found.done.done() else _queued(found)


async def _unless_left(request: Request, answering: "asyncio.Future[str]", **about: str) -> Response:
    """An answer that is stored nowhere: it is given up when nobody waits for it any more."""
    try:
        left = await _leaves(request, answering, None, **about)
        return Response(status_code=CLIENT_GONE) if left else Response(answering.result(), media_type=JSON)
    finally:
        answering.cancel()


async def _leaves(request: Request, done: "asyncio.Future[str]", wait_s: int | None = None, **about: str) -> bool:
    """Wait for an answer; whether the client left before it. That does not end a grade: it is recorded."""
    gone = asyncio.ensure_future(_client_gone(request))
    await asyncio.wait({done, gone}, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
    left = gone.done() and not done.done()
    gone.cancel()
    if left:
        log.info("client_gone", status=CLIENT_GONE, **about)
    return left


async def _client_gone(request: Request) -> str:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return "gone"


def _queued(pending: Pending) -> Response:
    body = Queued(grade_id=pending.grade_id).model_dump_json()
    headers = {"Location": f"/grades/{pending.grade_id}"}
    return Response(body, status_code=202, headers=headers, media_type=JSON)


async def _refused(request: Request, error: Exception) -> Response:
    """Every error in the one shape."""
    request_id = request.scope["state"]["request_id"]
    status, code, message = _worded(error, request)
    headers = getattr(error, "headers", None)
    if status >= 500:
        log.error("refused", status=status, code=code, message=message)
    return Response(error_body(code, message, request_id), status, headers, JSON)


def _worded(error: Exception, request: Request) -> tuple[int, str, str]:
    """Status, code and message of an error."""
    asked = f"{request.method} {request.url.path[:200]}"
    match error:
        case Refused():
            return error.status, error.code, error.message
        case RequestValidationError():
            found = error.errors()[0]
            return 400, "bad_request", wrong_value(f"the {found['loc'][0]} parameter '{found['loc'][1]}'", found)
        case HTTPException(status_code=404):
            routes = (route for route in request.app.routes if isinstance(route, APIRoute))
            known = ", ".join(f"{' '.join(route.methods or ())} {route.path}" for route in routes)
            return 404, "unknown_route", f"{asked} is no route; the routes are {known}"
        case HTTPException(status_code=405):
            allowed = (error.headers or {}).get("Allow", "another method")
            return 405, "method_not_allowed", f"{asked} is no route; send {allowed} to this path"
        case HTTPException():
            return error.status_code, "bad_request", str(error.detail)
    return (
        500,
        "judge_error",
        "the judge failed at this request; send it again with its key, then tell the operator",
    )


def create_app(service: GradeService, metrics: Metrics, searches: Searches | None) -> Gateway:
    """The judge as an ASGI application."""
    app = FastAPI(title="Kernelcourt judge", version=package_version(), redoc_url=None, redirect_slashes=False)
    for kind in (Refused, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _refused)
    _add_routes(app, Endpoints(service, metrics, searches))
    return Gateway(app, metrics, (*ROUTES, "/docs"))


def _add_routes(app: FastAPI, endpoints: Endpoints) -> None:
    errors: dict[int | str, dict[str, Any]] = {"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}}
    later: dict[int | str, dict[str, Any]] = {202: {"model": Queued, "description": "It is being graded."}}

    def add(method: str, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        responses = errors | (later if options.get("response_model") is Answer else {})
        app.add_api_route(path, endpoint, methods=[method], responses=responses, **options)

    add("GET", "/health", endpoints.health)
    add("GET", "/task/{kernel}", endpoints.task)
    add("GET", "/baseline/{kernel}", endpoints.baseline)
    add("POST", "/score", endpoints.score, response_model=Answer, openapi_extra=_body_of(GradeRequest))
    add("POST", "/submit", endpoints.submit, response_model=Answer, openapi_extra=_body_of(GradeRequest))
    add("POST", "/profile", endpoints.profile, response_model=ProfileAnswer, openapi_extra=_body_of(ProfileRequest))
    add("POST", "/search", endpoints.search, response_model=SearchAnswer, openapi_extra=_body_of(SearchRequest))
    add("GET", "/grades/{grade_id}", endpoints.grade, response_model=Answer)
    text = {"responses": {"200": {"content": {"text/plain": {"schema": {"type": "string"}}}}}}
    add("GET", "/metrics", endpoints.metrics, response_class=Response, openapi_extra=text)
