"""The options that decide where and how a job runs: declared once for every command that takes them."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from cluster.study.job_shape import VARIABLES

System = Annotated[str | None, typer.Option(help="The system; wins over KCOURT_SYSTEM.")]
_WHAT = {
    "partition": "Slurm partition",
    "account": "Account that pays",
    "qos": "Quality of service",
    "reservation": "Reservation",
    "constraint": "Node features",
    "gpus-per-node": "GPUs of a node",
    "time": "Wall time as 12:00:00",
}


def takes_slurm_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's parameter `flags` by one option for each of sbatch's that people set.

    The command gets those that were given, as sbatch's name → text.
    """
    names = {name.replace("-", "_"): name for name in VARIABLES}

    @wraps(command)
    def with_options(**given: Any) -> None:
        texts = {name: given.pop(parameter) for parameter, name in names.items()}
        command(flags={name: text for name, text in texts.items() if text is not None}, **given)

    declared = signature(command, eval_str=True)
    parameters = [
        shown
        for parameter in declared.parameters.values()
        for shown in (map(_option, names.values()) if parameter.name == "flags" else [parameter])
    ]
    with_options.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]
    return with_options


def _option(name: str) -> Parameter:
    option = typer.Option(help=f"{_WHAT[name]}; wins over {VARIABLES[name]}.")
    kind = Parameter.POSITIONAL_OR_KEYWORD
    return Parameter(name.replace("-", "_"), kind, default=None, annotation=Annotated[str | None, option])
