"""What every request to the judge passes first: a request id and a count."""

from collections.abc import Iterable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bench.judge.metrics import Metrics
from bench.judge.refusal import ID_HEADER, request_id


class Gateway:
    """ASGI application in front of the judge's routes."""

    def __init__(self, app: ASGIApp, metrics: Metrics, routes: Iterable[str]) -> None:
        self._app, self._metrics = app, metrics
        self._routes = frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        word = request_id(dict(scope["headers"]).get(ID_HEADER, b""))
        scope.setdefault("state", {})["request_id"] = word.decode()
        # `OPTIONS *` asks about no path at all.
        route = "/" + scope["path"].removeprefix("/").partition("/")[0]

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.requested(route if route in self._routes else "other", message["status"])
                message["headers"] = [*message.get("headers", ()), (ID_HEADER, word)]
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=word.decode()):
            await self._app(scope, receive, counted)
