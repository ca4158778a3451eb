"""How a job uses its nodes: its plan, and what runs inside an allocation of Slurm.

Example: kcourt cluster plan experiments/.env.gold
"""

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster.commands.slurm_flags import System, takes_slurm_flags

if TYPE_CHECKING:  # what plans a job takes long to import
    from cluster.job.allocation import JudgeSlot, Plan
    from cluster.job.preview import Preview

app = typer.Typer(help=__doc__, no_args_is_help=True)

COLUMNS = ("rank", "host", "node", "slot", "router port", "judge port", "CPUs", "GPUs", "url")


@app.command()
@takes_slurm_flags
def plan(
    env: Annotated[Path, typer.Argument(metavar="ENV", help="Env file of a setup.")],
    hosts: Annotated[
        str | None,
        typer.Option(help="Hosts of the allocation: n1,n2 or, where Slurm is, n[1-2]; default: as many as needed."),
    ] = None,
    peak_grades_per_hour: Annotated[
        int | None, typer.Option(min=1, help="Grades an hour at the busiest time; says which JUDGE_NODES they need.")
    ] = None,
    system: System = None,
    flags: Mapping[str, str] = {},
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Print what each node of a setup's job is for, each judge rank's ports, CPUs and GPUs, and the sbatch command.

    Nothing is submitted and no snapshot is made: in the command the env file stands where its snapshot will.

    Example: kcourt cluster plan experiments/.env.gold --hosts n1,n2,n3,n4
    """
    from cluster.job.hosts import expand
    from cluster.job.preview import Asked, preview
    from cluster.study.systems import choose_system

    asked = Asked(choose_system(os.environ, system), flags, os.environ, peak_grades_per_hour)
    found = preview(env, expand(hosts or ""), asked)
    if as_json:
        typer.echo(json.dumps(found.document()))
    else:
        _print(found)


def _print(found: "Preview") -> None:
    from bench.reports.terminal import console_for, plain_table
    from cluster.job.allocation import split_of

    console, split = console_for(), split_of(found.settings)
    head = [f"{split}; ask for --nodes={split.total}", "", *_roles(found.plan)]
    console.print("\n".join(head), highlight=False, markup=False, soft_wrap=True)
    if found.plan.judges:
        console.print(plain_table(COLUMNS, [_row(slot) for slot in found.plan.judges]))
    command = (
        shlex.join(found.sbatch) or "this system has no Slurm; --system SYSTEM prints the sbatch command of another"
    )
    console.print("\n".join([*found.sentences(), "", command]), highlight=False, markup=False, soft_wrap=True)


def _roles(plan: "Plan") -> Iterator[str]:
    judges = dict.fromkeys(slot.host.name for slot in plan.judges)
    for role, hosts in (("inference", plan.inference), ("agents", plan.agents)):
        yield f"{role:10} {', '.join(host.name for host in hosts) or '-'}"
    yield f"{'judges':10} {', '.join(judges) or '-'}"


def _row(slot: "JudgeSlot") -> tuple[object, ...]:
    where = (slot.rank, slot.host.name, slot.node, slot.slot, slot.router_port, slot.judge_port)
    return (*where, spans(slot.cpus) or None, spans(slot.gpus) or None, slot.url)


def spans(numbers: Sequence[int]) -> str:
    """Numbers as `0-23,96-119`."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(sorted(numbers)), lambda at: at[1] - at[0])]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


@app.command("run")
def run_in_allocation(
    envs: Annotated[list[Path], typer.Argument(metavar="ENV...", help="Env files of the job's setups: snapshots.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Run a job inside the Slurm allocation that this command is called in; the batch script calls it.

    Exits with the job's exit code. The run directory is <RUN_ROOT>/<job id>.

    Example: kcourt cluster run experiments/.rendered/gold-20260101T120000Z-0a1b2c3d.env
    """
    from bench.places import anchored
    from bench.reports.terminal import console_for
    from cluster.commands.local_job import Done, print_result
    from cluster.commands.view import PlainView
    from cluster.job.launchers.slurm import launcher_of
    from cluster.job.layout import RunLayout
    from cluster.job.life import run_job
    from cluster.study.wave import read_wave

    wave = read_wave(envs)
    launcher = launcher_of(os.environ)
    layout = RunLayout(anchored(wave.settings.run_root).resolve() / launcher.job_id)
    console = console_for(stderr=as_json)
    summary = run_job(wave, layout.root, launcher, PlainView(console))
    print_result(console, Done(layout, summary), as_json)
    raise typer.Exit(summary.ending.exit_code)
