"""How fast `/health` answers through the router: 64 open keep-alive connections, 200 requests a second in total."""

import asyncio
import gc
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import uvloop
from judge_rank import rank

CONNECTIONS, PER_SECOND, WARM_S, MEASURED_S = 64, 200, 1.0, 10.0
GOALS_MS = {50: 1.0, 99: 5.0}
REQUEST = b"GET /health HTTP/1.1\r\nHost: judge\r\n\r\n"
END = b"}"


class Connection(asyncio.Protocol):
    """One kept connection; notes the seconds from each request to the end of its answer.

    A callback and not a stream or an HTTP client, whose own time would be most of what is measured.
    """

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = seconds

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self) -> None:
        self._start = time.perf_counter()
        self._transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        if data.endswith(END):
            self._seconds.append(time.perf_counter() - self._start)

    def close(self) -> None:
        self._transport.close()


async def load(port: int) -> list[float]:
    """Seconds of each answer, after a warm-up; requests start on time, whatever the answers before them took."""
    loop = asyncio.get_running_loop()
    seconds: list[float] = []
    made = [await loop.create_connection(lambda: Connection(seconds), "127.0.0.1", port) for _ in range(CONNECTIONS)]
    connections = [connection for _, connection in made]
    gc.collect()
    gc.freeze()
    start = loop.time() + 0.2
    for number in range(int(PER_SECOND * (WARM_S + MEASURED_S))):
        loop.call_at(start + number / PER_SECOND, connections[number % CONNECTIONS].ask)
    await asyncio.sleep(0.2 + WARM_S + MEASURED_S + 1)
    for connection in connections:
        connection.close()
    return seconds[int(PER_SECOND * WARM_S) :]


def measure() -> list[dict[str, Any]]:
    """The 50th and 99th percentile in ms, through a router in front of a real judge."""
    with tempfile.TemporaryDirectory() as folder, rank(Path(folder)) as running:
        milliseconds = [second * 1e3 for second in uvloop.run(load(running.port))]
    cuts = statistics.quantiles(milliseconds, n=100)
    return [
        {
            "name": f"/health through the router, p{percent}",
            "value": round(cuts[percent - 1], 3),
            "unit": "ms",
            "goal": goal,
            "min": min(milliseconds),
            "max": max(milliseconds),
            "n": len(milliseconds),
        }
        for percent, goal in GOALS_MS.items()
    ]


if __name__ == "__main__":
    print(json.dumps(measure()))
