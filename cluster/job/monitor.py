"""Samples the use of one node (CPU, memory, network, GPUs) into a CSV file."""

import csv
import io
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from agent.journal import utc_now
from bench import process
from bench.errors import EnvironmentFault, UsageError
from cluster.job.endings import Interrupts

TIME = "time"
# Columns say their units; network bytes are of the time since the row before.
NODE_COLUMNS = (
    *(TIME, "cpu_percent", "load1", "memory_used_bytes", "memory_total_bytes"),
    *("net_received_bytes", "net_sent_bytes"),
)
DRM = Path("/sys/class/drm")
# The end of a job does not wait for a driver that hangs.
NVIDIA_WITHIN_S = 0.9
NVIDIA_QUERY = (
    "nvidia-smi",
    "--query-gpu=index,utilization.gpu,memory.used",
    "--format=csv,noheader,nounits",
)
_MIB = 1 << 20


@dataclass(frozen=True)
class GpuUse:
    """What one GPU of the node does; None where its driver does not say."""

    index: int
    busy_percent: float | None
    memory_used_bytes: int | None


GpuReader = Callable[[], Sequence[GpuUse]]


def gpu_reader(drm: Path = DRM) -> GpuReader:
    """What reads the GPUs of this node: AMD's from sysfs, else NVIDIA's by nvidia-smi; without any: none."""
    if read_amd(drm):
        return lambda: read_amd(drm)
    if shutil.which(NVIDIA_QUERY[0]):
        return _read_nvidia
    return lambda: ()


def read_amd(drm: Path) -> list[GpuUse]:
    """AMD GPUs by their cards in `drm`, numbered in the cards' order."""
    cards = sorted(drm.glob("card*/device/gpu_busy_percent"), key=lambda path: (len(str(path)), path))
    return [
        GpuUse(index, _number(busy), _whole(_number(busy.with_name("mem_info_vram_used"))))
        for index, busy in enumerate(cards)
    ]


def _number(file: Path) -> float | None:
    with suppress(OSError, ValueError):
        return float(file.read_text(encoding="ascii"))
    return None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _read_nvidia() -> list[GpuUse]:
    done = process.run(NVIDIA_QUERY, limits=process.Limits(wall_s=NVIDIA_WITHIN_S))
    return parse_nvidia(done.output) if done.ok else []


def parse_nvidia(text: str) -> list[GpuUse]:
    """The lines `<index>, <percent>, <MiB>` of nvidia-smi; a number that it does not have stands as `[N/A]`."""
    found = []
    for line in text.splitlines():
        match [cell.strip() for cell in line.split(",")]:
            case [index, busy, memory] if index.isdecimal():
                used = _parsed(memory)
                found.append(GpuUse(int(index), _parsed(busy), None if used is None else int(used * _MIB)))
    return found


def _parsed(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


class Sampler:
    """Looks at this node; each row tells of the time since the one before."""

    def __init__(self, gpus: GpuReader) -> None:
        self._gpus = gpus
        self._indices = [use.index for use in gpus()]
        self._network = _network()
        psutil.cpu_percent()

    @property
    def columns(self) -> list[str]:
        ours = [(f"gpu_{index}_busy_percent", f"gpu_{index}_memory_used_bytes") for index in self._indices]
        return [*NODE_COLUMNS, *(column for pair in ours for column in pair)]

    def row(self) -> list[object]:
        """One value a column; None where there is none."""
        memory, before = psutil.virtual_memory(), self._network
        self._network = _network()
        load = round(os.getloadavg()[0], 2)
        node = [utc_now(), psutil.cpu_percent(), load, memory.used, memory.total, *moved(before, self._network)]
        uses = {use.index: use for use in self._gpus()}
        found = [uses.get(index, GpuUse(index, None, None)) for index in self._indices]
        return [*node, *(value for use in found for value in (use.busy_percent, use.memory_used_bytes))]


Counters = Mapping[str, tuple[int, int]]


def _network() -> Counters:
    """Network card → bytes received and sent since it is there, without what the node says to itself."""
    cards = psutil.net_io_counters(pernic=True)
    return {name: (card.bytes_recv, card.bytes_sent) for name, card in cards.items() if name != "lo"}


def moved(before: Counters, now: Counters) -> tuple[int, int]:
    """Bytes received and sent between two looks; a card that is new counts whole, one that is gone not at all."""
    pairs = [(now[name], before.get(name, (0, 0))) for name in now]
    received, sent = (sum(max(0, new[way] - old[way]) for new, old in pairs) for way in (0, 1))
    return received, sent


def sample(path: Path, every_s: float, sampler: Sampler, after_row: Callable[[], None] = lambda: None) -> int:
    """Append a row every `every_s` seconds until a signal ends it; returns how many.

    Raises:
        UsageError: the file holds other columns.
        EnvironmentFault: the file cannot be written.
    """
    rows, due = 0, time.monotonic()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _start(path, sampler.columns)
        with path.open("a", encoding="utf-8", newline="") as file, Interrupts() as interrupts:
            while True:
                due = max(due + every_s, time.monotonic())
                interrupts.pause(due - time.monotonic())
                if interrupts.verdict:
                    return rows
                # One write a row: what is read meanwhile holds whole rows alone.
                file.write(_line(sampler.row()))
                file.flush()
                rows += 1
                after_row()
    except OSError as error:
        raise EnvironmentFault(
            f"{path}: cannot be written ({error.strerror}); free disk space, or name another file"
        ) from error


def _start(path: Path, columns: Sequence[str]) -> None:
    """Write the header of a new file; an old one goes on if it has the same."""
    header = _line(columns)
    if not path.exists() or not path.stat().st_size:
        path.write_text(header, encoding="utf-8")
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        if file.readline() != header:
            raise UsageError(f"{path}: its columns are not those of this node ({header.strip()}); name another file")


def _line(cells: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow("" if cell is None else cell for cell in cells)
    return text.getvalue()
