"""How tables look on a terminal and in a pipe: their width, and one line a result, the same for every command."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:  # a machine that only launches has no SQLAlchemy
    from bench.results.queries import TableRow

# A file or a pipe has no width of its own: there no line is cut, however long its names are.
PIPE_COLUMNS = 10_000

RESULT_WORDS = ("kernel", "setup", "slot", "preset", "outcome")
RESULT_NUMBERS = ("speedup", "90 % interval", "faster", "grades", "seconds")


def console_for(stderr: bool = False) -> Console:
    """Where people read; a terminal's own width, and PIPE_COLUMNS everywhere else."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=PIPE_COLUMNS)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Rows as they are; a None is a dash, and what does not fit goes on in the next line."""
    shown = _table()
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        # Text, because names are data: square brackets in them are no markup.
        shown.add_row(*(Text("-" if cell is None else str(cell)) for cell in row))
    return shown


def results_table(rows: Sequence["TableRow"]) -> Table:
    """The grades that count, one row a (kernel, setup, slot)."""
    shown = _table()
    for name in RESULT_WORDS:
        shown.add_column(name, overflow="fold")
    for name in RESULT_NUMBERS:
        shown.add_column(name, no_wrap=True, justify="right")
    for row in rows:
        shown.add_row(*map(Text, result_cells(row)))
    return shown


def _table() -> Table:
    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)


def result_cells(row: "TableRow") -> tuple[str, ...]:
    """A result as text; what is unknown is a dash. Without an answer its outcome is suspect, or the episode's end."""
    named = (row.assignment.kernel, row.assignment.setup, str(row.assignment.slot))
    spent = (str(row.grades), "-" if row.seconds is None else f"{row.seconds:.1f}")
    verdict = row.verdict
    if verdict is None:
        none = "suspect" if row.review else f"none ({row.end})" if row.end else "none"
        return (*named, "-", none, "-", "-", "-", *spent)
    return (
        *named,
        verdict.preset,
        verdict.outcome,
        "-" if verdict.score is None else f"{verdict.score:.2f}x",
        "-" if verdict.interval is None else "{:.2f}..{:.2f}".format(*verdict.interval),
        "-" if verdict.faster is None else "yes" if verdict.faster else "no",
        *spent,
    )
