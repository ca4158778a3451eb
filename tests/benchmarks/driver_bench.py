"""Measures what a driver costs its node: memory a live episode, its growth over many, and how fast episodes pass."""

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.agent_node import SECRET, NodeFiles
from tests.agent_stub import StubJudge

EVERY_S = 0.1
MB = 1e6
SOLVED = "/* solved */"
STEPS = [{"tool": "score", "source": SOLVED}, {"tool": "submit", "source": SOLVED}]


@dataclass(frozen=True)
class Sample:
    """One look at a driver, in bytes: its own resident memory, and what it and its episodes' processes take together.

    Pages that they share are counted once. The clients that they drive are not theirs.
    """

    live: int
    own: int
    together: int


def look(driver: psutil.Process) -> Sample | None:
    """None while no episode is live, or when one ended under the look."""
    try:
        family = [driver, *driver.children()]
        return Sample(len(family) - 1, driver.memory_info().rss, sum(one.memory_full_info().pss for one in family))
    except psutil.Error:
        return None


def watched(driver: "subprocess.Popen[str]") -> Iterator[Sample]:
    """Samples until the driver has ended."""
    process = psutil.Process(driver.pid)
    while driver.poll() is None:
        sample = look(process)
        if sample and sample.live:
            yield sample
        time.sleep(EVERY_S)


def play(root: Path, episodes: int, workers: int) -> tuple[list[Sample], float]:
    """One driver that plays scripted episodes before a judge that answers at once; its samples, and seconds."""
    with StubJudge(0, SECRET) as judge:
        node = NodeFiles(root, [judge.url], workers=workers)
        node.script("bench", STEPS, [f"kernel{number}" for number in range(episodes)])
        begun, driver = time.perf_counter(), node.start()
        samples = [*watched(driver)]
        out, err = driver.communicate()
        assert json.loads(out)["ends"] == {"submitted": episodes}, err
        return samples, time.perf_counter() - begun


def measure(episodes: int = 200, workers: int = 10) -> list[dict[str, Any]]:
    """Memory when all workers are at work, in MB; growth of the driver from the first quarter to the last."""
    with tempfile.TemporaryDirectory() as folder:
        samples, seconds = play(Path(folder), episodes, workers)
    full = [sample for sample in samples if sample.live == workers]
    each = [sample.together / sample.live / MB for sample in full]
    quarter = max(1, len(samples) // 4)
    first, last = (statistics.median(s.own for s in part) / MB for part in (samples[:quarter], samples[-quarter:]))
    what = f"{episodes} scripted episodes, {workers} at a time"
    return [
        {"name": f"driver memory a live episode, {what}", "value": max(each), "unit": "MB", "goal": 40, "n": len(full)},
        {"name": f"driver memory growth, {what}", "value": last - first, "unit": "MB", "goal": 4, "n": len(samples)},
        {"name": f"time an episode, {what}", "value": seconds / episodes, "unit": "s", "n": episodes},
    ]


if __name__ == "__main__":
    print(json.dumps(measure()))
