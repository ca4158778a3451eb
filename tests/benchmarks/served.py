"""A judge as `kcourt serve` starts it, for benchmarks that ask one over HTTP."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from ports import free_port

READY_WITHIN_S = 60


@dataclass(frozen=True)
class Served:
    """A judge that answers: its router's process id, a client of it, and the folder where its shard lies."""

    pid: int
    client: httpx.Client
    folder: Path

    def grade(self, route: str, kernel: str, source: str) -> str:
        """The grade's id; raises httpx.HTTPStatusError when the judge refuses."""
        answer = self.client.post(f"/{route}", json={"kernel": kernel, "language": "c", "source": source})
        answer.raise_for_status()
        return str(answer.json()["grade_id"])


@contextmanager
def judge(preset: str = "S") -> Iterator[Served]:
    """An open judge on loopback; it has ended when the block has."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        argv = [str(Path(sys.executable).with_name("kcourt")), "serve", "--port", str(port)]
        argv += ["--allow-sandbox", "limits", "--preset", preset]
        process = subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                _await_healthy(client)
                yield Served(process.pid, client, Path(folder))
        finally:
            process.terminate()
            process.wait()


def _await_healthy(client: httpx.Client) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        try:
            if client.get("/health").json().get("status") == "ok":
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise TimeoutError(f"the judge did not become healthy within {READY_WITHIN_S} s")
