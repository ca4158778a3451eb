"""Renders HTML reports from a results database: self-contained pages in which every value is escaped."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from bench.results.queries import opened, table


def job_report(results_db: Path, summary: Mapping[str, Any]) -> str:
    """The page of one job: what it came to and its table. `summary` is the content of `summary.json`.

    Raises:
        ShardError: the database cannot be read.
        jinja2.UndefinedError: the summary lacks a field that the page shows.
    """
    pages = Environment(
        loader=PackageLoader("bench", "reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    with opened([results_db]) as database:
        rows = table(database)
    return pages.get_template("job_report.html").render(summary=summary, rows=rows)
