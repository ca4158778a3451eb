"""How a judge serves: uvicorn on one socket; what router and judge share: listening, and ending by a signal."""

import asyncio
import contextlib
import functools
import gc
import resource
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from http import HTTPStatus
from typing import Any, cast

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bench import process
from bench.errors import EnvironmentFault
from bench.judge.refusal import HTTP_ADVICE, ID_HEADER, error_body, request_id

LOOPBACK = "127.0.0.1"
# Once told to end: how long grades in flight may take, and how long their answers may take to leave.
DRAIN_S = 300.0
FINISH_S = 10
# A client that is idle for longer asks on a new connection.
KEEP_ALIVE_S = 600
BACKLOG = 1024


class JoinedWrites:
    """A transport that sends an answer's head and body together.

    uvicorn writes them one after the other: two system calls, two packets and two wake-ups of the reader.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: bytes = b""

    def write(self, data: bytes) -> None:
        if self._held:
            self._held += data
            self._flush()
        else:
            # An answer without a body has no second write.
            self._held = data
            asyncio.get_running_loop().call_soon(self._flush)

    def write_whole(self, answer: bytes) -> None:
        """Send an answer that is complete at once."""
        self._flush()
        self._transport.write(answer)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            self._transport.write(self._held)
            self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with a short way to `/health`; what is no HTTP gets the error shape of every answer.

    Drivers and monitors ask it all the time, and even an ASGI application that knew nothing else would take twice
    the processor's time.
    """

    def __init__(self, *args: Any, health: Callable[[], bytes], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._health = health
        self._is_short = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._joined = JoinedWrites(transport)
        super().connection_made(cast(asyncio.Transport, self._joined))

    def on_headers_complete(self) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        asked = self.url == b"/health" and self.parser.get_method() == b"GET"
        self._is_short = asked and idle and self.parser.should_keep_alive()
        if not self._is_short:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._is_short:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._is_short:
            super().on_message_complete()
            return
        word = request_id(dict(self.headers).get(ID_HEADER, b""))
        self._joined.write_whole(rendered(HTTPStatus.OK, word, self._health()))
        self.on_response_complete()

    def send_400_response(self, msg: str) -> None:
        word = request_id()
        body = error_body("bad_http", f"{msg.rstrip('.')}; {HTTP_ADVICE}", word.decode())
        self._joined.write_whole(rendered(HTTPStatus.BAD_REQUEST, word, body, closes=True))
        self.transport.close()


def rendered(status: HTTPStatus, word: bytes, body: bytes, closes: bool = False) -> bytes:
    """A JSON answer as it is sent; `word` is the request's id, and the connection `closes` after it."""
    head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%s: %s\r\n%s\r\n" % (
        *(status, status.phrase.encode(), len(body), ID_HEADER, word),
        b"connection: close\r\n" if closes else b"",
    )
    return head + body


class Server(uvicorn.Server):
    """uvicorn without signal handlers of its own: it would end by the signal, and we end with code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def server(app: Callable[..., Any], health: Callable[[], bytes]) -> Server:
    """A server for an ASGI application; `health` is the body of its `/health`."""
    return Server(
        uvicorn.Config(
            app,
            http=cast(type[asyncio.Protocol], functools.partial(Protocol, health=health)),
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            # Neither address nor header of a request is used, and each of these costs every request time.
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=FINISH_S,
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        EnvironmentFault: the address cannot be bound; the message names it.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        message = f"{host}:{port} cannot be bound ({error.strerror}); end what holds it, or choose another port"
        raise EnvironmentFault(message) from error


def ending() -> asyncio.Event:
    """An event that SIGTERM, SIGINT and SIGHUP set. Call it in the event loop of the main thread."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            loop.add_signal_handler(number, asked.set)
    for number in (signal.SIGUSR1, signal.SIGUSR2):  # a scheduler's warnings are for who runs the job
        signal.signal(number, signal.SIG_IGN)
    process.let_stops_in()
    return asked


def run(main: Coroutine[Any, Any, int]) -> int:
    """Run a service's main coroutine; its exit code."""
    # Each client costs a descriptor, and the usual limit is soon spent by clients that say nothing.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # What is there now stays: collections that walk over it would only add pauses to requests.
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
