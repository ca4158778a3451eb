"""Write what a first study needs: a site file for your cluster and a small study.

Example: kcourt init --study first --tag demo --model scripted --yes
"""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UsageError
from bench.wording import did_you_mean

if TYPE_CHECKING:
    from cluster.study.first_use import Wishes

app = typer.Typer(help=__doc__)

# option, question, what the option says, default → the answer
Ask = Callable[[str, str, str | None, str], str]


@app.command()
def init(
    site: Annotated[
        Path | None, typer.Option(help="Site file; default: kernelcourt/systems.yaml in your configuration.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="Your machine: a known system, or a new name.")] = None,
    account: Annotated[str | None, typer.Option(help="Account that pays; empty: the cluster's default.")] = None,
    partition: Annotated[
        str | None, typer.Option(help="Slurm partition; empty: what is known, or the default.")
    ] = None,
    gpus: Annotated[int | None, typer.Option(min=0, help="GPUs of a node, of a system that is not known.")] = None,
    study: Annotated[str | None, typer.Option(help="Name of the study.")] = None,
    tag: Annotated[str | None, typer.Option(help="Its kernels: a tag, or another selector.")] = None,
    model: Annotated[str | None, typer.Option(help="Its model; scripted: none, agents replay solutions.")] = None,
    treatment: Annotated[str | None, typer.Option(help="What is compared with no treatment.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing; what no option says has its default.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; asks nothing, as --yes.")] = False,
) -> None:
    """Write a site file and a small study, and print the command that dry-runs it.

    Asks for what no option says. This machine without Slurm (system local) needs no site file.

    Example: kcourt init --study first --tag demo --model scripted --yes
    """
    from cluster.study.first_use import study_path, study_text, write_new

    ask = partial(_answer, yes or as_json)
    machine = _machine(ask, system, site, account, partition, gpus)
    wishes = _wishes(ask, machine, study, tag, model, treatment)
    files = machine.files | {study_path(wishes.study): study_text(wishes)}
    write_new(files, force)
    command = f"kcourt study plan {wishes.study}"
    if as_json:
        typer.echo(json.dumps({"written": list(map(str, files)), "variables": machine.variables, "next": command}))
        return
    for path in files:
        typer.echo(f"written: {path}")
    for name, value in machine.variables.items():
        typer.echo(f"put into your shell's profile: export {name}={shlex.quote(value)}")
    typer.echo(f"dry-run it:\n  {' '.join([*machine.words, command])}")


def _answer(quiet: bool, option: str, question: str, given: str | None, default: str) -> str:
    """What an option says, else what the operator answers; the default when `quiet`.

    Raises:
        UsageError: nobody answers.
    """
    if given is not None or quiet:
        return default if given is None else given
    try:
        return str(typer.prompt(question, default=default, show_default=bool(default))).strip()
    except typer.Abort as error:
        raise UsageError(f"nobody answers the question for --{option}; give it, or --yes for every default") from error


@dataclass(frozen=True)
class _Machine:
    """The site file that says where jobs go, and the variables that name it; none of either for this machine."""

    files: dict[Path, str]
    variables: dict[str, str]

    @property
    def words(self) -> list[str]:
        return [f"{name}={shlex.quote(value)}" for name, value in self.variables.items()]


def _machine(
    ask: Ask, system: str | None, site: Path | None, account: str | None, partition: str | None, gpus: int | None
) -> _Machine:
    """Ask about the cluster; this machine alone, and a site file that is in force, need no questions."""
    from cluster.study.first_use import default_site, guessed_system, site_text
    from cluster.study.systems import SITE_VARIABLE, read_systems

    guess = guessed_system(os.environ)
    name = ask("system", "System (a known one, or a name for yours)", system, guess)
    named = {} if name == guess or not _is_told(os.environ) else {"KCOURT_SYSTEM": name}
    systems = read_systems(os.environ if Path(os.environ.get(SITE_VARIABLE, "")).is_file() else {})
    known = systems.get(name)
    said = any(value is not None for value in (site, account, partition, gpus))
    if known and not said and (known.of_site or known.facts.launcher == "local"):
        return _Machine({}, named)
    account = ask("account", "Account that pays (empty: the cluster's default)", account, "")
    usual = (known.facts.partition if known else None) or ""
    partition = ask("partition", "Partition (empty: the cluster's default)", partition, usual)
    if gpus is None and (known is None or known.facts.nodes.gpus is None):
        new = "" if known else f"; '{name}' is a new system, {did_you_mean(name, systems)}"
        gpus = _number("gpus", ask("gpus", "GPUs of a node (0: none)", None, ""), new)
    path = (site or Path(os.environ.get(SITE_VARIABLE) or default_site(os.environ))).absolute()
    text = site_text(name, account, "" if partition == usual else partition, gpus, os.environ)
    return _Machine({path: text}, {SITE_VARIABLE: str(path), **named})


def _is_told(environ: Mapping[str, str]) -> bool:
    """Whether something other than the site file says which system this is."""
    return bool(environ.get("KCOURT_SYSTEM") or environ.get("SLURM_CLUSTER_NAME"))


def _number(option: str, text: str, hint: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"--{option}: say how many, 0 for none; '{text}' is no number{hint}")
    return int(text)


def _wishes(
    ask: Ask, machine: _Machine, study: str | None, tag: str | None, model: str | None, treatment: str | None
) -> "Wishes":
    """Ask about the study; where no model can be served, agents that need none are the default."""
    from cluster.study.first_use import SCRIPTED, Wishes
    from cluster.study.identity import CONTROL
    from cluster.study.places import layers_root
    from cluster.study.setups import read_setups
    from cluster.study.treatments import known_treatments

    models = read_setups(layers_root()).models
    others = [name for name in known_treatments() if name != CONTROL]
    study = ask("study", "Name of the study", study, "first")
    tag = ask("tag", "Kernels (a tag; `kcourt task list` shows them)", tag, "demo")
    usual = models[0] if machine.files else SCRIPTED
    model = ask("model", f"Model ({', '.join([SCRIPTED, *models])})", model, usual)
    if model == SCRIPTED:
        return Wishes(study, tag, model, CONTROL)
    return Wishes(study, tag, model, ask("treatment", f"Treatment ({', '.join(others)})", treatment, others[0]))
