"""Makes a run directory ready: secret, launch material, staged start material, config files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.prompts.given import CONTRACTS
from bench.errors import ConfigError, EnvironmentFault
from bench.judge.schemas import Problem
from bench.seeds import new_root, write_root
from bench.start import Start, start_material
from bench.task import find_task
from cluster.job.allocation import Plan
from cluster.job.documents import write_json, write_private
from cluster.job.launched import Launched
from cluster.job.layout import RunLayout
from cluster.job.roles import agent_config, judge_config
from cluster.study.briefing import contract_of, given_to
from cluster.study.env_files import render_env
from cluster.study.problems import render_problems, same_start
from cluster.study.wave import SetupPlan, Wave


def prepare(layout: RunLayout, wave: Wave, plan: Plan) -> None:
    """Write everything that the job's steps read.

    Raises:
        ConfigError: a run of this id is there already, the prices are wrong, or a prompt promises what its setup
            does not keep.
        EnvironmentFault: the run root cannot be written.
    """
    agents = [agent_config(layout, wave, plan, node) for node in range(len(plan.agents))]
    given = {setup.name: given_to(setup.env, setup.settings, setup.problems) for setup in wave.setups}
    _create(layout)
    write_root(layout.secret, new_root())
    _write_launch(layout, wave, plan)
    _stage(layout, wave.problems)
    for setup in wave.setups:
        _give(layout, setup, given[setup.name])
    for slot in plan.judges:
        judge = judge_config(layout, wave, plan, slot)
        write_private(layout.judge_config(slot.rank), judge.model_dump_json(indent=2))
    for node, agent in enumerate(agents):
        write_private(layout.agent_config(node), agent.model_dump_json(indent=2))


def _create(layout: RunLayout) -> None:
    try:
        layout.create()
    except FileExistsError as error:
        raise ConfigError(
            f"{layout.root}: this run directory is there already, and each is used once; start a new job, or "
            "set another RUN_ROOT"
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
    if script := _script_text(layout, setup):
        write_private(layout.script(setup.name), script)
        values |= {"AGENT_SCRIPT": layout.script(setup.name).name, "AGENT_SCRIPT_RULE": None}
    write_private(layout.env_snapshot(setup.name), render_env(values))


def _script_text(layout: RunLayout, setup: SetupPlan) -> str | None:
    """The scripted plan, if there is one: that of a file, or one made by a rule, with its candidates."""
    if setup.settings.agent_script:
        return setup.settings.agent_script.read_text(encoding="utf-8")
    made = setup.made_script(layout.candidates(setup.name))
    if made is None:
        return None
    for path, text in made.candidates.items():
        write_private(path, text)
    return made.text


def _stage(layout: RunLayout, problems: Sequence[Problem]) -> None:
    """Start material of every kernel, read-only; the controls stay where agents never are."""
    for kernel, problem in same_start(problems).items():
        folder = layout.staged(kernel)
        folder.mkdir(parents=True)
        _write_read_only(folder, start_material(find_task(kernel), Start(problem.start)))


def _give(layout: RunLayout, setup: SetupPlan, given: dict[str, bytes]) -> None:
    """Stage it for the agents with the contract of every kernel, and keep it for a rerun."""
    contracts = {
        f"{CONTRACTS}/{problem.kernel}.json": json.dumps(contract_of(setup.settings, problem), indent=2).encode()
        for problem in setup.problems
    }
    _write_read_only(layout.kept_given(setup.name), given)
    _write_read_only(layout.given(setup.name), given | contracts)


def _write_read_only(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o444)
