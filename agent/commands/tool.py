"""Call one of an agent's tools from the command line."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from bench.errors import ExitCode, KernelcourtError, UsageError

app = typer.Typer()


@app.command()
def tool(
    name: Annotated[str, typer.Argument(help="The tool: score, submit, profile, syntax_check ...")],
    arguments: Annotated[str, typer.Argument(help="Its arguments: one JSON object.")] = "{}",
    settings: Annotated[
        Path | None, typer.Option(help="`tools.json` of the attempt; default: what KCOURT_TOOLS names.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what is wrong with the command line as JSON too; a reply always is.")
    ] = False,
) -> None:
    """Call a tool as an agent's client does; prints one JSON object.

    Exit code 0 with a result, 1 with a refusal: its `error` has a code, a message, and what to do next.

    Example: kcourt tool score '{"file": "axpy.c"}'
    """
    import structlog

    from agent.tools.settings import ToolSettings
    from agent.tools.toolbox import Toolbox, refusal

    # Retries are logged; standard output is for the one object.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    named = settings or os.environ.get("KCOURT_TOOLS")
    if not named:
        raise UsageError("no attempt is named; give --settings FILE, or set KCOURT_TOOLS, to an attempt's tools.json")
    box = Toolbox(ToolSettings.read(Path(named)))
    given = _object(arguments)
    if given is None:
        advice = f'call it like this: kcourt tool {name} \'{{"file": "{box.settings.source_name}"}}\''
        reply = refusal("bad_arguments", f"{name}: its arguments must be a JSON object, not {arguments[:80]!r}", advice)
    else:
        reply = box.call(name, given)
    typer.echo(reply.text)
    if reply.refused:
        raise typer.Exit(ExitCode.FAILED)


def _object(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def main() -> NoReturn:
    """`kcourt tool` for an agent that has no other part of `kcourt`."""
    try:
        app(prog_name="kcourt tool")
    except KernelcourtError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
    sys.exit(ExitCode.OK)


if __name__ == "__main__":
    main()
