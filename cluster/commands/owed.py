"""Say what of a study is still owed and why, list it for a rerun, and declare answered work owed.

Example: kcourt owed collect demo
"""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bench.errors import ConfigError, ExitCode, UsageError
from bench.wording import did_you_mean
from cluster.commands.slurm_flags import System
from cluster.commands.study import Hardware, choices_of

if TYPE_CHECKING:
    from bench.judge.schemas import Problem
    from cluster.after.accounts import PlannedSetup

app = typer.Typer(help=__doc__, no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Runs = Annotated[Path | None, typer.Option(metavar="ROOT", help="Folder of run directories; wins over RUN_ROOT.")]


@app.command()
def collect(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[STUDY|SETUP]...", help="Studies and setups; default: every setup that is rendered."),
    ] = None,
    runs: Runs = None,
    databases: Annotated[
        list[Path] | None, typer.Option("--db", help="A merged database beside the run directories; repeatable.")
    ] = None,
    lists: Annotated[
        bool,
        typer.Option("--lists", help="Write owed/<setup>.txt in the folder of experiments, `<kernel> <slot>` a line."),
    ] = False,
    system: System = None,
    hardware: Hardware = None,
    as_json: Json = False,
) -> None:
    """Account for every planned (setup, kernel, slot): delivered, owed and in which class, running or under review.

    Reads run directories, the shards of jobs that run, merged databases and what was declared. What cannot be read is
    named as a warning; where nothing at all can be read, the exit code is 75.

    Example: kcourt owed collect demo
    """
    from cluster.after.accounts import account
    from cluster.commands.owed_view import print_accounts, print_warnings
    from cluster.study.places import experiments_root

    planned = planned_setups(names or [], system, hardware)
    accounts = account(planned, [runs.resolve()] if runs else None, databases or [], in_queue(system))
    written = accounts.write_lists(experiments_root() / "owed") if lists else []
    print_warnings(accounts)
    if as_json:
        typer.echo(json.dumps({**accounts.document(), "lists": [str(path) for path in written]}))
    else:
        print_accounts(accounts, written)
    if accounts.nothing_read:
        raise typer.Exit(ExitCode.MERGE_FAILED)


@app.command()
def declare(
    setup: Annotated[str, typer.Argument(metavar="SETUP", help="A rendered setup.")],
    kernel: Annotated[str, typer.Argument(metavar="KERNEL[:SLOT]", help="Its kernel; the slot where it has several.")],
    why: Annotated[str, typer.Option(help="The reason, for whoever reads the accounts.")],
    blame: Annotated[
        Literal["infra", "budget", "task"] | None,
        typer.Option("--class", help="What its rerun gets: budget is a larger one, the others are not."),
    ] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take earlier declarations back.")] = False,
    runs: Runs = None,
    as_json: Json = False,
) -> None:
    """Declare a slot owed although it is answered, or take that back. Both are rows; none is ever changed.

    What was answered before a declaration counts no longer; what a rerun answers counts again.

    Example: kcourt owed declare gold axpy --class infra --why "the node's clock was wrong"
    """
    from cluster.after.declared import WITHDRAWN, declare

    if withdraw == (blame is not None):
        raise UsageError("say either --class infra, budget or task, or --withdraw")
    if not why.strip():
        raise UsageError("--why is empty; say what happened, for whoever reads the accounts")
    one = setup_of(setup)
    problem = _problem(one, kernel)
    root = runs.resolve() if runs else one.run_root
    reason = f"{blame or WITHDRAWN}: {why.strip()}"
    grade_id = declare(root, one.settings.record, problem, reason)
    place = {"setup": one.name, "kernel": problem.kernel, "slot": problem.slot}
    if as_json:
        typer.echo(json.dumps({**place, "reason": reason, "grade": grade_id}))
    else:
        typer.echo(f"{one.name} {problem.kernel} slot {problem.slot}: {reason} (grade {grade_id})")


def planned_setups(names: Sequence[str], system: str | None, hardware: str | None) -> "list[PlannedSetup]":
    """The setups that are named, each once, or that studies which are named have; without names all rendered ones.

    Raises:
        ConfigError: a name is neither a study nor a rendered setup, nothing is rendered, or an env file is wrong.
    """
    from cluster.study.places import experiments_root
    from cluster.study.studies import known_studies

    if not names:
        names = sorted(path.name.removeprefix(".env.") for path in experiments_root().glob(".env.*"))
        if not names:
            raise ConfigError(f"no setup is rendered in {experiments_root()}; `kcourt study plan STUDY` does that")
    studies = set(known_studies())
    found = [
        setup
        for name in names
        for setup in (_of_study(name, system, hardware) if name in studies else [setup_of(name)])
    ]
    return list({setup.name: setup for setup in found}.values())


def _of_study(name: str, system: str | None, hardware: str | None) -> "list[PlannedSetup]":
    from cluster.after.accounts import PlannedSetup
    from cluster.commands.study_jobs import as_rendered
    from cluster.study.places import experiments_root
    from cluster.study.render import build
    from cluster.study.studies import read_study

    built = build(read_study(name), experiments_root(), choices_of(system, hardware, None, {}))
    return [PlannedSetup(*as_rendered(setup)) for setup in built]


def setup_of(name: str) -> "PlannedSetup":
    """A setup as it is rendered; one that only serves a model plans nothing."""
    from cluster.after.accounts import PlannedSetup
    from cluster.study.places import env_of_setup
    from cluster.study.problems import problems_of
    from cluster.study.settings import read_settings

    settings = read_settings(env_of_setup(name))
    return PlannedSetup(settings, [] if settings.serves_only else problems_of(settings))


def in_queue(system: str | None) -> dict[str, str]:
    """Setup → how it waits or runs in Slurm's queue. Raises EnvironmentFault when squeue does not answer."""
    from cluster.study.queue import QueueState, by_setup, own_jobs
    from cluster.study.systems import choose_system

    if choose_system(os.environ, system).facts.launcher != "slurm" or not shutil.which("squeue"):
        return {}
    words = {QueueState.RUNNING: "runs", QueueState.QUEUED: "waits"}
    return {setup: f"job {job.job_id} {words[job.state]}" for setup, job in by_setup(own_jobs()).items()}


def _problem(setup: "PlannedSetup", text: str) -> "Problem":
    """The problem that KERNEL[:SLOT] names."""
    kernel, _, slot = text.partition(":")
    slots = {str(problem.slot): problem for problem in setup.problems if problem.kernel == kernel}
    if not slots:
        known = dict.fromkeys(problem.kernel for problem in setup.problems)
        raise UsageError(f"setup '{setup.name}' has no kernel '{kernel}'; {did_you_mean(kernel, known)}")
    if not slot and len(slots) == 1:
        return next(iter(slots.values()))
    if slot not in slots:
        raise UsageError(
            f"{kernel} of setup '{setup.name}' has the slots {', '.join(slots)}; write {kernel}:{min(slots)}"
        )
    return slots[slot]
