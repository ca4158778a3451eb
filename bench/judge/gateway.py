"""What every request to the judge passes first: a request id, a count, and a short way to `/health`."""

from collections.abc import Callable, Iterable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bench.judge.metrics import Metrics
from bench.judge.requestid import ID_HEADER, request_id_of


class Gateway:
    """ASGI application in front of the judge's routes."""

    def __init__(self, app: ASGIApp, health: Callable[[], bytes], metrics: Metrics, routes: Iterable[str]) -> None:
        self._app, self._health, self._metrics = app, health, metrics
        self._routes = frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = request_id_of(scope["headers"])
        if scope["path"] == "/health" and scope["method"] == "GET":
            # Drivers and monitors ask it all the time: the way through FastAPI would double its time.
            await _respond(send, self._health(), request_id)
            return
        scope.setdefault("state", {})["request_id"] = request_id.decode()
        route = "/" + scope["path"].split("/")[1]

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.requested(route if route in self._routes else "other", message["status"])
                message["headers"] = [*message.get("headers", ()), (ID_HEADER, request_id)]
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id.decode()):
            await self._app(scope, receive, counted)


async def _respond(send: Send, body: bytes, request_id: bytes) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (ID_HEADER, request_id),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
