"""Look up settings: what each KEY means, and where a setup's value comes from.

Example: kcourt settings explain AGENT_MAX_TOKENS
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from cluster.study.keys import Role
from cluster.study.origins import Origin
from cluster.study.settings import SettingRow

app = typer.Typer(help=__doc__, no_args_is_help=True)


@app.command("list")
def list_keys(
    role: Annotated[Role | None, typer.Option(help="Only keys of this role.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Print every KEY that a job understands: role, type, default, meaning.

    Example: kcourt settings list --role judge
    """
    from bench.reports.terminal import console_for, plain_table
    from cluster.study.settings import reference_rows

    rows = [row for row in reference_rows() if role in (None, row.role)]
    if as_json:
        typer.echo(json.dumps({"settings": [asdict(row) for row in rows]}))
        return
    cells = [(row.key, row.role, _type(row), row.default or None, row.meaning) for row in rows]
    console_for().print(plain_table(("key", "role", "type", "default", "meaning"), cells))


@app.command("explain")
def explain_key(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The KEY, as settings list has it.")],
    setup: Annotated[
        str | None, typer.Option(help="A rendered setup, or the path of an env file: say where its value comes from.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Print what a KEY means and, for a setup, its value, where that was set, and every layer that it overrides.

    Example: kcourt settings explain AGENT_MAX_TOKENS --setup gold
    """
    from cluster.study.explained import origins_of_env
    from cluster.study.places import env_of_setup
    from cluster.study.settings import known_key, reference_rows
    from cluster.study.systems import choose_system

    known_key(key)
    row = next(row for row in reference_rows() if row.key == key)
    said = origins_of_env(env_of_setup(setup), choose_system(os.environ)).get(key, []) if setup else []
    if as_json:
        found = {"setting": asdict(row), "setup": setup, "value": said[-1].value if said else row.default}
        typer.echo(json.dumps(found | {"origins": [asdict(origin) | {"path": str(origin.path)} for origin in said]}))
    else:
        typer.echo("\n".join(_lines(row, said, setup)))


def _lines(row: SettingRow, said: Sequence[Origin], setup: str | None) -> list[str]:
    lines = [f"{row.key}: {row.meaning}", f"role {row.role}, type {_type(row)}, default {row.default or 'unset'}"]
    if said:
        winner = said[-1]
        lines.append(f"{setup}: {row.key}={winner.value}  from {winner} ({winner.layer})")
        lines += [f"  overrides {origin.value}  from {origin} ({origin.layer})" for origin in reversed(said[:-1])]
    elif setup:
        lines.append(f"{setup}: does not set it, so the default holds")
    return lines


def _type(row: SettingRow) -> str:
    return f"{row.type} ({row.unit})" if row.unit else row.type
