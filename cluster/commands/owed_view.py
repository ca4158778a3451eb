"""How accounts are shown: one row a setup, the sum, why slots are owed or under review, and what was not read."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from cluster.after.accounts import Accounts
from cluster.after.owed import Part, PlannedSlot, tally
from cluster.commands.study_jobs import SHOWN_SLOTS
from cluster.commands.study_view import print_lines, print_rows


def print_warnings(accounts: Accounts) -> None:
    """On standard error: what could not be read, and what was read and does not count."""
    for text in accounts.damage:
        typer.echo(f"warning: {text}", err=True)
    for text in accounts.notes:
        typer.echo(f"note: {text}", err=True)


def print_accounts(accounts: Accounts, lists: Sequence[Path]) -> None:
    """One row a setup, the sum, then why."""
    rows = []
    for setup, slots in accounts.setups.items():
        own = tally(slots)
        classes = ", ".join(f"{number} {blame}" for blame, number in own.owed_by_class.items()) or None
        rows.append((setup, own.planned, *own.parts.values(), classes))
    print_rows(("setup", "planned", *Part, "owed as"), rows)
    print_lines([accounts.total.line, *_reasons(accounts)])
    print_lines([f"skipped: {setup}: {why}" for setup, why in accounts.skipped.items()])
    print_lines([f"written: {path}" for path in lists])


def _reasons(accounts: Accounts) -> Iterator[str]:
    """One line for the slots of a setup that count as one thing for one reason, with the evidence of the first."""
    groups: dict[tuple[str, str, str | None], list[PlannedSlot]] = {}
    for slot in accounts.slots:
        found = slot.standing
        if found.part in (Part.OWED, Part.REVIEW):
            what = f"{found.part} {found.owed}" if found.owed else found.part.value
            groups.setdefault((what, slot.assignment.setup, found.why), []).append(slot)
    for (what, setup, why), slots in groups.items():
        named = ", ".join(f"{slot.assignment.kernel} slot {slot.assignment.slot}" for slot in slots[:SHOWN_SLOTS])
        more = f" and {len(slots) - SHOWN_SLOTS} more" if len(slots) > SHOWN_SLOTS else ""
        yield f"{what}: {setup} {named}{more}: {why}{_evidence(slots[0])}"


def _evidence(slot: PlannedSlot) -> str:
    """Where to look: `(job 7, gold.n0.p3.w1, time 124, log …)`; nothing where no job says anything."""
    found = slot.document()
    end = " ".join(str(part) for part in (found["end"], found["end_code"]) if part is not None)
    job, grade = (f"{what} {found[what]}" if found[what] else None for what in ("job", "grade"))
    parts = [part for part in (job, found["episode"], end, grade, found["log"]) if part]
    return f" ({', '.join(parts)})" if parts else ""
