"""The shape of one setup's Slurm job: each sbatch option with where its value comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from bench.errors import ConfigError, UsageError
from bench.wording import did_you_mean
from cluster.study.settings import JobSettings
from cluster.study.systems import Source, System
from cluster.study.wall_time import parse_wall, wall_text

STAGING_S = 3 * 3600
_NO_GPUS = ("gpus-per-node", "0")
# What an operator may decide, and the variable of sbatch that says the same. The submitter passes each as an option,
# because it lets no SBATCH_ variable of its caller through.
VARIABLES = {
    "partition": "SBATCH_PARTITION",
    "account": "SBATCH_ACCOUNT",
    "qos": "SBATCH_QOS",
    "reservation": "SBATCH_RESERVATION",
    "constraint": "SBATCH_CONSTRAINT",
    "gpus-per-node": "SBATCH_GPUS_PER_NODE",
    "time": "SBATCH_TIMELIMIT",
}


@dataclass(frozen=True)
class Option:
    """One option of sbatch. `value`: None leaves it to the cluster, empty text is an option without a value."""

    name: str
    value: str | None
    source: Source | None
    where: str
    note: str = ""

    @property
    def origin(self) -> str:
        """Source and place in words."""
        return f"{self.source} {self.where}" if self.source else self.where


def job_shape(
    settings: JobSettings, system: System, flags: Mapping[str, str], environ: Mapping[str, str], problems: int = 1
) -> list[Option]:
    """The options of one setup on one system; each is the strongest of flag, environment, site and system.

    `flags` are option name → text, as `{"partition": "debug"}`; `problems` is how many the setup's agents work on.

    Raises:
        ConfigError: a time is asked for that the system does not grant or that is none, or nobody says how many
            GPUs a node of Slurm's has.
        UsageError: a flag is no option that can be decided.
    """
    if unknown := [name for name in flags if name not in VARIABLES]:
        raise UsageError(f"sbatch's option '{unknown[0]}' cannot be set here; {did_you_mean(unknown[0], VARIABLES)}")
    split = f"{settings.inference_nodes} inference + {settings.agent_nodes} agent + {settings.judge_nodes} judge"
    chosen = {name: _strongest(name, system, flags, environ) for name in VARIABLES if name != "time"}
    chosen["gpus-per-node"] = _gpus(settings, system, flags, environ)
    default = {name: Option(name, None, None, "the cluster's default") for name in ("partition", "account")}
    return [
        Option("nodes", str(settings.nodes), Source.SETUP, split),
        _time(settings, system, _asked("time", flags, environ), problems),
        *(option for name in chosen if (option := chosen[name] or default.get(name))),
        *(
            Option(name, value, system.place(f"sbatch.{name}").source, str(system.place(f"sbatch.{name}")))
            for name, value in system.facts.sbatch.items()
        ),
    ]


def sbatch_options(shape: Sequence[Option]) -> list[str]:
    """The command line words of a shape, in its order."""
    return [f"--{option.name}={option.value}" if option.value else f"--{option.name}" for option in _passed(shape)]


def granted_s(shape: Sequence[Option]) -> int:
    """Wall clock that a shape gets at most, in seconds."""
    return parse_wall(next(option.value for option in shape if option.name == "time"))


def _passed(shape: Sequence[Option]) -> list[Option]:
    """Without GPUs there is none to ask for."""
    return [option for option in shape if option.value is not None and (option.name, option.value) != _NO_GPUS]


def wished_wall(settings: JobSettings, problems: int) -> tuple[int, str]:
    """Wall clock that a setup wishes for, in seconds, and how it comes about.

    JOB_WALL_SECONDS, else what its agents may use up, each of them one problem after another, and the staging.
    """
    if settings.job_wall_seconds:
        return settings.job_wall_seconds, "JOB_WALL_SECONDS"
    rounds = max(1, ceil(problems / max(1, settings.agent_nodes * settings.agents_per_node)))
    times = f"{rounds} x " if rounds > 1 else ""
    wished = rounds * settings.agent_timeout_seconds + STAGING_S
    return wished, f"{times}AGENT_TIMEOUT_SECONDS + 3 h of staging"


def _asked(name: str, flags: Mapping[str, str], environ: Mapping[str, str]) -> Option | None:
    """What the operator says here and now: by a flag, else by a variable of sbatch."""
    if name in flags:
        return Option(name, flags[name], Source.FLAG, f"--{name}")
    variable = VARIABLES[name]
    return Option(name, environ[variable], Source.ENVIRONMENT, variable) if environ.get(variable) else None


def gpus_asked(flags: Mapping[str, str], environ: Mapping[str, str]) -> int | None:
    """GPUs of a node that the operator asks for; Slurm takes a type before the number, as in `mi300:4`.

    Raises:
        ConfigError: it is no number.
    """
    asked = _asked("gpus-per-node", flags, environ)
    if asked is None:
        return None
    number = str(asked.value).rpartition(":")[2]
    if not number.isdecimal():
        raise ConfigError(f"{asked.where}={asked.value}: say how many GPUs of a node, as 4 or mi300:4")
    return int(number)


def _strongest(name: str, system: System, flags: Mapping[str, str], environ: Mapping[str, str]) -> Option | None:
    if asked := _asked(name, flags, environ):
        return asked
    value = system.facts.nodes.gpus if name == "gpus-per-node" else getattr(system.facts, name)
    if value is None:
        return None
    place = system.place("nodes.gpus" if name == "gpus-per-node" else name)
    return Option(name, str(value), place.source, str(place))


def _gpus(settings: JobSettings, system: System, flags: Mapping[str, str], environ: Mapping[str, str]) -> Option | None:
    """GPUs of a node; the setup's own number wins over what is known of the system."""
    name = "gpus-per-node"
    if asked := _asked(name, flags, environ):
        return asked
    found = _strongest(name, system, flags, environ)
    own = settings.gpus_per_node
    if own is not None and (found is None or found.value != str(own)):
        return Option(name, str(own), Source.SETUP, "GPUS_PER_NODE")
    if found is None and system.facts.launcher == "slurm":
        raise ConfigError(
            f"system '{system.name}': nobody says how many GPUs a node has; give --gpus-per-node "
            f"(0: none), or write `nodes: {{gpus: N}}` into a site file"
        )
    return found


def _time(settings: JobSettings, system: System, asked: Option | None, problems: int) -> Option:
    """The wall time that is granted: what is asked for is refused beyond the longest, what is wished is cut."""
    longest = system.facts.longest_wall
    if asked is None:
        wished, said = wished_wall(settings, problems)
        if longest is None or wished <= longest:
            return Option("time", wall_text(wished), Source.SETUP, said)
        place = system.place("longest_wall")
        note = f"{said} is {wall_text(wished)}, more than system '{system.name}' grants: what is not done then is owed"
        return Option("time", wall_text(longest), place.source, str(place), note)
    seconds = _seconds(asked)
    if longest is not None and seconds > longest:
        raise ConfigError(
            f"{asked.where}={asked.value}: system '{system.name}' grants at most {wall_text(longest)} "
            f"({system.place('longest_wall')}); ask for less, or describe the partition that grants more in a site file"
        )
    return Option("time", wall_text(seconds), asked.source, asked.where)


def _seconds(asked: Option) -> int:
    try:
        return parse_wall(asked.value)
    except ValueError as error:
        raise ConfigError(f"{asked.where}: {error}") from error
