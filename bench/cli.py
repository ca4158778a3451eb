"""The `kcourt` command: finds sub-commands by name, imports the one that is called, words every error."""

import importlib.util
import json
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import typer
from typer.core import TyperGroup

from bench.errors import EnvironmentFault, ExitCode, KernelcourtError, UsageError

COMMANDS = "kernelcourt.commands"
# Packages that only an extra brings, by the extra of pyproject.toml.
EXTRAS = {
    "judge": {"fastapi", "numpy", "prometheus_client", "scipy", "sqlalchemy", "uvicorn"},
    "cluster": {"hostlist", "jinja2"},
    "triton": {"torch", "triton"},
    "inference": {"vllm"},
}
EPILOG = "Example: kcourt grade axpy my_axpy.c. Every command has --help with an example."


class Failure(NamedTuple):
    """An error as it leaves the process; `code` is the exit code's name in lower case."""

    exit_code: int
    code: str
    message: str


@cache
def commands() -> dict[str, EntryPoint]:
    """Entry points of all sub-commands, by name, in alphabetical order."""
    return {entry.name: entry for entry in sorted(entry_points(group=COMMANDS), key=lambda entry: entry.name)}


def summary(entry: EntryPoint) -> str:
    """First line of a command's module, read from its source: an import would be dear."""
    spec = importlib.util.find_spec(entry.module)
    if spec is None or spec.origin is None:
        return f"cannot be found: {entry.module}"
    with Path(spec.origin).open(encoding="utf-8") as source:
        return source.readline().strip('" \n')


def load_command(name: str) -> Any:
    """Import a sub-command's module; its command, without the completion options that Typer adds to each."""
    command = typer.main.get_command(commands()[name].load())
    command.params = [option for option in command.params if not (option.name or "").endswith("_completion")]
    return command


class Commands(TyperGroup):
    """The group of all sub-commands; imports one only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The sub-command; raises UsageError, naming the nearest, when there is none of that name."""
        if cmd_name not in commands():
            near = get_close_matches(cmd_name, commands(), n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"commands: {', '.join(commands())}"
            raise UsageError(f"no command '{cmd_name}'; {hint}")
        return load_command(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(entry)) for name, entry in commands().items()])


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"kcourt {version('kernelcourt')}")  # noqa: T201
        raise typer.Exit


def _root() -> Any:
    """The top command; its help is plain text, because rich would double the time that it takes."""
    app = typer.Typer(cls=Commands, add_completion=False, rich_markup_mode=None, epilog=EPILOG)

    @app.callback(help="Kernelcourt: run agents that write compute kernels, and grade what they write.")
    def kcourt(
        version: bool = typer.Option(
            False, "--version", help="Print the version and leave.", callback=_print_version, is_eager=True
        ),
    ) -> None:
        pass

    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run one command line in this process and return its exit code; errors are raised."""
    outcome = _root().main(args=list(arguments) or ["--help"], prog_name="kcourt", standalone_mode=False)
    return outcome if isinstance(outcome, int) else ExitCode.OK


def _wording(error: typer.TyperException) -> str:
    """A command line that does not parse, with where its help is."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "kcourt"
    return f"{error.format_message().rstrip('.') or 'a command is missing'}; see `{path} --help`"


def _missing_extra(error: ModuleNotFoundError) -> EnvironmentFault | None:
    """What to install when an optional package is not there; None when no extra brings it."""
    package = (error.name or "").partition(".")[0]
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages), None)
    if extra is None:
        return None
    return EnvironmentFault(f"this command needs the package '{package}'; install kernelcourt[{extra}]")


def _failure(error: KernelcourtError) -> Failure:
    return Failure(error.exit_code, error.exit_code.name.lower(), str(error))


def _attempt(arguments: Sequence[str]) -> int | Failure:
    """Exit code of a command, or the error that it met."""
    try:
        return run(arguments)
    except KernelcourtError as error:
        return _failure(error)
    except typer.TyperException as error:
        return Failure(error.exit_code, ExitCode(error.exit_code).name.lower(), _wording(error))
    except ModuleNotFoundError as error:
        fault = _missing_extra(error)
        if fault is None:
            raise
        return _failure(fault)
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.CANCELLED


def _report(failure: Failure, as_json: bool) -> None:
    """The message on standard error and, for `--json`, one object on standard output."""
    print(f"error: {failure.message}", file=sys.stderr)  # noqa: T201
    if as_json:
        print(json.dumps({"error": {"code": failure.code, "message": failure.message}}))  # noqa: T201


def main() -> NoReturn:
    """Entry point of the `kcourt` script."""
    arguments = sys.argv[1:]
    result = _attempt(arguments)
    if isinstance(result, Failure):
        _report(result, "--json" in arguments)
        sys.exit(result.exit_code)
    sys.exit(result)
