"""Merge, check, read and export results databases.

Example: kcourt db summary results.db
"""

import csv
import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_core import to_json

from bench.errors import ConfigError, UsageError
from bench.judge.schemas import read_secret
from bench.results import queries
from bench.results.checks import Checked, Expectation, check_all
from bench.results.export import Form, What, table_row
from bench.results.export import export as write_export
from bench.results.merge import merge
from bench.results.queries import Assignment
from bench.results.replay import recorded, write_plan
from bench.results.trajectories import Point, trajectories
from bench.wording import did_you_mean

app = typer.Typer(help=__doc__, no_args_is_help=True)

Databases = Annotated[list[Path], typer.Argument(help="Shards or merged databases.")]
Job = Annotated[str | None, typer.Option(help="Job id that the shards must have; with --ranks.")]
Ranks = Annotated[int | None, typer.Option(min=1, help="How many ranks the job had: ranks 0 to N-1 must be there.")]
REQUEST_COLUMNS = (*Assignment._fields, "job_id", "label", *(field.name for field in dataclasses.fields(Point)))
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("merge")
def merge_databases(
    target: Annotated[Path, typer.Argument(help="Database to make, or to add to.")],
    inputs: Databases,
    job: Job = None,
    ranks: Ranks = None,
    secret: Annotated[Path | None, typer.Option(help="File of the job's secret; reveals the seeds.")] = None,
    as_json: Json = False,
) -> None:
    """Merge shards into one database. Merging again changes nothing; a faulty input is named and nothing is written.

    Example: kcourt db merge results.db judge/rank-0/grades.db judge/rank-1/grades.db --job 4711 --ranks 2
    """
    root = _root(secret) if secret else None
    report = merge(target, inputs, root=root, expect=_expectation(job, ranks))
    if as_json:
        _print_json({**vars(report), "inputs": [_facts(one) for one in report.inputs]})
        return
    typer.echo(
        f"{target}: {report.grades} grades in {report.episodes} episodes of {report.setups} setups,"
        f" from {len(report.inputs)} databases; {report.unrecorded_episodes} episodes left no record"
    )


@app.command()
def migrate(
    source: Annotated[Path, typer.Argument(metavar="OLD", help="Database of an earlier version.")],
    target: Annotated[Path, typer.Argument(metavar="NEW", help="Database to make; the old one stays as it is.")],
    as_json: Json = False,
) -> None:
    """Write the rows of an older database to a new one that this version reads.

    Example: kcourt db migrate results.db results-2.db
    """
    from bench.results.migrate import migrate as migrated

    done = migrated(source, target)
    if as_json:
        _print_json(vars(done))
        return
    rows = ", ".join(f"{number} {table}" for table, number in done.rows.items() if number)
    typer.echo(
        f"{target}: version {done.from_version} became this one's: {rows}; empty: {', '.join(done.empty) or 'none'}"
    )


@app.command()
def check(databases: Databases, job: Job = None, ranks: Ranks = None, as_json: Json = False) -> None:
    """Check that databases are whole, ours, and the shards that a job must have left.

    Example: kcourt db check judge/rank-*/grades.db --job 4711 --ranks 2
    """
    from bench.reports.terminal import console_for, plain_table

    facts = [_facts(one) for one in check_all(databases, _expectation(job, ranks))]
    if as_json:
        _print_json({"databases": facts})
        return
    columns = ("database", "kind", "job", "rank", "grades")
    console_for().print(plain_table(columns, [tuple(fact.values()) for fact in facts]))


@app.command()
def summary(databases: Databases, as_json: Json = False) -> None:
    """Show what databases hold: counts a setup, and the answer that counts for each kernel.

    Example: kcourt db summary results.db
    """
    from bench.reports.terminal import console_for, plain_table, results_table

    with queries.opened(databases) as db:
        counts, setups, rows = queries.counts(db), queries.by_setup(db), queries.table(db)
    if as_json:
        _print_json({"counts": counts, "setups": setups, "table": [table_row(row) for row in rows]})
        return
    typer.echo(
        f"{counts.grades} grades in {counts.episodes} episodes of {counts.setups} setups;"
        f" {counts.unrecorded_episodes} episodes left no record"
    )
    if not setups:
        typer.echo(
            "no setup asked for them: these are ad hoc grades, which answer nothing (docs/regrade.md lists them)"
        )
        return
    columns = ("setup", "episodes", "grades", "answers", "solved", "faster", "suspect", "judge faults")
    console_for().print(plain_table(columns, [tuple(vars(line).values()) for line in setups]))
    console_for().print(results_table(rows))


@app.command("trajectories")
def show_trajectories(
    databases: Databases,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values, one line a request.")] = False,
) -> None:
    """Show how episodes came to their answers: each request with the tokens spent until then, and the best so far.

    `best` is the best score of the episode so far; a grade that is flagged `suspect` does not count for it.

    Example: kcourt db trajectories results.db --csv
    """
    from bench.reports.terminal import console_for, plain_table

    if as_json and as_csv:
        raise UsageError("--json and --csv: choose one")
    with queries.opened(databases) as db:
        found = trajectories(db)
    if as_json:
        _print_json({"trajectories": [{**vars(one), "assignment": one.assignment._asdict()} for one in found]})
        return
    rows = [(*one.assignment, one.job_id, one.label, *vars(point).values()) for one in found for point in one.points]
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([REQUEST_COLUMNS, *rows])
    else:
        console_for().print(plain_table(REQUEST_COLUMNS, rows))


@app.command()
def export(
    form: Annotated[Form, typer.Argument(metavar="csv|parquet|json", help="What the file is written as.")],
    databases: Databases,
    out: Annotated[Path, typer.Option(help="File to write; one of that name is replaced.")],
    what: Annotated[What, typer.Option(help="Every grade, the answers that count, or every episode.")] = What.GRADES,
    as_json: Json = False,
) -> None:
    """Write databases, read as one, to a file for other programs: one line, object or row a grade.

    `grades` has the columns of the view `grades_flat` but for answer, provenance and stages. `table` has the answer
    that counts for each kernel, as `kcourt db summary` shows it. Parquet needs `pip install 'kernelcourt[parquet]'`.

    Example: kcourt db export csv results.db --out grades.csv
    """
    rows = write_export(databases, out, form, what)
    if as_json:
        _print_json({"out": str(out), "format": form, "what": what, "rows": rows})
    else:
        typer.echo(f"{out}: {rows} rows of {what} as {form}")


@app.command()
def replay(
    databases: Databases,
    setup: Annotated[str, typer.Option(help="Whose episodes to play again.")],
    into: Annotated[Path, typer.Option(help="Folder for the candidates and `plan.json`.")],
    slot: Annotated[int, typer.Option(min=0, help="Repeat slot of the episodes.")] = 0,
    as_json: Json = False,
) -> None:
    """Write a plan for the scripted harness that sends again what a setup's episodes sent, for AGENT_SCRIPT.

    Of each kernel it takes the latest episode and its last attempt. A harness without a model then asks the same of a
    judge: after a change of the judge, on another machine, or to look at what a model did.

    Example: kcourt db replay results.db --setup arena-claude-c --into again
    """
    with queries.opened(databases) as db:
        episodes = recorded(db, setup, slot)
        known = sorted({one.assignment.setup for one in trajectories(db)})
    if not episodes:
        hint = did_you_mean(setup, known)
        raise UsageError(f"--setup: no episode of '{setup}' in slot {slot} asked for a grade here; {hint}")
    try:
        plan = write_plan(episodes, into)
    except OSError as error:
        raise UsageError(f"--into: {into} cannot be written ({error.strerror})") from error
    requests = sum(map(len, episodes.values()))
    if as_json:
        _print_json({"plan": str(plan), "kernels": list(episodes), "requests": requests})
    else:
        typer.echo(
            f"{plan}: {requests} requests for {len(episodes)} kernels; give it to HARNESS=scripted, AGENT_SCRIPT"
        )


def _root(path: Path) -> bytes:
    """The job secret; a file that holds none is a mistake in the command line."""
    try:
        return read_secret(path)
    except ConfigError as error:
        raise UsageError(f"--secret: {error}; a run keeps it in judge/root.secret") from error


def _expectation(job: str | None, ranks: int | None) -> Expectation | None:
    if (job is None) != (ranks is None):
        raise UsageError("--job and --ranks go together: they say which shards must be there; give both or neither")
    return None if job is None or ranks is None else Expectation(job, tuple(range(ranks)))


def _facts(one: Checked) -> dict[str, Any]:
    identity = one.identity
    return {
        "database": str(one.path),
        "kind": identity.kind,
        "job_id": identity.job_id,
        "rank": identity.rank,
        "grades": one.grades,
    }


def _print_json(value: Any) -> None:
    typer.echo(to_json(value, inf_nan_mode="null"))
