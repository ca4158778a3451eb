"""The clients' side of a router: whole requests in, one at a time on each connection, and answers out.

Why not uvicorn: its scope, its task and its events of a request cost more than all the rest of the way through a
router. The parser is uvicorn's, httptools; what a server owes its clients beyond parsing is below.
"""

import asyncio
import contextlib
import socket
from http import HTTPStatus
from typing import cast

import httptools
import structlog

from bench.judge.refusal import HTTP_ADVICE, ID_HEADER, Refused, error_body, request_id, too_large
from bench.judge.serving import BACKLOG, KEEP_ALIVE_S, rendered
from bench.judge.supervisor import JudgeState, Supervisor
from bench.judge.upstream import Connection, Upstream

log = structlog.get_logger()

# Headers that belong to one connection and not to the request (RFC 9110, 7.6.1); the length is set anew,
# because the body travels whole, and `expect` has been answered here.
_OF_CONNECTION = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding"),
        *(b"upgrade", b"content-length", b"expect", ID_HEADER),
    }
)
# How long a client may go on sending after the last answer on its connection.
LINGER_S = 2.0
# The rest of a body is still on its way when these are answered, or nobody knows where the next request starts.
_ENDS_CONNECTION = frozenset({"body_too_large", "head_too_large", "incomplete_body", "bad_http"})
# A body may take as long as so many pauses: who sends a byte now and then would never be done.
BODY_STALLS = 12
# Request line and headers together, in bytes, and how many headers there may be.
HEAD_BYTES = 64 << 10
HEADERS = 100


class Clients:
    """The open connections of all clients; `supervisor` says whether the rank is lost.

    A body has `body_limit_bytes` at most, and may stand still for `stall_s` seconds.
    """

    def __init__(self, upstream: Upstream, supervisor: Supervisor, body_limit_bytes: int, stall_s: float) -> None:
        self.upstream, self.body_limit_bytes, self.stall_s = upstream, body_limit_bytes, stall_s
        self._supervisor = supervisor
        self._open: set[Client] = set()
        self._left = asyncio.Event()
        self.ending = False

    async def listen(self, listener: socket.socket) -> asyncio.Server:
        """Take connections on a listening socket."""
        return await asyncio.get_running_loop().create_server(lambda: Client(self), sock=listener, backlog=BACKLOG)

    async def end(self, finish_s: float) -> None:
        """Close every connection: an idle one now, another after its answer, all after `finish_s` seconds."""
        self.ending = True
        for client in list(self._open):
            client.end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(finish_s):
                while self._open:
                    self._left.clear()
                    await self._left.wait()
        for client in list(self._open):
            client.abort()

    def add(self, client: "Client") -> None:
        self._open.add(client)

    def remove(self, client: "Client") -> None:
        self._open.discard(client)
        self._left.set()

    def unavailable(self) -> Refused:
        """Why the judge gave no answer."""
        if self._supervisor.state is JudgeState.LOST:
            message = "the judge of this rank died too often and stays down; go on at another rank"
            return Refused(503, "rank_lost", message)
        again = "send the request again in a few seconds, with the same Idempotency-Key"
        if not self.upstream.reached:
            return Refused(502, "judge_starting", f"the judge starts; {again}")
        return Refused(502, "judge_restarting", f"the judge restarts; {again}")


class _Request:
    """A request as far as it has come."""

    def __init__(self) -> None:
        self.url = self.given_id = self.length = b""
        self.passed: list[bytes] = []
        self.begun = self.expects_100 = self.head_complete = self.complete = False
        self.body: list[bytes] = []
        self.size_bytes = self.head_bytes = self.headers = self.unfinished_bytes = 0
        self.body_until = 0.0

    def add_header(self, name: bytes, value: bytes) -> None:
        self.headers += 1
        self.count_head(len(name) + len(value))
        lowered = name.lower()
        if lowered not in _OF_CONNECTION:
            self.passed.append(b"%s: %s\r\n" % (lowered, value))
        elif lowered == ID_HEADER:
            self.given_id = value
        elif lowered == b"content-length":
            self.length = value
        elif lowered == b"expect":
            self.expects_100 = value.lower() == b"100-continue"

    def count_head(self, more_bytes: int) -> None:
        """Raises Refused when the head is larger than a request of ours can be."""
        self.head_bytes += more_bytes
        if self.head_bytes > HEAD_BYTES or self.headers > HEADERS:
            raise _head_too_large()

    def arrived(self, data_bytes: int) -> None:
        """Count what came of a head that is not complete: the parser tells of a line only at its end.

        Raises:
            Refused: one line is larger than a head may be.
        """
        if not self.head_complete:
            self.unfinished_bytes += data_bytes
            if self.unfinished_bytes > HEAD_BYTES:
                raise _head_too_large()

    def complete_head(self, method: bytes, keep_alive: bool) -> None:
        self.method, self.keep_alive = method, keep_alive
        self.request_id = request_id(self.given_id)
        self.head_complete = True

    def rendered(self) -> bytes:
        """The request as the judge gets it."""
        line = b"%s %s HTTP/1.1\r\n" % (self.method, self.url)
        last = b"%s: %s\r\ncontent-length: %d\r\n\r\n" % (ID_HEADER, self.request_id, self.size_bytes)
        return b"".join((line, *self.passed, last, *self.body))


class Client(asyncio.Protocol):
    """One client's connection. Its timer ends an idle connection and a body that stands still."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        # The request that is read or answered now or next, and the connection to the judge that it occupies.
        self._request = _Request()
        self._judge: Connection | None = None
        self._leaving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._timer = self._loop.call_later(KEEP_ALIVE_S, self._transport.close)
        self._clients.add(self)

    def data_received(self, data: bytes) -> None:
        if self._leaving or self._transport.is_closing():
            return
        try:
            self._parser.feed_data(data)
            self._request.arrived(len(data))
        except Refused as error:
            self._refuse(error)
            return
        except httptools.HttpParserUpgrade:
            # The request offers another protocol, and is answered in this one.
            pass
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, Refused):
                raise
            self._refuse(error.__context__)
            return
        except httptools.HttpParserError as error:
            self._refuse(Refused(400, "bad_http", f"this is not valid HTTP ({error}); {HTTP_ADVICE}"))
            return
        self._go_on()

    # What the parser calls; what is raised here ends the parsing.

    def on_message_begin(self) -> None:
        if self._request.begun:
            raise Refused(400, "bad_http", f"more came before the answer; {HTTP_ADVICE}")
        self._request.begun = True

    def on_url(self, url: bytes) -> None:
        self._request.url += url
        self._request.count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        # A field that trails the body comes too late to be a header.
        if not self._request.head_complete:
            self._request.add_header(name, value)

    def on_headers_complete(self) -> None:
        request, parser = self._request, self._parser
        request.complete_head(parser.get_method(), parser.should_keep_alive() and parser.get_http_version() != "1.0")
        if int(request.length or 0) > self._clients.body_limit_bytes:
            raise too_large(self._clients.body_limit_bytes)
        request.body_until = self._loop.time() + BODY_STALLS * self._clients.stall_s
        if request.expects_100:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._request.body.append(body)
        self._request.size_bytes += len(body)
        if self._request.size_bytes > self._clients.body_limit_bytes:
            raise too_large(self._clients.body_limit_bytes)

    def on_message_complete(self) -> None:
        self._request.complete = True

    def pause_writing(self) -> None:
        """A client that does not read its answers may ask for no more."""
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _go_on(self) -> None:
        """Ask the judge once the request is whole, or wait for the rest of its body."""
        request = self._request
        if request.complete and self._judge is None:
            self._timer.cancel()
            self._judge = self._clients.upstream.ask(request.rendered(), request.method == b"HEAD", self)
        elif request.head_complete and not request.complete:
            self._timer.cancel()
            until = min(self._loop.time() + self._clients.stall_s, request.body_until)
            self._timer = self._loop.call_at(until, self._stalled)

    def _stalled(self) -> None:
        why = f"the body stopped or was too slow after {self._request.size_bytes} bytes; send what Content-Length says"
        self._refuse(Refused(400, "incomplete_body", why))

    def answered(self, answer: bytes, keep_alive: bool) -> None:
        if keep_alive and not (keep_alive := self._request.keep_alive and not self._clients.ending):
            answer = answer.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
        self._transport.write(answer)
        self._request, self._judge = _Request(), None
        if keep_alive:
            self._timer = self._loop.call_later(KEEP_ALIVE_S, self._transport.close)
        else:
            self._leave()

    def _leave(self) -> None:
        """Say no more, but take for a while what still comes: closing on unread bytes resets the connection, and the
        client may lose the answer."""
        self._leaving = True
        self._timer.cancel()
        self._timer = self._loop.call_later(LINGER_S, self._transport.close)
        self._transport.write_eof()

    def lost(self, why: str) -> None:
        log.warning("upstream_lost", why=why, request_id=self._request.request_id.decode())
        self._refuse(self._clients.unavailable())

    def _refuse(self, error: Refused) -> None:
        """Answer the request in the judge's place."""
        if self._judge is not None:
            self._judge.close()
        if not self._request.head_complete:
            self._request.complete_head(b"", False)
        self.answered(_answer_of(error, self._request), error.code not in _ENDS_CONNECTION)

    def end(self) -> None:
        """Close once there is nothing to answer."""
        if not self._request.begun:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._clients.remove(self)
        if self._judge is not None:
            self._judge.close()
        if self._request.head_complete:
            path, word = self._request.url.decode(errors="backslashreplace"), self._request.request_id.decode()
            log.info("client_gone", status=499, path=path, request_id=word)


def _head_too_large() -> Refused:
    why = f"a request has at most {HEADERS} headers, and {HEAD_BYTES} bytes before its body; send fewer"
    return Refused(431, "head_too_large", why)


def _answer_of(error: Refused, request: _Request) -> bytes:
    """The answer to a refused request; one to HEAD has no body."""
    body = error_body(error.code, error.message, request.request_id.decode())
    answer = rendered(HTTPStatus(error.status), request.request_id, body, error.code in _ENDS_CONNECTION)
    return answer.removesuffix(body) if request.method == b"HEAD" else answer
