"""The driver's proxy: adds a provider's key to what clients ask, so that no client ever has it.

`python -m agent.proxy USAGE_FILE` reads one JSON line from stdin (upstream root, key, auth, secret), prints the port
that it took on loopback, and serves until stdin is closed.
"""

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agent.hosted import LOOPBACK, Upstream
from agent.journal import append_json, utc_now
from bench import process
from bench.judge.schemas import label_of

# A model may think for minutes before its first byte.
TIMEOUT = httpx.Timeout(900.0, connect=30.0)
LIMITS = httpx.Limits(max_connections=512)
# Of a client's headers the provider gets these; what names the client's key or host stays here.
_PASSED = ("content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta", "user-agent")
_RETURNED = ("content-type", "retry-after", "request-id", "x-request-id", "anthropic-ratelimit-requests-reset")
USAGE_CAP_BYTES = 4 << 20


class Forwarder:
    """One upstream and its key; `usage_file` gets one line a request."""

    def __init__(self, upstream: Upstream, usage_file: Path, client: httpx.AsyncClient) -> None:
        self._root, self._usage_file, self._client = upstream.root.rstrip("/"), usage_file, client
        self._secret = bytes.fromhex(upstream.secret)
        bearer = upstream.auth == "bearer"
        self._key = ("authorization", f"Bearer {upstream.key}") if bearer else ("x-api-key", upstream.key)

    async def alive(self, request: Request) -> Response:
        """Clients look whether anybody is here before they ask."""
        return Response()

    async def forward(self, request: Request) -> Response:
        label = self._label(request)
        if label is None:
            error = {"type": "authentication_error", "message": "this proxy serves the agents of its own node"}
            return JSONResponse({"type": "error", "error": error}, status_code=401)
        headers = {name: request.headers[name] for name in _PASSED if name in request.headers}
        query = f"?{request.url.query}" if request.url.query else ""
        url = f"{self._root}{request.url.path}{query}"
        asked = self._client.build_request(
            request.method, url, content=await request.body(), headers=[*headers.items(), self._key]
        )
        began = time.monotonic()
        try:
            answer = await self._client.send(asked, stream=True)
        except httpx.TransportError as error:
            self._note(label, request.url.path, None, None, began)
            said = {"type": "api_error", "message": f"the provider cannot be reached ({type(error).__name__})"}
            return JSONResponse({"type": "error", "error": said}, status_code=502)
        kept = {name: answer.headers[name] for name in _RETURNED if name in answer.headers}
        return StreamingResponse(self._metered(answer, label, request.url.path, began), answer.status_code, kept)

    def _label(self, request: Request) -> str | None:
        """Whose token a request carries; None for one that this driver gave to nobody."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key", "")
        return label_of(self._secret, token)

    async def _metered(self, answer: httpx.Response, label: str, path: str, began: float) -> AsyncIterator[bytes]:
        """The answer's bytes as they come; what they say of tokens is noted when the last has left."""
        seen = bytearray()
        try:
            async for chunk in answer.aiter_bytes():
                if len(seen) < USAGE_CAP_BYTES:
                    seen += chunk
                yield chunk
        finally:
            await answer.aclose()
            self._note(label, path, answer.status_code, usage_of(bytes(seen)), began)

    def _note(self, label: str, path: str, status: int | None, usage: dict[str, Any] | None, began: float) -> None:
        seconds = round(time.monotonic() - began, 3)
        line = {"at": utc_now(), "label": label, "path": path, "status": status, "seconds": seconds, "usage": usage}
        append_json(self._usage_file, line)


def usage_of(answer: bytes) -> dict[str, Any] | None:
    """What an answer, a JSON document or the events of a stream, reports of tokens; None where it does not."""
    documents = [line[5:] for line in answer.splitlines() if line.startswith(b"data:")] or [answer]
    total: dict[str, Any] = {}
    for document in documents:
        try:
            found = json.loads(document)
        except ValueError:
            continue
        for holder in (found, found.get("message"), found.get("response")) if isinstance(found, dict) else ():
            if isinstance(holder, dict) and isinstance(holder.get("usage"), dict):
                total |= holder["usage"]
    return total or None


def application(forwarder: Forwarder) -> Starlette:
    return Starlette(
        routes=[
            Route("/", forwarder.alive, methods=["GET", "HEAD"]),
            Route("/v1/{path:path}", forwarder.forward, methods=["GET", "POST"]),
        ]
    )


async def _serve(upstream: Upstream, usage_file: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        async with httpx.AsyncClient(timeout=TIMEOUT, limits=LIMITS) as client:
            app = application(Forwarder(upstream, usage_file, client))
            server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
            sys.stdout.write(f"{listener.getsockname()[1]}\n")
            sys.stdout.flush()
            ending = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
            ending.add_done_callback(lambda _: setattr(server, "should_exit", True))
            await server.serve(sockets=[listener])


def main() -> int:
    process.die_with_parent()
    upstream = Upstream.model_validate_json(sys.stdin.readline())
    asyncio.run(_serve(upstream, Path(sys.argv[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
