"""Work on a job after it has ended: collect its results again.

Example: kcourt job collect .scratch/runs/local-20260101T120000000Z
"""

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help=__doc__, no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps a group that has one command a group."""


@app.command("collect")
def collect_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory of a job that has ended.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Merge a finished job's shards and episodes again, also after MERGE_FAILED, and account for them.

    Example: kcourt job collect .scratch/runs/local-20260101T120000000Z
    """
    from cluster.commands.local_job import account_lines
    from cluster.job.collect import collect
    from cluster.job.layout import RunLayout
    from cluster.job.summary import conclude, recollected

    layout = RunLayout(run.resolve())
    ending = recollected(layout)
    collect(layout)
    summary = conclude(layout, ending)
    if as_json:
        typer.echo(json.dumps({"run": str(layout.root), **summary.document()}))
    else:
        typer.echo("\n".join(account_lines(summary)))
