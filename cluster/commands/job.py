"""Work on a job before it is submitted and after it has ended: its sbatch options, its results.

Example: kcourt job collect .scratch/runs/local-20260101T120000000Z
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cluster.commands.slurm_flags import System, takes_slurm_flags

app = typer.Typer(help=__doc__, no_args_is_help=True)


@app.command("collect")
def collect_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory of a job that has ended.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Merge a finished job's shards and episodes again, also after MERGE_FAILED, and account for them.

    Example: kcourt job collect .scratch/runs/local-20260101T120000000Z
    """
    from cluster.commands.local_job import Done, account_lines
    from cluster.job.layout import RunLayout
    from cluster.job.summary import recollect

    layout = RunLayout(run.resolve())
    done = Done(layout, recollect(layout))
    if as_json:
        typer.echo(json.dumps(done.document()))
    else:
        typer.echo("\n".join(account_lines(done.summary)))


@app.command("options")
@takes_slurm_flags
def show_options(
    setup: Annotated[str, typer.Argument(metavar="SETUP", help="A rendered setup, or the path of an env file.")],
    system: System = None,
    flags: Mapping[str, str] = {},
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Print the sbatch options that a setup resolves to, and where each of them comes from.

    A flag wins over the environment, that over the site file (KCOURT_SYSTEMS_FILE), that over what is known of the
    system.

    Example: kcourt job options gold --system beverin --partition mi300
    """
    from cluster.study.job_shape import job_shape, sbatch_options
    from cluster.study.places import env_of_setup
    from cluster.study.problems import problems_of
    from cluster.study.settings import read_settings
    from cluster.study.systems import choose_system

    chosen = choose_system(os.environ, system)
    settings = read_settings(env_of_setup(setup))
    problems = 0 if settings.serves_only else len(problems_of(settings))
    shape = job_shape(settings, chosen, flags, os.environ, problems)
    if as_json:
        options = [asdict(option) for option in shape]
        found = {"setup": settings.setup, "system": chosen.name, "options": options, "sbatch": sbatch_options(shape)}
        typer.echo(json.dumps(found))
        return
    from bench.reports.terminal import console_for, plain_table

    console = console_for()
    console.print(f"setup {settings.setup} on system {chosen.name}", highlight=False)
    rows = [(option.name, option.value, option.origin) for option in shape]
    console.print(plain_table(("option", "value", "from"), rows))
    for note in filter(None, (option.note for option in shape)):
        console.print(f"note: {note}", highlight=False, soft_wrap=True)
