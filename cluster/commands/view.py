"""Shows a job while it lives: a live table on a terminal, plain lines everywhere else."""

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cluster.job.life import View
from cluster.job.progress import Progress

PLAIN_EVERY_S = 10.0


def progress_line(progress: Progress) -> str:
    """One line: episodes, grades by kind, and what waits at each rank."""
    grades = ", ".join(f"{number} {kind}" for kind, number in progress.grades.items()) or "none"
    ranks = ", ".join(f"rank {rank.rank} {rank.state} ({rank.queue_depth} queued)" for rank in progress.ranks)
    episodes = f"{progress.ended}/{progress.planned} ended, {progress.running} running, {progress.left} left"
    return f"episodes: {episodes} | grades: {grades} | {ranks}"


class PlainView:
    """One line a phase, and a progress line when something changed, at most every PLAIN_EVERY_S seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ("", float("-inf"))

    def phase(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def progress(self, progress: Progress) -> None:
        line, now = progress_line(progress), time.monotonic()
        if line != self._last[0] and now - self._last[1] >= PLAIN_EVERY_S:
            self._last = (line, now)
            self.phase(line)


class LiveView(AbstractContextManager["LiveView"]):
    """A table that is drawn over, with the phases above it."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> "LiveView":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def phase(self, text: str) -> None:
        self._live.console.print(Text(text))

    def progress(self, progress: Progress) -> None:
        self._live.update(live_table(progress))


def live_table(progress: Progress) -> Group:
    """Episodes and grades so far, and one row a rank."""
    table = Table("rank", "state", "queued", "submits in flight")
    for rank in progress.ranks:
        table.add_row(str(rank.rank), rank.state, str(rank.queue_depth), str(rank.inflight_submits))
    grades = "   ".join(f"{kind} {number}" for kind, number in progress.grades.items()) or "none yet"
    episodes = f"episodes  {progress.ended} done   {progress.running} running   {progress.left} left"
    return Group(Text(episodes), Text(f"grades    {grades}   ({progress.solved} submits solved)"), table)


class _Opened(Protocol):
    def __enter__(self) -> View: ...
    def __exit__(self, *_: object) -> object: ...


def view_for(console: Console) -> _Opened:
    """The view that suits where the output goes; use it in a `with`."""
    return LiveView(console) if console.is_terminal else nullcontext(PlainView(console))
