"""The router in front of a judge: passes requests on unread, and stays when the judge dies."""

# A plain ASGI application under uvicorn: it has one route, and FastAPI's way to it costs as much again as the
# whole forwarding. A body is collected, up to the limit, before the judge hears of it, so that half a request,
# a lying Content-Length or a client that leaves costs the judge nothing.

import asyncio
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import structlog
from starlette.types import Receive, Scope, Send

from bench.config import JudgeConfig
from bench.errors import ConfigError
from bench.judge import serving
from bench.judge.logs import log_to
from bench.judge.refusal import Refused, error_body, too_large
from bench.judge.requestid import ID_HEADER, request_id_of
from bench.judge.serving import DRAIN_S, FINISH_S, LOOPBACK
from bench.judge.supervisor import JudgeState, RestartPolicy, Supervisor
from bench.judge.upstream import Headers, Reply, Upstream, UpstreamLost

log = structlog.get_logger()

# How long a client may pause in the middle of a body.
STALL_S = 10.0
LOOPBACK_HOSTS = frozenset({LOOPBACK, "localhost", "::1"})
# Headers that belong to one connection and not to the request (RFC 9110, 7.6.1); the length is set anew,
# because the body travels whole, and `expect` has been answered here.
_OF_CONNECTION = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding"),
        *(b"upgrade", b"content-length", b"expect", ID_HEADER),
    }
)

# A request that names neither has no body.
_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})
# Most answers come sooner, and whether the client has left is then not worth asking.
PROMPT_S = 0.05


class ClientGone(Exception):
    """The client closed its connection before it was answered."""


class Router:
    """ASGI application that forwards to one judge. `supervisor` says whether the rank is lost."""

    def __init__(self, upstream: Upstream, supervisor: Supervisor, max_body_bytes: int, stall_s: float) -> None:
        self._upstream, self._supervisor = upstream, supervisor
        self._max_body_bytes, self._stall_s = max_body_bytes, stall_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = request_id_of(scope["headers"])
        try:
            body = await self._body(scope["headers"], receive)
            reply = await self._forward(scope, body, request_id, receive)
        except Refused as error:
            reply = _error(error, request_id)
        except ClientGone:
            log.info("client_gone", status=499, path=scope["path"], request_id=request_id.decode())
            return
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
        await send({"type": "http.response.body", "body": reply.body})

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """The request's body, whole; raises Refused as soon as it is too large or stalls."""
        lengths = {name: value for name, value in headers if name in _LENGTHS}
        if not lengths:
            return b""
        declared = lengths.get(b"content-length", b"0")
        if int(declared) > self._max_body_bytes:
            raise too_large(self._max_body_bytes)
        chunks: list[bytes] = []
        size, more = 0, True
        while more:
            try:
                async with asyncio.timeout(self._stall_s):
                    message = await receive()
            except TimeoutError:
                why = f"after {size} bytes of the body no more came; send what Content-Length says"
                raise Refused(400, "incomplete_body", why) from None
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk, more = message.get("body", b""), message.get("more_body", False)
            chunks.append(chunk)
            size += len(chunk)
            if size > self._max_body_bytes:
                raise too_large(self._max_body_bytes)
        return b"".join(chunks)

    async def _forward(self, scope: Scope, body: bytes, request_id: bytes, receive: Receive) -> Reply:
        """The judge's answer; a client that leaves first closes the connection to the judge too."""
        target: bytes = scope["raw_path"]
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        headers = [pair for pair in scope["headers"] if pair[0] not in _OF_CONNECTION]
        headers.append((ID_HEADER, request_id))
        try:
            return await self._upstream.request(
                scope["method"], target, headers, body, lambda answer: _answered(answer, receive)
            )
        except UpstreamLost as error:
            log.warning("upstream_lost", why=str(error), request_id=request_id.decode())
            raise self._unavailable() from error

    def _unavailable(self) -> Refused:
        if self._supervisor.state is JudgeState.LOST:
            message = "the judge of this rank died too often and stays down; go on at another rank"
            return Refused(503, "rank_lost", message)
        message = "the judge restarts; send the request again in a few seconds, with the same Idempotency-Key"
        return Refused(502, "judge_restarting", message)


async def _answered(answer: "asyncio.Future[Reply]", receive: Receive) -> None:
    """Wait for the answer; raises ClientGone when the client leaves before it."""
    await asyncio.wait({answer}, timeout=PROMPT_S)
    if answer.done():
        return
    leaving: asyncio.Future[Any] = asyncio.ensure_future(_client_gone(receive))
    try:
        await asyncio.wait({answer, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
    if not answer.done():
        raise ClientGone


async def _client_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _error(error: Refused, request_id: bytes) -> Reply:
    body = error_body(error.code, error.message, request_id.decode())
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (ID_HEADER, request_id),
    ]
    if error.code in ("body_too_large", "incomplete_body"):
        # The rest of the body is still on its way and nobody will read it.
        headers.append((b"connection", b"close"))
    return Reply(error.status, headers, body)


def run_router(
    config_path: Path,
    judge_argv: Sequence[str] | None = None,
    policy: RestartPolicy = RestartPolicy(),
    listening: Callable[[], None] = lambda: None,
    stall_s: float = STALL_S,
) -> int:
    """Serve a rank until SIGTERM or SIGINT: the router here, the judge as a child; the exit code.

    `listening` is called once the address is ours; `stall_s` is how long a body may stand still.

    Raises:
        ConfigError: the file is wrong, or a judge without a job secret would listen beyond this machine.
        EnvironmentFault: the router's address cannot be bound.
    """
    config = JudgeConfig.read(config_path)
    if config.secret_file is None and config.router_host not in LOOPBACK_HOSTS:
        raise ConfigError(
            f"{config_path}: router_host: an open judge serves {LOOPBACK} only, not {config.router_host};"
            " give it a secret_file"
        )
    log_to(config.log_dir / f"router-{config.rank}.log")
    argv = judge_argv or [sys.executable, "-m", "bench.judge.app", str(config_path)]
    output = config.log_dir / f"upstream-{config.rank}.log"
    listener = serving.listen(config.router_host, config.router_port)
    listening()
    return serving.run(_serve(config, listener, Supervisor(argv, output, policy), stall_s))


async def _serve(config: JudgeConfig, listener: socket.socket, supervisor: Supervisor, stall_s: float) -> int:
    asked = serving.ending()
    upstream = Upstream(LOOPBACK, config.judge_port)
    router = Router(upstream, supervisor, config.max_body_bytes, stall_s)
    # A judge that is told to end may grade for DRAIN_S before its last answers come through here.
    server = serving.server(router, int(DRAIN_S) + FINISH_S)
    watching = asyncio.create_task(supervisor.run())
    # It returns when the rank is lost, and the router stays to say so; a fault of its own ends the router.
    watching.add_done_callback(lambda task: asked.set() if task.exception() else None)
    answering = asyncio.create_task(server.serve(sockets=[listener]))
    leaving = asyncio.create_task(asked.wait())
    await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await supervisor.stop(DRAIN_S + FINISH_S)
    await asyncio.gather(answering, watching)
    upstream.close()
    return 0
