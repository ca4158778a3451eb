"""Runs one job inside an allocation of Slurm: what `services.sbatch` hands over to."""

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from bench.places import anchored
from bench.reports.terminal import console_for
from cluster.commands.local_job import Done, print_result
from cluster.commands.view import PlainView
from cluster.job.launchers.slurm import launcher_of
from cluster.job.layout import RunLayout
from cluster.job.life import run_job
from cluster.study.wave import read_wave


def run_in_allocation(envs: Sequence[Path], as_json: bool) -> None:
    """Run the setups of `envs` as the job that this process is a part of; exits with the job's exit code.

    Raises:
        ConfigError: this is no job of Slurm, an env file is wrong, or the allocation does not fit the roles.
        EnvironmentFault: Slurm does not answer, or the run root cannot be written.
    """
    wave = read_wave(envs)
    launcher = launcher_of(os.environ)
    layout = RunLayout(anchored(wave.settings.run_root).resolve() / launcher.job_id)
    console = console_for(stderr=as_json)
    summary = run_job(wave, layout.root, launcher, PlainView(console))
    print_result(console, Done(layout, summary), as_json)
    raise typer.Exit(summary.ending.exit_code)
