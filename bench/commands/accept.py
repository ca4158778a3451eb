"""Accept a suspect grade of a merged database: it counts until that is withdrawn."""

import typer

from bench.commands.disqualify import Database, GradeId, Json, Why, Withdraw, carry_out
from bench.results.models import Ruling

app = typer.Typer()


@app.command("accept")
def accept(grade_id: GradeId, db: Database, why: Why = None, withdraw: Withdraw = False, json: Json = False) -> None:
    """Accept a grade that is flagged `suspect`, so that it counts; until then it answers nothing.

    Example: kcourt accept 5f0f9a7e-2a33-4a51-9c4e-6a3b6f0f4b11 --db results.db --why "the floor misses the L3 cache"
    """
    carry_out(Ruling.ACCEPTED, grade_id, db, why, withdraw, json)
