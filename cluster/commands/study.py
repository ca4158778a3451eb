"""Plan studies, submit them, and account for every slot of theirs.

Example: kcourt study plan demo
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UsageError
from bench.judge.schemas import Language
from cluster.commands.slurm_flags import System, takes_slurm_flags

if TYPE_CHECKING:
    from cluster.study.render import Choices

app = typer.Typer(help=__doc__, no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="STUDY", help="Name of a study: a file of experiments/studies/.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Hardware = Annotated[str | None, typer.Option(help="Hardware that grades are for; wins over the study's.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A key that wins over all layers; repeatable.")
]
RenderTo = Annotated[
    Path | None, typer.Option(help="Folder that gets what is rendered; default: the folder of experiments.")
]
RunRoot = Annotated[Path | None, typer.Option(help="Folder of run directories; wins over RUN_ROOT.")]


@app.command("list")
def list_studies(as_json: Json = False) -> None:
    """List the studies, with how many setups each has and what it asks.

    Example: kcourt study list
    """
    from cluster.commands.study_view import listed, print_rows
    from cluster.study.studies import known_studies

    rows = [listed(name) for name in known_studies()]
    if as_json:
        typer.echo(json.dumps({"studies": rows}))
    else:
        print_rows(("study", "setups", "kernels", "control", "question"), [tuple(row.values()) for row in rows])


@app.command()
def show(study: Name, as_json: Json = False) -> None:
    """Show what a study asks: its kernels, the values of each axis, its control, its setups.

    Example: kcourt study show demo
    """
    from cluster.commands.study_view import described, print_pairs
    from cluster.study.places import experiments_root
    from cluster.study.render import build
    from cluster.study.studies import read_study

    asked = read_study(study)
    built = build(asked, experiments_root(), choices_of(None, None, None, {}))
    found = described(asked, [setup.name for setup in built])
    if as_json:
        typer.echo(json.dumps(found))
    else:
        print_pairs(found)


@app.command()
@takes_slurm_flags
def plan(
    study: Name,
    system: System = None,
    hardware: Hardware = None,
    overrides: Overrides = None,
    flags: Mapping[str, str] = {},
    render_to: RenderTo = None,
    as_json: Json = False,
) -> None:
    """Render every setup of a study and print what it would cost; nothing is submitted.

    Writes `.env.<setup>` and `problems-<setup>.jsonl`, and nothing else.

    Example: kcourt study plan demo
    """
    from cluster.commands.study_view import notes, plan_document, print_plan
    from cluster.study.places import experiments_root
    from cluster.study.render import build, write
    from cluster.study.studies import read_study

    found, folder = read_study(study), render_to or experiments_root()
    built = build(found, folder, choices_of(system, hardware, overrides, flags))
    said = [*notes(built)]
    write(built)
    if as_json:
        typer.echo(json.dumps(plan_document(found, built, said)))
    else:
        print_plan(found, built, said, system)


@app.command()
@takes_slurm_flags
def submit(
    study: Name,
    local: Annotated[bool, typer.Option("--local", help="On this machine, as --system local.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the jobs to their end; local ones always are.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Also setups with a job that waits or runs.")] = False,
    accept_training_tier: Annotated[
        bool,
        typer.Option("--accept-training-tier", help="Kernels and transcripts may become a provider's training data."),
    ] = False,
    system: System = None,
    hardware: Hardware = None,
    overrides: Overrides = None,
    flags: Mapping[str, str] = {},
    render_to: RenderTo = None,
    run_root: RunRoot = None,
    as_json: Json = False,
) -> None:
    """Snapshot every setup of a study and run it: one Slurm job a setup, or all of them on this machine.

    A snapshot is read-only and holds everything that the job reads of the setup, so a later plan does not reach a
    job that waits. A setup with a job that waits or runs is left out.

    Example: kcourt study submit demo --local
    """
    from cluster.commands.study_jobs import run_locally, submit_to_slurm
    from cluster.commands.study_view import refuse_training_tier, refuse_unresumable, refuse_unset_keys
    from cluster.study.places import experiments_root
    from cluster.study.prices import price_table
    from cluster.study.render import build, write
    from cluster.study.studies import read_study

    if local and system not in (None, "local"):
        raise UsageError(f"--local is --system local, and --system {system} was given; keep one")
    choices = choices_of("local" if local else system, hardware, overrides, flags)
    here = choices.system.facts.launcher == "local"
    if run_root is not None and not here:
        raise UsageError("--run-root is for jobs on this machine; say --set RUN_ROOT=FOLDER")
    found, folder = read_study(study), render_to or experiments_root()
    built = build(found, folder, choices)
    refuse_unset_keys(built, choices.environ)
    refuse_unresumable(built)
    price_table()
    if not accept_training_tier:
        refuse_training_tier(built)
    rendered = write(built)
    if here:
        code = run_locally(found, rendered, run_root, as_json)
    else:
        code = submit_to_slurm(found, rendered, again=again, wait=wait, as_json=as_json)
    raise typer.Exit(code)


@app.command()
def status(
    study: Name,
    system: System = None,
    hardware: Hardware = None,
    render_to: RenderTo = None,
    run_root: RunRoot = None,
    as_json: Json = False,
) -> None:
    """Account for every slot of a study: delivered, running, queued, under review, or owed and why.

    Example: kcourt study status demo
    """
    from cluster.commands.study_jobs import accounts_of, print_accounts
    from cluster.study.places import experiments_root
    from cluster.study.render import build
    from cluster.study.studies import read_study

    found, folder = read_study(study), render_to or experiments_root()
    built = build(found, folder, choices_of(system, hardware, None, {}))
    accounts = accounts_of(found, built, run_root)
    if as_json:
        typer.echo(json.dumps(accounts.document()))
    else:
        print_accounts(accounts)


@app.command("import")
def import_run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Run configuration of AgentKernelArena.")],
    name: Annotated[str | None, typer.Option(help="Name of the study; default: the file's.")] = None,
    language: Annotated[
        Language | None, typer.Option(help="Language to write kernels in, in place of the tasks' own.")
    ] = None,
    run_suffix: Annotated[
        list[str] | None, typer.Option(help="Suffix of a run to compare: a treatment; `baseline` is none. Repeatable.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a study of that name.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write a study from a run configuration of AgentKernelArena, and list what has no counterpart here.

    Example: kcourt study import quickstart.yaml --language c --run-suffix baseline --run-suffix hints
    """
    from cluster.study.arena import import_study
    from cluster.study.first_use import study_path, suggested_name, write_new

    name = name or suggested_name(file.stem)
    path = study_path(name)
    text, missing = import_study(file, name, language, run_suffix or ())
    write_new({path: text}, force)
    if as_json:
        typer.echo(json.dumps({"written": str(path), "without_counterpart": missing}))
        return
    typer.echo(f"written: {path}")
    for line in missing:
        typer.echo(f"no counterpart: {line}")
    typer.echo(f"dry-run it:\n  kcourt study plan {name}")


def choices_of(
    system: str | None, hardware: str | None, overrides: list[str] | None, flags: Mapping[str, str]
) -> "Choices":
    import os

    from cluster.study.render import Choices
    from cluster.study.systems import choose_system

    pairs = [text.partition("=") for text in overrides or ()]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise UsageError(f"--set {wrong[0]}: write KEY=VALUE; `kcourt settings list` shows the keys")
    chosen = choose_system(os.environ, system)
    return Choices(chosen, dict(os.environ), flags, hardware, {key: value for key, _, value in pairs})
