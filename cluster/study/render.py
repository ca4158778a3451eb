"""Renders a study: builds each setup from layers and kernels, and writes its env file and its problems file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import get_args

from bench.errors import ConfigError, UsageError
from bench.judge.schemas import Problem
from bench.start import lacks_start
from bench.task import Task, select
from cluster.job.allocation import Split, split_of
from cluster.job.documents import write_private
from cluster.study.briefing import check_treatment
from cluster.study.env_files import read_env, render_env
from cluster.study.hardware import chosen_hardware, hardware_layer, shown_hardware
from cluster.study.identity import CONTROL
from cluster.study.job_shape import Option, gpus_asked, granted_s, job_shape
from cluster.study.keys import Role
from cluster.study.origins import Layer, Origins, stacked, values_of
from cluster.study.places import layers_root
from cluster.study.problems import make_problem, render_problems
from cluster.study.settings import JobSettings, keys
from cluster.study.setups import experiment_layers, settings_of
from cluster.study.studies import Axis, Cell, Study, cells, compares_with
from cluster.study.systems import System
from cluster.study.treatments import Treatment, read_treatment

HOUR_S = 3600
# KEYs that differ between setups whose agents are told the same.
NOT_IN_PROMPTS = {"SETUP", "PROBLEMS_FILE", "MODEL", "EFFORT", "TEMPERATURE"}


@dataclass(frozen=True)
class Choices:
    """What an operator decides beside the study: where it runs, sbatch's options, and KEYs that win over all layers."""

    system: System
    environ: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    hardware: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RenderedSetup:
    """One setup of a study, ready to be written to `folder`. `left_out` kernels lack its language or start material."""

    folder: Path
    study: Study
    cell: Cell
    settings: JobSettings
    origins: Origins
    treatment: Treatment
    problems: tuple[Problem, ...]
    left_out: tuple[str, ...]
    choices: Choices
    compares_with: str | None

    @cached_property
    def shape(self) -> tuple[Option, ...]:
        """What Slurm is asked for; raises ConfigError where that cannot be said. Only plans and jobs need it."""
        choices, problems = self.choices, len(self.problems)
        return tuple(job_shape(self.settings, choices.system, choices.flags, choices.environ, problems))

    @property
    def name(self) -> str:
        return self.cell.setup

    @property
    def env(self) -> Path:
        return self.folder / f".env.{self.name}"

    @property
    def problems_file(self) -> Path:
        return self.folder / problems_name(self.name)

    @property
    def env_text(self) -> str:
        """The env file: every KEY that a layer sets, in the order of the settings reference."""
        given = values_of(self.origins)
        return render_env({key: given[key] for key in sorted(keys(), key=_by_role) if key in given})

    @property
    def problems_text(self) -> str:
        return render_problems(self.problems)

    @property
    def split(self) -> Split:
        return split_of(self.settings)

    @property
    def kernels(self) -> int:
        return len({problem.kernel for problem in self.problems})

    @property
    def slots(self) -> int:
        """Repeat slots of each kernel."""
        return self.study.repeats

    @property
    def wall_s(self) -> int:
        """Wall clock that the job gets at most, in seconds."""
        return granted_s(self.shape)

    @property
    def node_hours(self) -> float:
        """Nodes times the hours that they are granted: the most that the job can cost."""
        return self.split.total * self.wall_s / HOUR_S

    @property
    def agents(self) -> int:
        """Agents that work at the same time."""
        return min(self.settings.agent_nodes * self.settings.agents_per_node, len(self.problems))


def _by_role(key: str) -> int:
    return get_args(Role).index(keys()[key].role)


def problems_name(setup: str) -> str:
    return f"problems-{setup}.jsonl"


def shared_with(built: Sequence[RenderedSetup]) -> dict[str, str]:
    """Setup → the other study that rendered its env file last; a setup's name says the experiment, not the study."""
    there = {setup.name: read_env(setup.env)[0].get("STUDY", "") for setup in built if setup.env.exists()}
    return {
        setup.name: there[setup.name]
        for setup in built
        if there.get(setup.name, setup.study.study) != setup.study.study
    }


def write(built: list[RenderedSetup]) -> list[RenderedSetup]:
    """Write the env file and the problems file of each setup; unchanged files stay untouched.

    Raises:
        ConfigError: the job of a setup has no shape; nothing is written then.
        EnvironmentFault: a file cannot be written.
    """
    for setup in built:
        _ = setup.shape
    for setup in built:
        _write(setup.problems_file, setup.problems_text)
        _write(setup.env, setup.env_text)
    return built


def _write(path: Path, text: str) -> None:
    """Make a file that only its owner reads (0600) hold this text."""
    try:
        unchanged = path.stat().st_mode & 0o777 == 0o600 and path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        unchanged = False
    if not unchanged:
        write_private(path, text)


def build(study: Study, folder: Path, choices: Choices) -> list[RenderedSetup]:
    """Every setup of a study as it would be written into `folder`.

    Raises:
        ConfigError: a layer, treatment, kernel or value is wrong; the message says where.
    """
    builder = _Builder(study, folder, choices)
    every = cells(study, {model: builder.shown_hardware(model) for model in study.models})
    return [builder.setup(cell, compares_with(cell, study, every)) for cell in every]


class _Builder:
    """Builds the setups of one study; what many of them share is read once."""

    def __init__(self, study: Study, folder: Path, choices: Choices) -> None:
        self.study, self.root, self.folder, self.choices = study, layers_root(), folder, choices
        for key in choices.overrides:
            if advice := study.said_elsewhere(key):
                raise ConfigError(f"--set {key}: cannot be given on the command line; {advice}")
        self.hardware = chosen_hardware(wanted, self.root) if (wanted := _wanted_hardware(study, choices)) else None
        self.layers: Callable[[str], list[Layer]] = cache(self._shared_layers)
        self.treatment: Callable[[str], Treatment] = cache(read_treatment)
        self.tasks = self._select()
        self.checked: set[frozenset[tuple[str, object]]] = set()

    def shown_hardware(self, model: str) -> str | None:
        """The hardware as setups of this model have it in their names."""
        if self.hardware is None:
            return None
        base = values_of(stacked(self.layers(model))).get("KCOURT_BASE_HARDWARE", "")
        return shown_hardware(self.hardware.name, base, self.study.experiment)

    def setup(self, cell: Cell, control: str | None) -> RenderedSetup:
        """One setup; raises ConfigError."""
        treatment = self.treatment(self._treatment_name(cell))
        origins = stacked(self._all_layers(cell, treatment))
        settings = settings_of(origins)
        tasks = self._fitting(cell, settings)
        slots = range(self.study.repeats)
        problems = tuple(make_problem(settings, task, slot) for slot in slots for task in tasks)
        self._check(settings, treatment, problems[0])
        return RenderedSetup(
            folder=self.folder,
            study=self.study,
            cell=cell,
            settings=settings,
            origins=origins,
            treatment=treatment,
            problems=problems,
            left_out=tuple(task.name for task in self.tasks if not _asks_for(settings, task)),
            choices=self.choices,
            compares_with=control,
        )

    def _check(self, settings: JobSettings, treatment: Treatment, problem: Problem) -> None:
        """Hold a treatment against what its setup enforces, once for all setups in which that is the same."""
        enforced = frozenset((key, value) for key, value in settings.values.items() if key not in NOT_IN_PROMPTS)
        if enforced not in self.checked:
            check_treatment(settings, treatment, problem)
            self.checked.add(enforced)

    def _treatment_name(self, cell: Cell) -> str:
        written = {**self.study.settings, **cell.written.settings, **self.choices.overrides}
        return str(cell.point.get(Axis.TREATMENT) or written.get(Axis.TREATMENT.key, CONTROL))

    def _select(self) -> list[Task]:
        try:
            return select(self.study.selector)
        except UsageError as error:
            raise ConfigError(f"{self.study.where('tag' if self.study.tag else 'kernels')}: {error}") from error

    def _shared_layers(self, model: str) -> list[Layer]:
        """What setups of one model share; setups that are written out (no model) have no layers but the machine's."""
        below = experiment_layers(self.study.experiment, model, self.root) if model else []
        below = [*below, _machine_layer(self.choices)]
        if self.hardware is None:
            return below
        return [*below, hardware_layer(values_of(stacked(below)), self.hardware)]

    def _all_layers(self, cell: Cell, treatment: Treatment) -> list[Layer]:
        study, overrides = self.study, dict(self.choices.overrides)
        said = {"STUDY": study.study, "SETUP": cell.setup, "PROBLEMS_FILE": problems_name(cell.setup)}
        if study.experiment:
            said["EXPERIMENT"] = study.experiment
        if cell.written.script:
            said["AGENT_SCRIPT_RULE"] = cell.written.script.value
        return [
            *self.layers(str(cell.point.get(Axis.MODEL, ""))),
            Layer(f"treatment {treatment.name}", treatment.path, dict(treatment.env)),
            study.layer(f"study {study.study}", study.settings, "settings"),
            study.layer(f"setup {cell.setup}", cell.written.settings, "setups", cell.setup, "settings"),
            Layer(f"setup {cell.setup}", study.path, said | cell.axis_values),
            Layer("--set", Path("--set"), overrides),
        ]

    def _fitting(self, cell: Cell, settings: JobSettings) -> Sequence[Task]:
        """The kernels that have the setup's language and start material and that its script fits; at least one."""
        study, rule, wanted = self.study, cell.written.script, cell.written.kernels
        tasks = [task for task in self.tasks if _asks_for(settings, task)]
        if rule:
            tasks = [task for task in tasks if rule.fits(task, settings.language)]
        if len(tasks) < (wanted or 1):
            raise ConfigError(
                f"{study.where('setups', cell.setup)}: setup '{cell.setup}': {len(tasks)} kernels of "
                f"'{study.selector}' fit language {settings.language}, start material {settings.agent_start}"
                f"{f' and script {rule}' if rule else ''}, "
                f"{wanted or 1} are needed; choose others, or lower 'kernels'"
            )
        return tasks[:wanted]


def _asks_for(settings: JobSettings, task: Task) -> bool:
    return settings.language in task.manifest.languages and not lacks_start(task, settings.agent_start)


def _wanted_hardware(study: Study, choices: Choices) -> str | None:
    """The hardware that setups are for: a laptop that plans for a cluster is not what grades are for."""
    of_system = choices.system.facts.hardware if choices.system.facts.launcher == "slurm" else None
    return choices.hardware or study.hardware or of_system


def _machine_layer(choices: Choices) -> Layer:
    """What the system pins of every setup, and the submitter's scratch."""
    facts = choices.system.facts
    pinned = {
        "GPUS_PER_NODE": (facts.nodes.gpus, "nodes.gpus"),
        "CONTAINER_RUNTIME": (facts.container_runtime, "container_runtime"),
    }
    given = {key: (str(value), fact) for key, (value, fact) in pinned.items() if value is not None}
    values = {key: value for key, (value, _) in given.items()}
    places = {key: choices.system.place(fact) for key, (_, fact) in given.items()}
    if (asked := gpus_asked(choices.flags, choices.environ)) is not None:
        values["GPUS_PER_NODE"] = str(asked)
        places.pop("GPUS_PER_NODE", None)
    if scratch := choices.environ.get("KCOURT_SCRATCH"):
        values["KCOURT_SCRATCH"] = scratch
    path = next((place.path for place in places.values()), Path(choices.system.name))
    return Layer(f"system {choices.system.name}", path, values, {key: place.line for key, place in places.items()})
