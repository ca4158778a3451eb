"""Make one stored grade again, from its database alone, and hold it against the old one."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_core import to_json

from bench import audit
from bench.adhoc import adhoc_database
from bench.audit import Agreement, Graded
from bench.court import open_court
from bench.errors import ExitCode
from bench.evaluation import parse_plan
from bench.inputs import sizes_text
from bench.judge.schemas import Device, GpuOrCpu
from bench.regrade import FlagsOf, Regrade, regrade

app = typer.Typer()


@app.command("regrade")
def make_again(
    grade_id: Annotated[str, typer.Argument(help="Id of the grade.")],
    db: Annotated[Path, typer.Option(help="Database that holds it: results.db, or an ad hoc one.")],
    device: Annotated[GpuOrCpu, typer.Option(help="What to grade on: the device of the grade.")] = GpuOrCpu.CPU,
    allow_sandbox: Annotated[str, typer.Option(help="Weakest sandbox level to grade with.")] = "user",
    flags_of: Annotated[FlagsOf, typer.Option(help="Build with the recorded flags, or with today's.")] = FlagsOf.THEN,
    record: Annotated[bool, typer.Option("--record", help="Keep the new grade; it counts as nothing.")] = False,
    as_one_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make one stored grade again, from its database alone, and hold it against the old one.

    Exit code 0 when it is reproduced, 1 when it is not (the verdict says why), 2 when it cannot be made again,
    3 when the judge failed, 75 when the database was changed.

    Example: kcourt regrade 5f0f9a7e-2a33-4a51-9c4e-6a3b6f0f4b11 --db results.db --allow-sandbox limits
    """
    court = open_court(allow_sandbox, tools=parse_plan(), device=Device(device))
    made = regrade(db, grade_id, court, flags_of, record)
    kept = adhoc_database() if record else None
    if as_one_json:
        typer.echo(to_json(_as_json(made, flags_of, kept), inf_nan_mode="null"))
    else:
        _show(made, kept)
    if made.agreement is not Agreement.REPRODUCED:
        raise typer.Exit(ExitCode.FAILED)


def _as_json(made: Regrade, flags_of: FlagsOf, kept: Path | None) -> dict[str, Any]:
    then, now = made.then, made.now
    return {
        "verdict": made.agreement,
        "of_grade_id": then.grade_id,
        "grade_id": now.grade_id,
        "kernel": then.kernel,
        "language": then.language,
        "protocol": then.protocol,
        "preset": then.preset,
        "flags_of": flags_of,
        "then": _numbers(then),
        "now": _numbers(now),
        "allowance": _allowance(made),
        "differences": [asdict(difference) for difference in made.differences],
        "recorded": str(kept) if kept else None,
    }


def _numbers(graded: Graded) -> dict[str, Any]:
    return {
        "outcome": graded.outcome,
        "property": graded.property,
        "suspect": graded.suspect,
        "score": graded.score,
        "raw_ratio": graded.raw_ratio,
        "interval": graded.interval,
        "inputs": [{"sizes": cell.sizes, "ratio": cell.ratio, "raw": cell.raw} for cell in graded.cells],
    }


def _show(made: Regrade, kept: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console, then = Console(), made.then
    console.print(f"[bold]{then.kernel}[/bold]: {made.agreement}", highlight=False)
    table = Table("", "then", "now")
    before, after = _lines(then), _lines(made.now)
    for label in before | after:
        table.add_row(label, before.get(label, ""), after.get(label, ""))
    console.print(table)
    if then.raw_ratio and made.now.raw_ratio:
        console.print(f"  raw ratios may lie {_allowance(made):.0%} apart", highlight=False)
    for difference in made.differences:
        line = f"  {difference.what}: then {difference.then}, now {difference.now}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for warning in made.now.provenance.get("quiet", ()):
        console.print(f"warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    where = f"kept as {made.now.grade_id} in {kept}" if kept else "not kept (--record keeps it)"
    which = f"grade {then.grade_id} ({then.kind}, {then.requested_at[:19]}), protocol {then.protocol}"
    console.print(f"{which}, preset {then.preset}; {where}", highlight=False, soft_wrap=True)


def _allowance(made: Regrade) -> float:
    """How far apart the raw ratios may be, as a part of the smaller one."""
    return math.exp(audit.allowance(made.then, made.now)) - 1


def _lines(graded: Graded) -> dict[str, str]:
    """Label → value of each line that a reader compares."""
    interval = "" if graded.interval is None else "{:.3f} to {:.3f}".format(*graded.interval)
    return {
        "outcome": str(graded.outcome),
        **({"property": graded.property} if graded.property else {}),
        **({"suspect": graded.suspect} if graded.suspect else {}),
        "S": _number(graded.score),
        "raw ratio": _number(graded.raw_ratio),
        "90 % interval": interval,
        **{f"input {cell.index}: {sizes_text(cell.sizes)}": _number(cell.raw) for cell in graded.cells},
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
