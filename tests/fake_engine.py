"""A process that stands for `vllm`: its command line and its routes, without a model, and with faults on demand.

`install` writes it into a folder to put on PATH; what `behave` says there is followed by engines that run, too.
"""

import argparse
import contextlib
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any

VERSION = "0.0.1+fake"
PROGRAM, WISHES = "vllm", "engine.json"
LOOK_EVERY_S = 0.02
EXIT_CODE = 3
# Times are seconds since the engine's start. One that died exits with EXIT_CODE, a frozen one answers /health alone;
# `serves` is a served name in place of the one asked for, `says` the text of every completion, `eats_mb` memory.
DEFAULTS = {
    "starts_after_s": 0,
    "dies_after_s": None,
    "freezes_after_s": None,
    "serves": None,
    "says": "Fine.",
    "eats_mb": 0,
}


def install(folder: Path) -> Path:
    """Write the program `vllm` into a folder; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / PROGRAM
    # Isolated and without site-packages, so that it starts at once and needs nothing of this environment.
    program.write_text(f"#!{sys.executable} -IS\n{Path(__file__).read_text()}")
    program.chmod(0o755)
    return program


def behave(folder: Path, **wishes: Any) -> None:
    """Tell the engines of a folder what to do, as in DEFAULTS; what is not said goes back to its default."""
    assert wishes.keys() <= DEFAULTS.keys()
    whole = folder / f"{WISHES}.new"
    whole.write_text(json.dumps(DEFAULTS | wishes))
    whole.rename(folder / WISHES)


class Server(ThreadingTCPServer):
    """The engine's server: what it was asked to serve, what it is told to do, and what it counts."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 64

    def __init__(self, asked: argparse.Namespace, started: float) -> None:
        super().__init__((asked.host or "0.0.0.0", asked.port), Handler, bind_and_activate=False)
        self.asked, self.started = asked, started
        self.lock = threading.Lock()
        self.prompt_tokens = self.generation_tokens = self.answered = 0

    @property
    def model(self) -> str:
        return str(wish("serves") or self.asked.served_model_name or self.asked.model_tag)

    def frozen(self) -> bool:
        return due("freezes_after_s", self.started)


class Handler(BaseHTTPRequestHandler):
    """Answers as vLLM documents its routes."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/health":
            return self.send_text("")
        self.freeze_if_told()
        if self.path == "/v1/models":
            return self.send_json({"object": "list", "data": [self.model_card()]})
        if self.path == "/version":
            return self.send_json({"version": VERSION})
        if self.path == "/metrics":
            return self.send_text(self.metrics())
        return self.send_json({"detail": "Not Found"}, 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.freeze_if_told()
        if self.path != "/v1/chat/completions":
            return self.send_json({"detail": "Not Found"}, 404)
        try:
            request = json.loads(body)
            model, messages = request["model"], request["messages"]
        except (ValueError, KeyError, TypeError) as error:
            return self.refuse(400, "BadRequestError", repr(error))
        if model != self.server.model:
            return self.refuse(404, "NotFoundError", f"The model `{model}` does not exist.")
        if request.get("stream"):
            return self.refuse(400, "BadRequestError", "this engine streams nothing")
        return self.complete(messages)

    def complete(self, messages: Any) -> None:
        text = wish("says")
        prompt, generated = len(json.dumps(messages).split()), len(text.split())
        with self.server.lock:
            self.server.prompt_tokens += prompt
            self.server.generation_tokens += generated
            self.server.answered += 1
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated}
        answer = {
            "id": f"chatcmpl-{self.server.answered}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": self.server.model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }
        self.send_json(answer)

    def model_card(self) -> dict[str, Any]:
        return {
            "id": self.server.model,
            "object": "model",
            "created": int(time.time()),
            "owned_by": "vllm",
            "root": self.server.asked.model_tag,
            "max_model_len": self.server.asked.max_model_len or 4096,
        }

    def metrics(self) -> str:
        values = {
            "vllm:num_requests_running": ("gauge", 0),
            "vllm:num_requests_waiting": ("gauge", 0),
            "vllm:prompt_tokens_total": ("counter", self.server.prompt_tokens),
            "vllm:generation_tokens_total": ("counter", self.server.generation_tokens),
            "vllm:request_success_total": ("counter", self.server.answered),
        }
        labels = f'{{model_name="{self.server.model}"}}'
        return "".join(f"# TYPE {name} {kind}\n{name}{labels} {value}\n" for name, (kind, value) in values.items())

    def freeze_if_told(self) -> None:
        while self.server.frozen():
            time.sleep(LOOK_EVERY_S)

    def refuse(self, status: int, kind: str, message: str) -> None:
        self.send_json({"error": {"message": message, "type": kind, "param": None, "code": status}}, status)

    def send_json(self, value: Any, status: int = 200) -> None:
        self.send_text(json.dumps(value), status, "application/json")

    def send_text(self, text: str, status: int = 200, kind: str = "text/plain") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)


def wish(name: str) -> Any:
    """What the engine is told now."""
    file = Path(sys.argv[0]).with_name(WISHES)
    return json.loads(file.read_text())[name] if file.exists() else DEFAULTS[name]


def due(name: str, started: float) -> bool:
    after_s = wish(name)
    return after_s is not None and time.monotonic() - started >= after_s


def parse(argv: list[str]) -> argparse.Namespace:
    """The options of `vllm serve` that tests use; any other is an error, as it is there."""
    parser = argparse.ArgumentParser(prog=PROGRAM)
    parser.add_argument("--version", action="version", version=VERSION)
    serve = parser.add_subparsers(required=True).add_parser("serve")
    serve.add_argument("model_tag")
    serve.add_argument("--host")
    serve.add_argument("--port", type=int, default=8000)
    for option in ("--tensor-parallel-size", "--max-model-len", "--max-num-seqs"):
        serve.add_argument(option, type=int)
    for option in ("--served-model-name", "--revision", "--dtype", "--tool-call-parser", "--gpu-memory-utilization"):
        serve.add_argument(option)
    for option in ("--enable-auto-tool-choice", "--enable-prefix-caching"):
        serve.add_argument(option, action="store_true")
    return parser.parse_args(argv)


def main() -> None:
    started = time.monotonic()
    server = Server(parse(sys.argv[1:]), started)
    listens, eaten = False, b""
    while not due("dies_after_s", started):
        if len(eaten) != (wanted := wish("eats_mb") << 20):
            eaten = b"x" * wanted
        if not listens and due("starts_after_s", started):
            server.server_bind()
            server.server_activate()
            threading.Thread(target=server.serve_forever, daemon=True).start()
            listens = True
            print("Application startup complete.", flush=True)
        time.sleep(LOOK_EVERY_S)
    print("EngineDeadError: told to die", file=sys.stderr, flush=True)
    os._exit(EXIT_CODE)


if __name__ == "__main__":
    main()
