"""Print what an agent would be told."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UsageError
from bench.wording import did_you_mean

if TYPE_CHECKING:
    from bench.judge.schemas import Problem

app = typer.Typer()


@app.command()
def prompt(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help="A kernel of the setup.")],
    setup: Annotated[str, typer.Option(help="A rendered setup, or the path of an env file.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the prompt, its sections, the tools.")
    ] = False,
) -> None:
    """Print the whole prompt that an agent of a setup would get for a kernel, held against what the setup enforces.

    In a run the pages and files of a treatment lie elsewhere; here /shared stands for that place.

    Example: kcourt prompt axpy --setup gold
    """
    from cluster.study.briefing import given_to, told
    from cluster.study.places import env_of_setup
    from cluster.study.problems import problems_of
    from cluster.study.settings import read_settings

    env = env_of_setup(setup)
    settings = read_settings(env)
    problem = _chosen(problems_of(settings), kernel, settings.setup)
    said = told(given_to(env, settings, [problem]), settings, problem)
    if as_json:
        facts = {"setup": settings.setup, "kernel": kernel, "prompt": said.prompt}
        typer.echo(json.dumps({**facts, "sections": said.sections, "tools": said.tools}))
    else:
        typer.echo(said.prompt, nl=False)


def _chosen(problems: "list[Problem]", kernel: str, setup: str) -> "Problem":
    """The first problem of a kernel; all its repeat slots are told the same."""
    for problem in problems:
        if problem.kernel == kernel:
            return problem
    hint = did_you_mean(kernel, [problem.kernel for problem in problems])
    raise UsageError(f"setup '{setup}' has no kernel '{kernel}'; {hint}")
