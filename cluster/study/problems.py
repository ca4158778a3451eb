"""Problems: made from kernels or read back from a problems file."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from agent.config import numbered_problems
from bench.errors import ConfigError, TaskError, UsageError
from bench.judge.schemas import Device, Problem, graded_on
from bench.start import Start, lacks_start
from bench.task import Task, find_task, select
from bench.wording import did_you_mean
from cluster.study.settings import JobSettings


def problems_of(settings: JobSettings) -> list[Problem]:
    """The problems of one setup: its PROBLEMS_FILE, else one of slot 0 for each of its KERNELS.

    Raises:
        ConfigError: a line is no problem of this setup, its kernel is unknown or not in its language, or DEVICE does
            not grade that.
    """
    if settings.problems_file:
        found = read_problems(settings.problems_file)
    else:
        found = [make_problem(settings, task) for task in _selected(settings)]
    where = settings.problems_file or f"KERNELS of setup '{settings.setup}'"
    alike = {(problem.setup, problem.kernel, problem.language, problem.start): problem for problem in found}
    for problem in alike.values():  # many slots of a kernel are one question
        _check(problem, settings, where)
    return found


def _selected(settings: JobSettings) -> list[Task]:
    try:
        return select(settings.kernels)
    except UsageError as error:
        raise ConfigError(f"KERNELS of setup '{settings.setup}': {error}") from error


def make_problem(settings: JobSettings, task: Task, slot: int = 0) -> Problem:
    """One kernel in one repeat slot of the setup."""
    return Problem(
        setup=settings.setup,
        kernel=task.name,
        slot=slot,
        language=settings.language,
        start=settings.agent_start,
        text=task.manifest.summary,
    )


def _check(problem: Problem, settings: JobSettings, where: Path | str) -> None:
    """Refuse a problem that its setup or its kernel cannot have."""
    if problem.setup != settings.setup:
        raise ConfigError(
            f"{where}: names setup '{problem.setup}', the env file is of '{settings.setup}'; render it again"
        )
    graded = [language for device in graded_on(Device(settings.device)) for language in device.languages]
    if problem.language not in graded:
        raise ConfigError(
            f"{where}: DEVICE={settings.device} grades {', '.join(graded)}, and not {problem.language}; "
            "set DEVICE or LANGUAGE to another"
        )
    try:
        task = find_task(problem.kernel)
    except TaskError:
        raise
    except UsageError as error:
        raise ConfigError(f"{where}: {error}") from error
    if lacking := task.lacks(problem.language):
        raise ConfigError(f"{where}: {lacking}; set LANGUAGE to one that it has, or leave the kernel out")
    if problem.start not in list(Start):
        raise ConfigError(
            f"{where}: kernel '{task.name}': no start material '{problem.start}'; {did_you_mean(problem.start, Start)}"
        )
    if lacking := lacks_start(task, Start(problem.start)):
        raise ConfigError(f"{where}: {lacking}; set AGENT_START to another, or leave the kernel out")


def read_problems(path: Path) -> list[Problem]:
    """Raises ConfigError naming the file, the line and the first wrong key."""
    return [problem for _, problem in numbered_problems(path)]


def render_problems(problems: Iterable[Problem]) -> str:
    """Text of a problems file, one JSON object a line."""
    return "".join(problem.model_dump_json() + "\n" for problem in problems)


def same_start(problems: Sequence[Problem]) -> dict[str, Problem]:
    """Kernel → a problem of it.

    Raises:
        ConfigError: two setups of one job give one kernel different start material, which they would share.
    """
    first: dict[str, Problem] = {}
    for problem in problems:
        known = first.setdefault(problem.kernel, problem)
        if known.start != problem.start:
            raise ConfigError(
                f"'{problem.kernel}' starts from {known.start} in '{known.setup}' and from {problem.start} "
                f"in '{problem.setup}'; the setups of a job share start material: run two jobs"
            )
    return first
