"""Keeps the steps of a job: starts them, notices how each ended, stops them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from cluster.job.documents import write_json
from cluster.job.launchers import Launcher, Role, Running, Step, unrecorded, wait
from cluster.job.layout import RunLayout
from cluster.job.lines import log_tail
from cluster.job.records import EndRecord, StepState, end_record

# A node that has room starts a step within seconds; no episode would ever end that one.
BEGIN_WITHIN_S = 300.0


class Beginnings:
    """Steps that have been asked for and of which nothing has begun yet; `clock` counts seconds."""

    def __init__(self, steps: Sequence[Running], clock: Callable[[], float] = time.monotonic) -> None:
        self._waiting, self._clock, self._since = list(steps), clock, clock()

    def late(self, limit_s: float = BEGIN_WITHIN_S) -> str:
        """Which of them wait for longer than `limit_s` seconds, with what their launcher printed; empty: none."""
        self._waiting = [one for one in self._waiting if one.poll() is None and one.step.read_begin() is None]
        waited_s = self._clock() - self._since
        if not self._waiting or waited_s < limit_s:
            return ""
        first = self._waiting[0].step
        return f"{len(self._waiting)} steps have not begun after {waited_s:.0f} s; {first.name}:\n{log_tail(first.log)}"


class Steps:
    """Every step of the job: sees to it that each has a record of its end, and leaves nothing running."""

    def __init__(self, launcher: Launcher, layout: RunLayout) -> None:
        self._launcher = launcher
        self._layout = layout
        self._started: list[Running] = []
        self._recorded: set[str] = set()

    def start(self, step: Step) -> Running:
        running = self._launcher.start(step)
        self._started.append(running)
        return running

    def note_ends(self) -> None:
        """Write the record of each step that has ended since the last call and wrote none itself."""
        for running in self._started:
            end = running.poll()
            if end is not None and running.step.name not in self._recorded:
                self._note(end)

    def _note(self, end: EndRecord) -> None:
        self._recorded.add(end.name)
        if end.exit_code is None:
            write_json(end_record(self._layout.steps, end.name), asdict(end))

    def stop(self, *roles: Role, grace_s: float) -> None:
        """Ask the steps of these roles to end, give them `grace_s` seconds in all, then kill what is left."""
        self.note_ends()
        chosen = [running for running in self._started if running.step.role in roles and running.poll() is None]
        self._launcher.stop(chosen)
        deadline = time.monotonic() + grace_s
        self._kill([one for one in chosen if wait(one, max(0.0, deadline - time.monotonic())) is None])
        self.note_ends()

    def kill_all(self) -> None:
        """End everything that still runs, at once: the last resort of a job that fails itself."""
        self._kill([running for running in self._started if running.poll() is None])
        self.note_ends()

    def _kill(self, chosen: Sequence[Running]) -> None:
        if not chosen:
            return
        self._launcher.kill(chosen)
        for running in chosen:
            # Nobody else can say it: what writes the records was killed as well.
            self._note(running.step.read_end() or unrecorded(running.step, StepState.KILLED, stopped=True))
