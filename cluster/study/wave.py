"""A wave: the setups that one job serves, read from their env files and checked against each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.budget import BudgetMode
from agent.endpoint import Wire
from agent.harnesses import UNSERVED, WireFormat, check_budget_mode, harness_class, load_harness
from bench.errors import ConfigError
from bench.judge.schemas import Problem, SetupRecord
from bench.task import find_task
from cluster.study.problems import problems_of, same_start
from cluster.study.scripts import Script, make_script
from cluster.study.settings import JobSettings, read_settings

# What a service speaks, in the harnesses' words for it.
SERVICE_WIRES: Mapping[str, tuple[Wire, ...]] = {"anthropic": ("messages",), "openai": ("chat", "responses")}


@dataclass(frozen=True)
class SetupPlan:
    """One setup of the job: its env file, what the file says, and its problems."""

    env: Path
    settings: JobSettings
    problems: tuple[Problem, ...]

    @property
    def name(self) -> str:
        return self.settings.setup

    @property
    def harness_options(self) -> dict[str, str]:
        """What the harness is told beside the episode."""
        return {"plan": str(self.settings.agent_script)} if self.settings.agent_script else {}

    @property
    def is_scripted(self) -> bool:
        """Whether the harness replays a plan, which the run then keeps a copy of."""
        return bool(self.settings.agent_script or self.settings.agent_script_rule)

    def made_script(self, folder: Path) -> Script | None:
        """The scripted plan that AGENT_SCRIPT_RULE asks for, if it does, its own candidates in `folder`.

        Raises:
            ConfigError: a kernel lacks a control that the rule needs.
        """
        if self.settings.agent_script_rule is None:
            return None
        tasks = [find_task(name) for name in dict.fromkeys(problem.kernel for problem in self.problems)]
        return make_script(self.settings.agent_script_rule, tasks, self.settings.language, folder)


@dataclass(frozen=True)
class Wave:
    """All setups of one job. `settings` is one of theirs; use it for what they share."""

    setups: tuple[SetupPlan, ...]

    @property
    def settings(self) -> JobSettings:
        return self.setups[0].settings

    @property
    def problems(self) -> list[Problem]:
        """All problems; a problem's place in this list is its global index."""
        return [problem for setup in self.setups for problem in setup.problems]

    @property
    def records(self) -> dict[str, SetupRecord]:
        """Setup name → identity."""
        return {setup.name: setup.settings.record for setup in self.setups}


def read_wave(envs: Sequence[Path], overrides: Mapping[str, str] = {}) -> Wave:
    """Read the env files of one job.

    Raises:
        ConfigError: a file is wrong, two files disagree on a key of the job, or a setup is given twice.
    """
    plans = []
    for env in envs:
        settings = read_settings(env, overrides)
        plan = SetupPlan(env, settings, tuple(problems_of(settings)))
        _check_harness(plan)
        plans.append(plan)
    for other in plans[1:]:
        _agree(plans[0], other)
    _once(plans)
    wave = Wave(tuple(plans))
    same_start(wave.problems)
    return wave


def _check_harness(plan: SetupPlan) -> None:
    """Ask the harness now whether it takes its options; a driver asks only after the judges have started."""
    try:
        check_harness_resumes(plan.settings)
        if plan.made_script(plan.env.parent) is None:
            _check_wire(plan.settings, load_harness(plan.settings.harness, plan.harness_options).wire_format)
    except ConfigError as error:
        raise ConfigError(f"{plan.env}: HARNESS={plan.settings.harness}: {error}") from error


def check_harness_resumes(settings: JobSettings) -> None:
    """Raises ConfigError for a budget of time and a harness that cannot use it up."""
    if settings.agent_budget_mode is BudgetMode.TIME:
        check_budget_mode(harness_class(settings.harness), settings.agent_budget_mode)


def _check_wire(settings: JobSettings, spoken: WireFormat) -> None:
    """A harness and the service that it is to ask must speak the same."""
    if settings.inference_source != "service" or settings.agent_llm_mode == "gateway":
        return
    served = SERVICE_WIRES[settings.inference_service_api]
    if spoken not in UNSERVED.union(served):
        raise ConfigError(
            f"speaks {spoken}, and INFERENCE_SERVICE_API={settings.inference_service_api} is {' and '.join(served)}; "
            "choose a harness that does, or another model"
        )


def _agree(first: SetupPlan, other: SetupPlan) -> None:
    """One job has one answer to each key of the job."""
    theirs = other.settings.job_values
    for key, value in first.settings.job_values.items():
        if theirs[key] != value:
            raise ConfigError(
                f"{other.env}: {key} is {theirs[key]}, and {value} in {first.env}; "
                "the setups of one job share it, so make them equal or run two jobs"
            )


def _once(plans: Sequence[SetupPlan]) -> None:
    seen: dict[str, Path] = {}
    for plan in plans:
        if plan.name in seen:
            raise ConfigError(f"{plan.env}: setup '{plan.name}' is also that of {seen[plan.name]}; give each one name")
        seen[plan.name] = plan.env
