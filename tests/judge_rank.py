"""Starts a real rank for tests on free ports: router and judge, with the fake measuring process or the real one."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from living import family
from ports import free_port

from bench.cache import default_cache
from bench.judge.schemas import token_for

SECRET = bytes(range(32))
SETUPS = {
    "solo": {"setup": "solo", "preset": "S", "submission_mode": "single"},
    "many": {"setup": "many", "preset": "S", "submission_mode": "multi"},
    "dark": {"setup": "dark", "preset": "S", "submission_mode": "blind"},
    "plus": {"setup": "plus", "preset": "S", "submission_mode": "multi", "language": "cpp"},
}
# The kernel of each problem, as a job lists them: all of one, and the last of another.
PROBLEMS = [*["axpy"] * 16, "gelu"]
GOOD = {"kernel": "axpy", "source": "// a good kernel"}
# How long a test waits for what happens at once on an idle machine.
PATIENCE_S = 120.0
# And for a grade, which on a busy machine stands behind the grades of other tests.
GRADING_S = 600.0


@dataclass(frozen=True)
class Rank:
    """A running rank and one client of its router."""

    folder: Path
    config: dict[str, Any]
    process: "subprocess.Popen[bytes]"
    http: httpx.Client

    @property
    def port(self) -> int:
        return int(self.config["router_port"])

    @property
    def shard(self) -> Path:
        return Path(self.config["shard"])

    def judge(self) -> psutil.Process:
        """The judge that runs now."""
        (judge,) = family(self.process.pid, recursive=False)
        return judge

    def wait_until_healthy(self) -> dict[str, Any]:
        return self.wait_for_health(status="ok")

    def wait_for_health(self, **fields: Any) -> dict[str, Any]:
        """Wait until `/health` says so; its whole answer."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                answer = self.http.get("/health")
                if answer.status_code == 200 and answer.json().items() >= fields.items():
                    found: dict[str, Any] = answer.json()
                    return found
            time.sleep(0.02)
        logs = "\n".join(path.read_text()[-3000:] for path in (self.folder / "logs").glob("*.log"))
        raise AssertionError(f"the rank never said {fields}:\n{logs}")

    def post(self, route: str, body: Any = GOOD, label: str | None = None, **headers: str) -> httpx.Response:
        """One request; a label brings its token, `Some_Header=` becomes `Some-Header`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if label:
            named["Authorization"] = f"Bearer {token_for(SECRET, label)}"
            if isinstance(body, dict):
                body = {"rank": 0, **body}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.http.post(route, content=content, headers=named)

    def get(self, route: str, label: str | None = None) -> httpx.Response:
        return self.http.get(route, headers={"Authorization": f"Bearer {token_for(SECRET, label)}"} if label else {})

    def stop(self) -> int:
        """SIGTERM, as a job ends its services; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


def wait_for(path: Path) -> None:
    """Wait until another process has made a file."""
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.005)


def wait_for_text(path: Path, text: str) -> None:
    """Wait until another process has written a text into a file."""
    deadline = time.monotonic() + PATIENCE_S
    while text not in path.read_text():
        assert time.monotonic() < deadline, f"{path} never said {text}"
        time.sleep(0.005)


def write_config(folder: Path, closed: bool = False, **settings: Any) -> Path:
    """A judge's configuration file; a closed judge has a job secret and the setups above."""
    shared = folder / "shared"
    shared.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "router_port": free_port(),
        "judge_port": free_port(),
        "shard": str(folder / "shard.db"),
        "log_dir": str(folder / "logs"),
        "cache_dir": str(folder / "cache"),
        "shared_dir": str(shared),
        "preset": "S",
        "failed_submit_step_s": 0,
        "evaluation": "",  # of the tools there are tests elsewhere
    }
    if closed:
        secret = folder / "secret"
        secret.write_text(SECRET.hex())
        config |= {"secret_file": str(secret), "setups": SETUPS, "problems": PROBLEMS, "run_id": "job-1"}
    path = folder / "judge.json"
    path.write_text(json.dumps(config | settings))
    return path


@contextlib.contextmanager
def rank(
    folder: Path,
    closed: bool = False,
    restarts: int = 5,
    healthy: bool = True,
    stall_s: float = PATIENCE_S,
    measures: bool = False,
    **settings: Any,
) -> Iterator[Rank]:
    """A rank that runs; it is ended, whatever happens. Its router waits `stall_s` for the rest of a body.

    One that `measures` is `kcourt serve` itself, and knows neither `restarts` nor `stall_s`. What it builds once, it
    shares with the grades of other tests.
    """
    shared = {"cache_dir": str(default_cache())} if measures else {}
    path = write_config(folder, closed, **shared | settings)
    program = str(Path(__file__).with_name("fake_rank.py"))
    output = (folder / "router.out").open("ab")
    argv = [sys.executable, program, path, str(restarts), str(stall_s)]
    if measures:
        argv = [str(Path(sys.executable).with_name("kcourt")), "serve", "--config", str(path)]
    process = subprocess.Popen(argv, stdout=output, stderr=output)
    config = json.loads(path.read_text())
    url = f"http://127.0.0.1:{config['router_port']}"
    with httpx.Client(base_url=url, timeout=GRADING_S if measures else PATIENCE_S, trust_env=False) as http:
        running = Rank(folder, config, process, http)
        try:
            if healthy:
                running.wait_until_healthy()
            yield running
        finally:
            process.kill()
            process.wait()
            output.close()
