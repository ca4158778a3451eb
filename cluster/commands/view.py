"""Shows a job: while it lives, a live table on a terminal and plain lines everywhere else; whole views of any job."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from textwrap import indent
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bench.reports.terminal import plain_table
from cluster.job.life import View
from cluster.job.progress import Progress
from cluster.job.stages import Life
from cluster.job.watch import Outcome, Watched
from cluster.study.wall_time import wall_text

PLAIN_EVERY_S = 10.0
LOOK_EVERY_S = 2.0
SHOWN_SENTENCES = 5
STEP_COLUMNS = ("step", "host", "stage", "queued", "submits in flight", "note")


def progress_line(progress: Progress) -> str:
    """One line: episodes, grades by kind, and what waits at each rank."""
    grades = ", ".join(f"{number} {kind}" for kind, number in progress.grades.items()) or "none"
    ranks = ", ".join(f"rank {rank.rank} {rank.state} ({rank.queue_depth} queued)" for rank in progress.ranks)
    episodes = f"{progress.ended}/{progress.planned} ended, {progress.running} running, {progress.left} left"
    return f"episodes: {episodes} | grades: {grades} | {ranks}"


class _Throttle:
    """Lets a line through that differs from the last one, at most every PLAIN_EVERY_S seconds."""

    def __init__(self) -> None:
        self._last, self._shown_at = "", float("-inf")

    def passes(self, line: str) -> bool:
        now = time.monotonic()
        if line == self._last or now - self._shown_at < PLAIN_EVERY_S:
            return False
        self._last, self._shown_at = line, now
        return True


class PlainView:
    """One line a phase, and a progress line when something changed, at most every PLAIN_EVERY_S seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._throttle = _Throttle()

    def phase(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def progress(self, progress: Progress) -> None:
        line = progress_line(progress)
        if self._throttle.passes(line):
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
    return Group(Text(_episodes(progress)), Text(_grades(progress)), table)


def _episodes(progress: Progress) -> str:
    return f"episodes  {progress.ended} done   {progress.running} running   {progress.left} left"


def _grades(progress: Progress) -> str:
    grades = "   ".join(f"{kind} {number}" for kind, number in progress.grades.items()) or "none yet"
    return f"grades    {grades}   ({progress.solved} submits solved)"


class _Opened(Protocol):
    def __enter__(self) -> View: ...
    def __exit__(self, *_: object) -> object: ...


def view_for(console: Console) -> _Opened:
    """The view that suits where the output goes; use it in a `with`."""
    return LiveView(console) if console.is_terminal else nullcontext(PlainView(console))


def watch_view(watched: Watched) -> Group:
    """A whole view of a job: where it is, how far, its budgets, one row a step, what went wrong, how it ended."""
    parts: list[RenderableType] = [Text(line) for line in _head(watched)]
    if watched.steps:
        rows = [
            (row.step, row.host, row.stage, row.queue_depth, row.inflight_submits, row.note or None)
            for row in watched.steps
        ]
        parts.append(plain_table(STEP_COLUMNS, rows))
    told = watched.state.said[-SHOWN_SENTENCES:] if watched.state else ()
    said = [f"{one.at[11:19]}  {one.text}" for one in told]
    lines = (*_listed("said (UTC)", said), *_listed("errors", watched.errors), *_tail(watched))
    return Group(*parts, *(Text(printable(line)) for line in lines))


def printable(text: str) -> str:
    """A text with nothing in it that would steer a terminal: others wrote it."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def _head(watched: Watched) -> Iterator[str]:
    yield f"job       {watched.job_id}   {_where(watched)}"
    yield f"run       {watched.run}"
    yield _episodes(watched.progress)
    recent, overall = watched.pace.recent, watched.pace.overall
    paces = [f"{recent:.0f} an hour in the last 10 minutes"] if recent is not None else []
    paces += [f"{overall:.0f} an hour overall"] if overall is not None else []
    yield "   ".join([_grades(watched.progress), *paces])
    yield f"budgets   {_budgets(watched)}"


def _where(watched: Watched) -> str:
    """`running, working for 0:12:03, heard of 1 s ago`."""
    state = watched.state
    if state is None:
        return ", ".join(dict.fromkeys([watched.life, Life.UNKNOWN]))
    if watched.is_over:
        return watched.life
    parts = [f"{state.phase} for {_span(state.phase_age_s(watched.at))}"]
    parts.append(f"heard of {max(0.0, state.age_s(watched.at)):.0f} s ago")
    if state.quiet_s >= 60:
        parts.append(f"no event for {_span(state.quiet_s)}")
    return ", ".join([watched.life, *parts])


def _budgets(watched: Watched) -> str:
    tokens = watched.tokens
    parts = [f"tokens {tokens.used:,} by {tokens.episodes} ended episodes, at most {tokens.most:,} of {tokens.cap:,}"]
    if watched.left_s is not None:
        parts.append(f"wall time left {wall_text(max(0, int(watched.left_s)))}")
    return "   ".join(parts)


def _span(seconds: float) -> str:
    return str(timedelta(seconds=max(0, int(seconds))))


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    """Lines below a title; what goes on over several lines stays indented."""
    return [title, *(indent(line, "  ") for line in lines)] if lines else []


def _tail(watched: Watched) -> Iterator[str]:
    if watched.outcome:
        yield f"ended     {_ending(watched.outcome)}"
    if watched.advice:
        yield watched.advice


def _ending(outcome: Outcome) -> str:
    ending = outcome.ending
    reason = ending.reason.partition("\n")[0]
    code = f"exit {int(ending.exit_code)} ({ending.exit_code.name.lower()}: {ending.cause}, {reason})"
    standings = ", ".join(f"{number} {standing}" for standing, number in outcome.standings.items())
    owed = ", ".join(f"{number} {blame}" for blame, number in outcome.owed_by_class.items())
    return f"{code} after {_span(ending.seconds)}; {standings}{f' ({owed})' if owed else ''}"


def watch_line(watched: Watched) -> str:
    """One line of a job that is followed: its phase and its progress."""
    phase = watched.state.phase if watched.state else "-"
    return f"{watched.life}, {phase} | {progress_line(watched.progress)}"


def follow(look: Callable[[], Watched], console: Console, pause: Callable[[float], None] = time.sleep) -> None:
    """Show a job until it has ended, then its whole view once more."""
    watched = _follow_live(look, console, pause) if console.is_terminal else _follow_plainly(look, console, pause)
    console.print(watch_view(watched), soft_wrap=not console.is_terminal)


def _follow_live(look: Callable[[], Watched], console: Console, pause: Callable[[float], None]) -> Watched:
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while not (watched := look()).is_over:
            live.update(watch_view(watched), refresh=True)
            pause(LOOK_EVERY_S)
    return watched


def _follow_plainly(look: Callable[[], Watched], console: Console, pause: Callable[[float], None]) -> Watched:
    """What the operator is told, as it comes, and a line now and then when something changed."""
    throttle, told = _Throttle(), ""
    while not (watched := look()).is_over:
        for said in watched.state.said if watched.state else ():
            if said.at > told:
                told = said.at
                console.print(Text(printable(said.text)), soft_wrap=True)
        line = watch_line(watched)
        if throttle.passes(line):
            console.print(Text(line), soft_wrap=True)
        pause(LOOK_EVERY_S)
    return watched
