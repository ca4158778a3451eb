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
from cluster.study.problems import problems_of
from cluster.study.queue import QueuedJob, QueueState
from cluster.study.render import RenderedSetup
from cluster.study.settings import JobSettings, read_settings
from cluster.study.snapshots import Snapshot, snapshot
from cluster.study.status import Accounts, Part, Planned, Tally, account, find_runs
from cluster.study.studies import Study

LOOK_EVERY_S, MISSED_LOOKS = 10.0, 60
SHOWN_SLOTS = 4  # of those with one reason; --json has them all


def run_locally(study: Study, rendered: Sequence[RenderedSetup], run_root: Path | None, as_json: bool) -> ExitCode:
    """Run a study here, in as few jobs as its setups can share; returns the first exit code that is not 0."""
    done = [_run_wave(wave, run_root, as_json) for wave in waves(rendered)]
    if as_json:
        jobs = [{"run": str(one.layout.root), **one.summary.document()} for one in done]
        typer.echo(json.dumps({"study": study.study, "jobs": jobs}))
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


def waves(rendered: Sequence[RenderedSetup]) -> list[list[RenderedSetup]]:
    """Setups grouped into jobs: those that give the same answer to each key of a job and share start material."""
    groups: dict[str, list[RenderedSetup]] = {}
    for setup in rendered:
        shared = {**setup.settings.job_values, "AGENT_START": setup.settings.agent_start}
        groups.setdefault(repr(shared), []).append(setup)
    return list(groups.values())


def submit_to_slurm(
    study: Study, rendered: Sequence[RenderedSetup], *, again: bool, wait: bool, as_json: bool
) -> ExitCode:
    """Submit one job a setup, but none for a setup that has one in the queue unless `again`.

    Raises:
        EnvironmentFault: this version has no batch script, Slurm does not answer, or sbatch refuses a job.
    """
    if not queue.SBATCH_SCRIPT.is_file():
        why = "this version cannot run a job under Slurm yet; --local runs the study on this machine"
        raise EnvironmentFault(f"{queue.SBATCH_SCRIPT} is not there: {why}")
    known = queue.by_setup(queue.jobs_of(str(os.getuid())))
    now = datetime.now(UTC)
    jobs: list[SubmittedJob] = []
    for setup in rendered:
        jobs.append(_submitted(setup, None if again else known.get(setup.name), now, jobs))
        if not as_json:
            typer.echo(jobs[-1].line)
    code = _follow(jobs, as_json) if wait else ExitCode.OK
    if as_json:
        typer.echo(json.dumps({"study": study.study, "jobs": [job.document() for job in jobs], "exit_code": code}))
    elif wait:
        print_accounts(accounts_of(study, rendered, None))
    return code


@dataclass(frozen=True)
class SubmittedJob:
    """What became of one setup; without a snapshot it was left out, for it has this job in the queue."""

    setup: RenderedSetup
    job_id: str
    state: QueueState
    snapshot: Snapshot | None

    @property
    def line(self) -> str:
        if self.snapshot is None:
            return f"{self.setup.name}: left out, job {self.job_id} is {self.state}; --again submits it once more"
        return f"{self.setup.name}: job {self.job_id}, {self.snapshot.env}"

    @property
    def layout(self) -> RunLayout:
        return RunLayout(anchored(self.setup.settings.run_root) / self.job_id)

    def document(self) -> dict[str, Any]:
        """The job as JSON-able values."""
        env = str(self.snapshot.env) if self.snapshot else None
        return {"setup": self.setup.name, "job": self.job_id, "state": self.state.value, "snapshot": env}


def _submitted(
    setup: RenderedSetup, queued: QueuedJob | None, now: datetime, before: Sequence[SubmittedJob]
) -> SubmittedJob:
    """Snapshot and submit one setup; a refusal names the jobs that are there already."""
    if queued is not None:
        return SubmittedJob(setup, queued.job_id, queued.state, None)
    made, logs = snapshot(setup, now), queue.logs_folder(setup.settings.kcourt_scratch)
    argv = queue.sbatch_argv(setup.shape, made, queue.SBATCH_SCRIPT, logs, setup.settings.reserve_s)
    try:
        return SubmittedJob(setup, queue.submit(argv, logs), QueueState.QUEUED, made)
    except EnvironmentFault as error:
        done = ", ".join(job.job_id for job in before if job.snapshot) or "none"
        raise EnvironmentFault(f"setup '{setup.name}': {error} (jobs submitted before it: {done})") from error


def _follow(jobs: Sequence[SubmittedJob], as_json: bool) -> ExitCode:
    """Wait until none of the jobs is in the queue any more; the first exit code that is not 0."""
    console, last, ours = console_for(stderr=as_json), "", {job.job_id for job in jobs}
    while left := [job for job in _queue_patiently() if job.job_id in ours]:
        running = sum(job.state is QueueState.RUNNING for job in left)
        line = f"{running} jobs run, {len(left) - running} wait, {len(jobs) - len(left)} have ended"
        if line != last:
            console.print(line, highlight=False)
        last = line
        time.sleep(LOOK_EVERY_S)
    return _worst([exit_of(job.layout) for job in jobs])


def _queue_patiently() -> list[QueuedJob]:
    """The queue; Slurm may be away for some minutes while jobs are followed for hours."""
    for _ in range(MISSED_LOOKS):
        with contextlib.suppress(EnvironmentFault):
            return queue.jobs_of(str(os.getuid()))
        time.sleep(LOOK_EVERY_S)
    return queue.jobs_of(str(os.getuid()))


def _worst(codes: Sequence[ExitCode]) -> ExitCode:
    return next((code for code in codes if code is not ExitCode.OK), ExitCode.OK)


def accounts_of(study: Study, built: Sequence[RenderedSetup], run_root: Path | None) -> Accounts:
    """What every slot of a study counts as, for its setups as they were rendered last.

    Raises:
        ConfigError: a rendered file, or a run's plan or summary, is damaged.
        EnvironmentFault: squeue is here and does not answer.
    """
    jobs = queue.jobs_of(str(os.getuid())) if shutil.which("squeue") else []
    rendered = [_rendered(setup) for setup in built]
    runs = find_runs([run_root.resolve()] if run_root else _run_roots(rendered))
    planned = [Planned(settings.record, problems) for settings, problems in rendered]
    return account(study.study, planned, runs, queue.by_setup(jobs))


def _rendered(setup: RenderedSetup) -> tuple[JobSettings, Sequence[Problem]]:
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
