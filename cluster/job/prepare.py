"""Makes a run directory ready: secret, launch material, staged start material, config files."""

from collections.abc import Sequence

from bench.errors import ConfigError, EnvironmentFault
from bench.judge.schemas import Problem
from bench.seeds import new_root, write_root
from bench.task import find_task
from cluster.job.allocation import Plan
from cluster.job.collect import Launched
from cluster.job.layout import RunLayout, write_json, write_private
from cluster.job.roles import agent_config, judge_config
from cluster.study.env_files import render_env
from cluster.study.problems import render_problems, same_start, start_material
from cluster.study.wave import SetupPlan, Wave


def prepare(layout: RunLayout, wave: Wave, plan: Plan) -> None:
    """Write everything that the job's steps read.

    Raises:
        ConfigError: a run of this id is there already.
        EnvironmentFault: the run root cannot be written.
    """
    _create(layout)
    write_root(layout.secret, new_root())
    _write_launch(layout, wave, plan)
    _stage(layout, wave.problems)
    for slot in plan.judges:
        judge = judge_config(layout, wave, plan, slot)
        write_private(layout.judge_config(slot.rank), judge.model_dump_json(indent=2))
    for node in range(len(plan.agents)):
        agent = agent_config(layout, wave, plan, node)
        write_private(layout.agent_config(node), agent.model_dump_json(indent=2))


def _create(layout: RunLayout) -> None:
    try:
        layout.create()
    except FileExistsError as error:
        raise ConfigError(
            f"{layout.root}: this run is there already; a run id is used once, start a new one"
        ) from error
    except OSError as error:
        raise EnvironmentFault(
            f"{layout.root}: cannot be made ({error.strerror}); set RUN_ROOT to a writable folder"
        ) from error


def _write_launch(layout: RunLayout, wave: Wave, plan: Plan) -> None:
    """What was launched, so that it can be run again from here, and what a later collection expects."""
    for setup in wave.setups:
        _write_setup(layout, setup)
    write_private(layout.problems, render_problems(wave.problems))
    launched = Launched(job_id=layout.job_id, ranks=len(plan.judges), setups=wave.records)
    write_json(layout.plan, launched.model_dump(mode="json"))


def _write_setup(layout: RunLayout, setup: SetupPlan) -> None:
    """One setup's settings as they took effect, with its problems and its scripted plan beside them."""
    values = setup.settings.values | {
        "KERNELS": None,
        "PROBLEMS_FILE": layout.setup_problems(setup.name).name,
    }
    write_private(layout.setup_problems(setup.name), render_problems(setup.problems))
    if setup.settings.agent_script:
        script = layout.script(setup.name)
        write_private(script, setup.settings.agent_script.read_text(encoding="utf-8"))
        values["AGENT_SCRIPT"] = script.name
    write_private(layout.env_snapshot(setup.name), render_env(values))


def _stage(layout: RunLayout, problems: Sequence[Problem]) -> None:
    """Start material of every kernel, read-only; the controls stay where agents never are."""
    for kernel, problem in same_start(problems).items():
        folder = layout.staged(kernel)
        folder.mkdir(parents=True)
        for name, content in start_material(find_task(kernel), problem.start).items():
            path = folder / name
            path.write_bytes(content)
            path.chmod(0o444)
