"""Disqualify a grade of a merged database: it answers nothing until that is withdrawn."""

import getpass
import os
from pathlib import Path
from typing import Annotated

import typer
from pydantic_core import to_json

from bench.errors import UsageError
from bench.results.models import Ruling
from bench.results.rulings import rule

app = typer.Typer()

GradeId = Annotated[str, typer.Argument(help="Id of the grade.")]
Database = Annotated[Path, typer.Option(help="Merged database that holds it, such as results.db.")]
Why = Annotated[str | None, typer.Option(help="The reason, kept beside your login name and the time.")]
Withdraw = Annotated[bool, typer.Option("--withdraw", help="Take that ruling back; a reason may be given.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("disqualify")
def disqualify(
    grade_id: GradeId, db: Database, why: Why = None, withdraw: Withdraw = False, json: Json = False
) -> None:
    """Disqualify a grade, so that it answers nothing; an earlier valid answer then counts again.

    Nothing is edited away: the ruling is a row of the table `disqualifications`, and so is its withdrawal.

    Example: kcourt disqualify 5f0f9a7e-2a33-4a51-9c4e-6a3b6f0f4b11 --db results.db --why "copies the reference"
    """
    carry_out(Ruling.DISQUALIFIED, grade_id, db, why, withdraw, json)


def carry_out(ruling: Ruling, grade_id: str, database: Path, why: str | None, withdraw: bool, as_json: bool) -> None:
    """Rule, and say so. Raises UsageError where no reason is given."""
    if not withdraw and not (why or "").strip():
        raise UsageError('--why is missing: a ruling needs its reason, such as --why "copies the reference"')
    by = _login_name()
    rule(database, grade_id, ruling, by, why, withdraw)
    said = f"no longer {ruling}" if withdraw else ruling
    if as_json:
        said_as_json = {"database": str(database), "grade_id": grade_id, "ruling": said, "why": why, "by": by}
        typer.echo(to_json(said_as_json))
    else:
        typer.echo(f"{database}: grade {grade_id} is {said}")


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return f"uid {os.getuid()}"
