"""What this machine, this site and a setup have of what grading and launching need, each with what to do about it."""

from collections.abc import Mapping

from bench.errors import ConfigError, KernelcourtError, UsageError
from cluster.doctor.check import Check, State, Subject, halves
from cluster.doctor.machine import machine_checks
from cluster.doctor.nodes import nodes_check
from cluster.doctor.setup import client_check, setup_checks
from cluster.doctor.site import site_checks
from cluster.study.job_shape import VARIABLES, job_shape
from cluster.study.places import env_of_setup
from cluster.study.settings import JobSettings, read_settings
from cluster.study.systems import System, choose_system

# What decides where a job runs, and not of which shape it is.
_WHERE = ("partition", "account", "qos", "reservation", "constraint")


def examine(environ: Mapping[str, str], setup: str | None = None, nodes: bool = False) -> list[Check]:
    """Every check of this machine and, where one is named, of a setup; `nodes` asks those of the partition too.

    None changes anything, but for helpers that are built into the cache.
    """
    system, chosen = _system(environ)
    settings, read = _setup(setup)
    options, shaped = _options(environ, system, settings)
    subject = Subject(environ, system, settings, options, nodes)
    return [
        *machine_checks(subject),
        chosen,
        *site_checks(subject),
        nodes_check(subject),
        client_check(subject),
        *read,
        *shaped,
        *setup_checks(subject),
    ]


def _system(environ: Mapping[str, str]) -> tuple[System | None, Check]:
    try:
        system = choose_system(environ)
    except ConfigError as error:
        return None, Check("system", State.BLOCKS, *halves(error))
    return system, Check("system", State.OK, f"{system.name}: {system.facts.summary or 'of the site file'}")


def _setup(name: str | None) -> tuple[JobSettings | None, list[Check]]:
    """The settings of a setup, or why they cannot be read."""
    if name is None:
        return None, []
    try:
        return read_settings(env_of_setup(name)), []
    except KernelcourtError as error:
        return None, [Check("setup", State.BLOCKS, *halves(error))]


def _options(
    environ: Mapping[str, str], system: System | None, settings: JobSettings | None
) -> tuple[dict[str, str], list[Check]]:
    """Where a job would run, by sbatch's options that are decided; and what keeps a setup's job from its shape."""
    if system is None:
        return {}, []
    if settings is None:
        known = {name: environ.get(VARIABLES[name]) or getattr(system.facts, name) for name in _WHERE}
        return {name: value for name, value in known.items() if value}, []
    try:
        shape = job_shape(settings, system, {}, environ)
    except (ConfigError, UsageError) as error:
        return {}, [Check("job", State.BLOCKS, *halves(error))]
    return {option.name: option.value for option in shape if option.name in _WHERE and option.value}, []
