"""A search provider and the pages that it finds, on loopback: some good, some made to do harm."""

import gzip
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "serp-key-of-this-test"
ARTICLE = """<!doctype html><html><head><title>Blocking</title><style>p {color: red}</style></head><body>
<nav>Home | About</nav><script>var hidden = "<p>no</p>";</script>
<h1>Cache blocking</h1><p>Tile the loops so that   a block
fits the L1 cache &amp; is used again.</p>
<pre>for (int i = 0; i &lt; n; i += 64)
    work(i);</pre>
<table><tr><td>tile</td><td>64</td></tr></table><footer>Imprint</footer></body></html>"""


@dataclass
class StubSearch:
    """The server. `results` are paths below its root, or whole addresses; `answers` is a status and a body instead."""

    results: list[str] = field(default_factory=list)
    answers: tuple[int, bytes] | None = None
    delay_s: float = 0
    asked: list[dict[str, str]] = field(default_factory=list)
    fetched: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "StubSearch":
        handler = type("Handler", (_Handler,), {"stub": self})
        self._server = ThreadingHTTPServer(("0.0.0.0", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str = "", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self._server.server_port}{path}"

    @property
    def provider(self) -> str:
        return self.url("/search.json")

    def found(self) -> list[dict[str, Any]]:
        """The results as a provider lists them."""
        return [
            {
                "position": number,
                "title": f"About {path}",
                "link": path if "//" in path else self.url(path),
                "snippet": f"What the provider says of {path}.",
            }
            for number, path in enumerate(self.results, start=1)
        ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub: StubSearch

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/search.json":
            return self._search({name: values[0] for name, values in parse_qs(parts.query).items()})
        self.stub.fetched.append((self.path, dict(self.headers)))
        return PAGES.get(parts.path, _missing)(self)

    def _search(self, asked: dict[str, str]) -> None:
        self.stub.asked.append(asked)
        self.stub.closing.wait(self.stub.delay_s)
        if self.stub.answers is not None:
            return self.say(*self.stub.answers, kind="application/json")
        body: dict[str, Any] = {"search_metadata": {"status": "Success"}, "search_parameters": asked}
        if self.stub.results:
            body["organic_results"] = self.stub.found()
        else:
            body["error"] = "Nothing matches this query."
        return self.say(200, json.dumps(body).encode(), kind="application/json")

    def say(self, status: int, body: bytes, kind: str = "text/html; charset=utf-8", **headers: str) -> None:
        self.send_response(status)
        fields = {"Content-Type": kind, "Content-Length": str(len(body)), **headers}
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def drip(self, chunk: bytes, pause_s: float, kind: str = "text/html") -> None:
        """Send for as long as anybody listens."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while not self.stub.closing.wait(pause_s):
                self.wfile.write(chunk)
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        pass


def _missing(handler: _Handler) -> None:
    handler.say(404, b"no such page")


def _to(location: Callable[[StubSearch], str]) -> Callable[[_Handler], None]:
    return lambda handler: handler.say(302, b"", Location=location(handler.stub))


PAGES: dict[str, Callable[[_Handler], None]] = {
    "/good": lambda handler: handler.say(200, ARTICLE.encode()),
    "/plain": lambda handler: handler.say(200, b"prefetch distance: 8 lines", kind="text/plain"),
    "/latin": lambda handler: handler.say(
        200, "<p>Gr\xf6\xdfe</p>".encode("latin-1"), kind="text/html; charset=latin-1"
    ),
    "/meta": lambda handler: handler.say(
        200, '<meta charset="latin-1"><p>Gr\xf6\xdfe</p>'.encode("latin-1"), kind="text/html"
    ),
    "/empty": lambda handler: handler.say(200, b"<script>only()</script>"),
    "/slow": lambda handler: handler.drip(b"<p>slow</p>", 0.1),
    "/huge": lambda handler: handler.drip(b"<p>" + b"word " * 4096 + b"</p>", 0),
    "/binary": lambda handler: handler.say(200, b"%PDF-1.7", kind="application/pdf"),
    "/disguised": lambda handler: handler.say(200, b"\x7fELF\0\0", kind="text/html"),
    "/packed": lambda handler: handler.say(200, gzip.compress(b"x" * 9_000_000), Content_Encoding="gzip"),
    "/hostile": lambda handler: handler.say(200, b"<!" + b"<!" * 400_000),
    "/loop": _to(lambda stub: "/loop"),
    "/moved": _to(lambda stub: "/good"),
    "/inward": _to(lambda stub: stub.url("/good", host="127.0.0.2")),
    "/elsewhere": _to(lambda stub: "ftp://127.0.0.1/file"),
    "/unusual": lambda handler: handler.say(520, b"?"),
    "/late": lambda handler: (time.sleep(0.3), handler.say(200, ARTICLE.encode()))[1],
}
