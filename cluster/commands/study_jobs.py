"""Runs the setups of a study: as jobs of Slurm, or as few jobs as possible on this machine; and finds them again."""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from bench.errors import EnvironmentFault, ExitCode
from bench.judge.schemas import Problem
from bench.places import anchored
from bench.reports.terminal import console_for
from cluster.commands.local_job import Done, live, print_done
from cluster.commands.study_view import print_lines, print_rows
from cluster.job.layout import RunLayout
from cluster.job.summary import exit_of
from cluster.study import queue
from cluster.study.jobs import PlannedJob, jobs_of, waves
from cluster.study.problems import problems_of
from cluster.study.queue import QueuedJob, QueueState
from cluster.study.render import RenderedSetup
from cluster.study.settings import JobSettings, read_settings
from cluster.study.snapshots import Snapshot, snapshot
from cluster.study.status import Accounts, Part, Planned, Tally, account, find_runs
from cluster.study.studies import Study

# A controller serves everybody: one question for all jobs, seldom once they have been followed for some minutes.
LOOK_EVERY_S, FIRST_LOOK_S, MISSED_LOOKS = 30.0, 2.0, 20
SHOWN_SLOTS = 4  # of those with one reason; --json has them all


def run_locally(study: Study, rendered: Sequence[RenderedSetup], run_root: Path | None, as_json: bool) -> ExitCode:
    """Run a study here, in as few jobs as its setups can share; returns the first exit code that is not 0."""
    done = [_run_wave(wave.setups, run_root, as_json) for wave in waves(rendered)]
    if as_json:
        typer.echo(json.dumps({"study": study.study, "jobs": [one.document() for one in done]}))
    else:
        print_accounts(accounts_of(study, rendered, run_root))
    return _worst([one.summary.ending.exit_code for one in done])


def _run_wave(wave: Sequence[RenderedSetup], run_root: Path | None, as_json: bool) -> Done:
    now = datetime.now(UTC)
    console = console_for(stderr=as_json)
    done = live([snapshot(setup, now).env for setup in wave], {}, run_root, console)
    if not as_json:
        print_done(console, done)
    return done


def submit_to_slurm(
    study: Study, rendered: Sequence[RenderedSetup], *, again: bool, wait: bool, as_json: bool
) -> ExitCode:
    """Submit the jobs of a study, without the setups that have one in the queue unless `again`.

    Raises:
        EnvironmentFault: Slurm does not answer, or sbatch refuses a job.
    """
    known = {} if again else queue.by_setup(queue.own_jobs())
    jobs = [
        SubmittedJob((setup,), known[setup.name].job_id, known[setup.name].state)
        for setup in rendered
        if setup.name in known
    ]
    now = datetime.now(UTC)
    for job in jobs_of([setup for setup in rendered if setup.name not in known]):
        jobs.append(_submitted(job, now, jobs))
    if not as_json:
        print_lines([*(line for job in jobs for line in job.lines), *_how_to_watch(jobs)])
    code = _follow(jobs, as_json) if wait else ExitCode.OK
    if as_json:
        documents = [document for job in jobs for document in job.documents]
        typer.echo(json.dumps({"study": study.study, "jobs": documents, "exit_code": code}))
    elif wait:
        print_accounts(accounts_of(study, rendered, None))
    return code


@dataclass(frozen=True)
class SubmittedJob:
    """A job in the queue and the setups it serves; without snapshots it was there before."""

    setups: tuple[RenderedSetup, ...]
    job_id: str
    state: QueueState
    snapshots: tuple[Snapshot, ...] = ()

    @property
    def lines(self) -> list[str]:
        """One sentence a setup."""
        if not self.snapshots:
            left_out = f"left out, job {self.job_id} is {self.state}; --again submits it once more"
            return [f"{setup.name}: {left_out}" for setup in self.setups]
        return [f"{made.setup}: job {self.job_id}, {made.env}" for made in self.snapshots]

    @property
    def layout(self) -> RunLayout:
        return RunLayout(anchored(self.setups[0].settings.run_root) / self.job_id)

    @property
    def documents(self) -> list[dict[str, Any]]:
        """One JSON-able record a setup."""
        envs = {made.setup: str(made.env) for made in self.snapshots}
        return [
            {"setup": one.name, "job": self.job_id, "state": self.state.value, "snapshot": envs.get(one.name)}
            for one in self.setups
        ]


def _how_to_watch(jobs: Sequence[SubmittedJob]) -> list[str]:
    """One line for however many new jobs."""
    new = [job for job in jobs if job.snapshots]
    which = "it" if len(new) == 1 else "the first one"
    return [f"to watch {which}: kcourt watch {new[0].layout.root}"] if new else []


def _submitted(job: PlannedJob, now: datetime, before: Sequence[SubmittedJob]) -> SubmittedJob:
    """Snapshot and submit one job; a refusal names the jobs that are there already."""
    settings = job.first.settings
    made, logs = tuple(snapshot(setup, now) for setup in job.setups), queue.logs_folder(settings.kcourt_scratch)
    argv = queue.sbatch_argv(job.shape, made, logs, settings, os.environ)
    try:
        return SubmittedJob(job.setups, queue.submit(argv, logs), QueueState.QUEUED, made)
    except EnvironmentFault as error:
        done = ", ".join(one.job_id for one in before if one.snapshots) or "none"
        raise EnvironmentFault(f"setup '{job.name}': {error} (jobs submitted before it: {done})") from error


def _follow(jobs: Sequence[SubmittedJob], as_json: bool) -> ExitCode:
    """Wait until none of the jobs is in the queue any more; the first exit code that is not 0."""
    console, last, ours = console_for(stderr=as_json), "", {job.job_id for job in jobs}
    started = time.monotonic()
    while left := [job for job in _queue_patiently() if job.job_id in ours]:
        running = sum(job.state is QueueState.RUNNING for job in left)
        line = f"{running} jobs run, {len(left) - running} wait, {len(jobs) - len(left)} have ended"
        if line != last:
            console.print(line, highlight=False)
        last = line
        time.sleep(min(LOOK_EVERY_S, FIRST_LOOK_S + (time.monotonic() - started) / 10))
    return _worst([exit_of(job.layout) for job in jobs])


def _queue_patiently() -> list[QueuedJob]:
    """The queue; Slurm may be away for some minutes while jobs are followed for hours."""
    for _ in range(MISSED_LOOKS):
        with contextlib.suppress(EnvironmentFault):
            return queue.own_jobs()
        time.sleep(LOOK_EVERY_S)
    return queue.own_jobs()


def _worst(codes: Sequence[ExitCode]) -> ExitCode:
    return next((code for code in codes if code is not ExitCode.OK), ExitCode.OK)


def accounts_of(study: Study, built: Sequence[RenderedSetup], run_root: Path | None) -> Accounts:
    """What every slot of a study counts as, for its setups as they were rendered last.

    Raises:
        ConfigError: a rendered file, or a run's plan or summary, is damaged.
        EnvironmentFault: the study's jobs go through Slurm, and squeue is here and does not answer.
    """
    in_slurm = any(setup.choices.system.facts.launcher == "slurm" for setup in built)
    jobs = queue.own_jobs() if in_slurm and shutil.which("squeue") else []
    rendered = [as_rendered(setup) for setup in built]
    runs = find_runs([run_root.resolve()] if run_root else _run_roots(rendered))
    planned = [Planned(settings.record, problems) for settings, problems in rendered]
    return account(study.study, planned, runs, queue.by_setup(jobs))


def as_rendered(setup: RenderedSetup) -> tuple[JobSettings, Sequence[Problem]]:
    """A setup as this study rendered it, with what was set on the command line then; or as it would be."""
    if setup.env.exists():
        settings = read_settings(setup.env)
        if settings.study == setup.study.study:
            return settings, problems_of(settings)
    return setup.settings, setup.problems


def _run_roots(rendered: Iterable[tuple[JobSettings, Sequence[Problem]]]) -> list[Path]:
    return list(dict.fromkeys(anchored(settings.run_root).resolve() for settings, _ in rendered))


def print_accounts(accounts: Accounts) -> None:
    """One row a setup, the sum, and why slots are owed or under review."""
    rows = [(setup, own.planned, *own.parts.values(), _by_class(own)) for setup, own in accounts.setups.items()]
    print_rows(("setup", "planned", *Part, "owed as"), rows)
    print_lines([accounts.total.line, *_reasons(accounts)])


def _by_class(own: Tally) -> str | None:
    return ", ".join(f"{number} {blame}" for blame, number in own.owed_by_class.items()) or None


def _reasons(accounts: Accounts) -> Iterator[str]:
    """One line for the slots of a setup that are owed, or under review, for one reason."""
    groups: dict[tuple[str, str, str | None], list[str]] = {}
    for slot in accounts.slots:
        if slot.part in (Part.OWED, Part.REVIEW):
            what = f"{slot.part} {slot.owed}" if slot.owed else slot.part.value
            groups.setdefault((what, slot.setup, slot.why), []).append(f"{slot.kernel} slot {slot.slot}")
    for (what, setup, why), slots in groups.items():
        more = f" and {len(slots) - SHOWN_SLOTS} more" if len(slots) > SHOWN_SLOTS else ""
        yield f"{what}: {setup} {', '.join(slots[:SHOWN_SLOTS])}{more}: {why}"
