"""Watch a job: where it is, how far, what waits, what went wrong; live, afterwards, and from a login node."""

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help=__doc__)


@app.command()
def watch(
    job: Annotated[str, typer.Argument(metavar="JOB", help="A job's id below RUN_ROOT, or its run directory.")],
    once: Annotated[bool, typer.Option("--once", help="Print one view and leave.")] = False,
    run_root: Annotated[Path | None, typer.Option(help="Folder of run directories; wins over RUN_ROOT.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one view as one JSON object; means --once.")] = False,
) -> None:
    """Watch a job: where it is, how far, what waits, what went wrong; live, afterwards, and from a login node.

    Reads the run directory alone and writes nothing. Stages are pending, starting, ready, serving, draining, done,
    lost and not progressing. Without --once it goes on until the job has ended, prints its end and exits with 0,
    however the job ended: that is in the view.

    Example: kcourt watch 4711 --once
    """
    from bench.reports.terminal import console_for
    from cluster.commands.view import follow, watch_view
    from cluster.job.watch import Watcher, find_run

    watcher = Watcher(find_run(job, run_root))
    if as_json:
        typer.echo(json.dumps(watcher.look().document()))
        return
    console = console_for()
    if once:
        console.print(watch_view(watcher.look()), soft_wrap=not console.is_terminal)
    else:
        follow(watcher.look, console)
