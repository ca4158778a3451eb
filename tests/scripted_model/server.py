"""The server of a scripted model: chooses a step for each request, plays it, keeps what was asked."""

import json
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .wires import DONE, STREAMS, WHOLES, Asked, Reply, Step, parse, reply_to

TASKS = Path(__file__).resolve().parents[2] / "tasks"
DEMO, ANY = "demo", "*"
PING_EVERY_S = 0.2
SECRET_HEADERS = ("authorization", "x-api-key")
_TASK = re.compile(r"^# Task: (?P<kernel>\w+)", re.MULTILINE)
_FILE = re.compile(r"Write the file `(?P<name>[\w.]+)`")


Script = Mapping[str, Sequence[Step]]


def read_script(steps: Mapping[str, Sequence[Mapping[str, Any]]]) -> Script:
    """Steps as plain data, checked."""
    return {kernel: [Step.model_validate(step) for step in course] for kernel, course in steps.items()}


def demo_course(prompt: str) -> list[Step]:
    """A worse version, a preview of it, the corpus's fast one, a preview, and the submit."""
    kernel, name = (found[1] if (found := pattern.search(prompt)) else "" for pattern in (_TASK, _FILE))
    (folder,) = TASKS.glob(f"*/{kernel}/controls")
    suffix = Path(name).suffix
    right = [path for kind in ("fast", "honest") for path in sorted(folder.glob(f"{kind}_*{suffix}"))]
    steps: list[Step] = []
    for path in [right[-1], right[0]]:
        steps += [Step(text=f"I try {path.stem}.", write=name, source=path.read_text()), Step(call="score")]
    return [*steps, Step(call="submit")]


@dataclass
class ScriptedModel:
    """The server, on loopback unless told; `asked` holds every request that had tools or a prompt, as they came."""

    script: Script | None
    log: Path | None = None
    port: int = 0
    host: str = "127.0.0.1"
    asked: list[Asked] = field(default_factory=list)
    failed: Counter[tuple[str, int]] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "ScriptedModel":
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = _Server((self.host, self.port), handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self._server.server_port}"

    def step(self, asked: Asked) -> Step:
        """The step that answers a request: failures that are due come before the turn itself."""
        if not asked.tools:
            return Step(text="A title")  # what clients ask beside the work
        kernel, course = self._course(asked.prompt)
        left = asked.turn
        for number, step in enumerate(course):
            if not step.fails:
                if left == 0:
                    return step
                left -= 1
            elif left == 0 and (step.times is None or self._count(kernel, number) <= step.times):
                return step
        return Step(text=DONE)

    def note(self, asked: Asked) -> None:
        with self.lock:
            self.asked.append(asked)
            if self.log:
                with self.log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asked.record()) + "\n")

    def _course(self, prompt: str) -> tuple[str, Sequence[Step]]:
        if self.script is None:
            return DEMO, demo_course(prompt)
        kernel = next((name for name in self.script if re.search(rf"\b{re.escape(name)}\b", prompt)), ANY)
        return kernel, self.script.get(kernel, ())

    def _count(self, kernel: str, number: int) -> int:
        with self.lock:
            self.failed[kernel, number] += 1
            return self.failed[kernel, number]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # A client that was killed does not take its answer.


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ScriptedModel

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(200, {})

    def do_GET(self) -> None:
        self._answer(404, _error("not_found_error", "no such path"))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in SECRET_HEADERS}
        asked = parse(self.path, body, headers)
        if asked.wire == "count_tokens":
            return self._answer(200, {"input_tokens": len(json.dumps(body)) // 4})
        if asked.wire not in STREAMS:
            return self._answer(404, _error("not_found_error", "no such path"))
        self.model.note(asked)
        step = self.model.step(asked)
        self.model.closing.wait(step.delay_s)
        if step.error is not None:
            return self._answer(step.error, _error("api_error", step.message))
        return self._reply(asked, reply_to(asked, step))

    def _reply(self, asked: Asked, reply: Reply) -> None:
        if body := (WHOLES.get(asked.wire) if not asked.body.get("stream") else None):
            if reply.step.stall:
                self.model.closing.wait()
            return self._answer(200, body(asked, reply))
        self._head("text/event-stream")
        self.close_connection = True
        for number, (kind, event) in enumerate(STREAMS[asked.wire](asked, reply)):
            if number == 2 and reply.step.stall:
                self._hold(pings=reply.step.stall == "pings")
            self._send(kind, event)
        if asked.wire == "completions":
            self.wfile.write(b"data: [DONE]\n\n")

    def _hold(self, pings: bool) -> None:
        """Keep a stream open and say nothing more, or nothing that matters."""
        while not self.model.closing.wait(PING_EVERY_S):
            if pings:
                self._send("ping", {"type": "ping"})

    def _send(self, kind: str | None, event: dict[str, Any]) -> None:
        name = f"event: {kind}\n" if kind else ""
        self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def _head(self, kind: str, length: int | None = None, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is None:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        data = b"" if self.command == "HEAD" else json.dumps(content).encode()
        self._head("application/json", len(data), status)
        self.wfile.write(data)


def _error(kind: str, message: str) -> dict[str, Any]:
    """An error as each of the wire formats words it."""
    return {"type": "error", "error": {"type": kind, "message": message, "code": kind}}
