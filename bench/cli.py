"""The `kcourt` command: finds sub-commands by name, imports the one that is called, words every error."""

import importlib.util
import json
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from bench.errors import EnvironmentFault, ExitCode, KernelcourtError, UsageError

COMMANDS = "kernelcourt.commands"
# Packages that only the extra `judge` of pyproject.toml brings.
JUDGE_PACKAGES = ("fastapi", "httptools", "numpy", "prometheus_client", "scipy", "sqlalchemy", "uvloop")
DOCTOR = "hint: `kcourt doctor` says what this machine has and lacks\n"
# Written here, not by Typer: importing that alone would take half of the time that a list of commands may.
HELP = """Usage: kcourt COMMAND [ARGS]...

  Kernelcourt: run agents that write compute kernels, and grade what they write.

Commands:
{commands}

Options:
  --version  Print the version and leave.
  --help     Show this message and leave; after a command, its own help.

Example: kcourt grade axpy my_axpy.c --preset S --allow-sandbox limits
"""


class Failure(NamedTuple):
    """An error as it leaves the process; `code` is the exit code's name in lower case, `hint` is for people alone."""

    exit_code: ExitCode
    message: str
    hint: str = ""

    @property
    def code(self) -> str:
        return self.exit_code.name.lower()


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


def help_text() -> str:
    width = max(map(len, commands()), default=0)
    return HELP.format(commands="\n".join(f"  {name:{width}}  {summary(entry)}" for name, entry in commands().items()))


def load_command(name: str) -> Any:
    """Import a sub-command's module; its command, without the completion options that Typer adds to each.

    Raises:
        UsageError: there is no such command; the message names the nearest.
    """
    if name not in commands():
        from bench.wording import did_you_mean

        raise UsageError(f"no command '{name}'; {did_you_mean(name, commands())}")
    import typer

    command = typer.main.get_command(commands()[name].load())
    command.params = [option for option in command.params if not (option.name or "").endswith("_completion")]
    return command


def run(arguments: Sequence[str]) -> int:
    """Run one command line in this process and return its exit code.

    Raises:
        UsageError: the command line does not parse; whatever else the command raises.
    """
    match arguments:
        case [] | ["--help" | "-h", *_]:
            sys.stdout.write(help_text())
            return ExitCode.OK
        case ["--version", *_]:
            sys.stdout.write(f"kcourt {version('kernelcourt')}\n")
            return ExitCode.OK
        case [str(option), *_] if option.startswith("-"):
            raise UsageError(f"no option '{option}'; see `kcourt --help`")
    return _run_command(arguments[0], arguments[1:])


def _run_command(name: str, arguments: Sequence[str]) -> int:
    command = load_command(name)
    import typer

    try:
        outcome = command.main(args=list(arguments), prog_name=f"kcourt {name}", standalone_mode=False)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else f"kcourt {name}"
        message = error.format_message().replace("Value error, ", "").rstrip(".") or "a command is missing"
        raise UsageError(f"{message}; see `{path} --help`") from error
    except typer.Abort:
        return ExitCode.CANCELLED
    return outcome if isinstance(outcome, int) else ExitCode.OK


def _attempt(arguments: Sequence[str]) -> int | Failure:
    """Exit code of a command line, or the error that it met."""
    try:
        return run(arguments)
    except KernelcourtError as error:
        blames_machine = EnvironmentFault in (type(error), type(error.__cause__))
        return Failure(error.exit_code, str(error), DOCTOR if blames_machine else "")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in JUDGE_PACKAGES:
            raise
        message = f"this command needs the package '{package}'; pip install 'kernelcourt[judge]'"
        return Failure(EnvironmentFault.exit_code, message, DOCTOR)
    except KeyboardInterrupt:
        return ExitCode.CANCELLED


def _report(failure: Failure, as_json: bool) -> None:
    """The message on standard error and, for `--json`, one object on standard output."""
    sys.stderr.write(f"error: {failure.message}\n{failure.hint}")
    if as_json:
        error = {"code": failure.code, "message": failure.message}
        sys.stdout.write(json.dumps({"error": error}) + "\n")


def main() -> NoReturn:
    """Entry point of the `kcourt` script."""
    arguments = sys.argv[1:]
    result = _attempt(arguments)
    if isinstance(result, Failure):
        _report(result, "--json" in arguments)
        sys.exit(result.exit_code)
    sys.exit(result)
