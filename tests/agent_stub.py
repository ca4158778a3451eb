"""A judge's HTTP face for the agent's tests: decides by a word in the source, keeps what it was sent."""

import json
import threading
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.judge.schemas import DRIVER_LABEL, Header, Outcome, label_of


@dataclass
class Seen:
    """One request as it arrived."""

    route: str
    label: str | None
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class StubJudge:
    """One rank. `lost` answers 503; `hold` delays the first answer to a submit until the event is set."""

    rank: int
    secret: bytes
    lost: bool = False
    hold: threading.Event | None = None
    seen: list[Seen] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    submitted: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> "StubJudge":
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = stub.handle(self.path, dict(self.headers), body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # A client that was killed does not take its answer.

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.hold:
            self.hold.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def handle(self, route: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        label = label_of(self.secret, headers.get("Authorization", "").removeprefix("Bearer "))
        key = headers[Header.IDEMPOTENCY]
        with self.lock:
            known = key in self.answers
            self.seen.append(Seen(route, label, headers, body))
        if self.lost:
            return _error(503, "rank_lost")
        if label is None:
            return _error(401, "unauthorized")
        if (label == DRIVER_LABEL) != (Header.KIND in headers):
            return _error(403, "forbidden")
        if body["rank"] != self.rank:
            return _error(421, "wrong_rank")
        episode = headers.get(Header.EPISODE, label)
        with self.lock:
            again = episode in self.submitted and not episode.startswith("multi.")
            if route == "/submit" and not known and again:
                return _error(409, "already_submitted")
            answer = self.answers.setdefault(key, self.grade(body))
            if route == "/submit" and answer["outcome"] != Outcome.JUDGE_FAULT:
                self.submitted.add(episode)
        if route == "/submit":
            self.arrived.set()
            if self.hold and not known:
                self.hold.wait(300)
        return 200, answer

    def grade(self, body: dict[str, Any]) -> dict[str, Any]:
        """The outcome is the first word of the source's comment: `/* wrong */`."""
        outcome = Outcome(body["source"].split()[1])
        return {
            "grade_id": str(uuid.uuid4()),
            "kernel": body["kernel"],
            "rank": self.rank,
            "outcome": outcome,
            "score": 2.0 if outcome is Outcome.SOLVED else None,
            "protocol": "mw2x5",
        }


def _error(status: int, code: str) -> tuple[int, dict[str, Any]]:
    message = f"{code}: the stub judge says so"
    return status, {"error": {"code": code, "message": message, "request_id": "r"}}
