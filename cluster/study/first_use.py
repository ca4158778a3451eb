"""What `kcourt init` writes: a site file and a small study, each as text, and where they go."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.errors import ConfigError, UsageError
from bench.task import select
from bench.wording import did_you_mean
from cluster.study.identity import CONTROL
from cluster.study.origins import stacked, values_of
from cluster.study.places import experiments_root, layers_root
from cluster.study.settings import JobSettings
from cluster.study.setups import Setups, read_setups
from cluster.study.systems import choose_system, read_systems
from cluster.study.treatments import read_treatment

# In place of a model: the study's agents replay the kernels' own controls, and need nothing but this machine.
SCRIPTED = "scripted"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SITE_HEAD = "# What is known of your cluster; these facts win over the package's. docs/studies.md lists them.\n"
_STUDY_HEAD = "# A small study to start from; docs/studies.md explains every key.\n"
_LAPTOP = {
    "HARNESS": "scripted",
    "LANGUAGE": "c",
    "PRESET": "S",
    "INFERENCE_NODES": 0,
    "AGENT_TIMEOUT_SECONDS": 600,
    "AGENT_STALL_ABORT_SECONDS": 300,
    "SANDBOX_ALLOW": "limits",
}


@dataclass(frozen=True)
class Wishes:
    """What the operator wants to study."""

    study: str
    tag: str
    model: str
    treatment: str


def guessed_system(environ: Mapping[str, str]) -> str:
    """The system that this is as far as one can tell; the name of a cluster that is unknown so far."""
    try:
        return choose_system(environ).name
    except ConfigError:
        return environ.get("SLURM_CLUSTER_NAME") or "local"


def default_site(environ: Mapping[str, str]) -> Path:
    """Where a site file goes that nobody names a place for."""
    configuration = environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(configuration) / "kernelcourt" / "systems.yaml"


def site_text(system: str, account: str, partition: str, gpus: int | None, environ: Mapping[str, str]) -> str:
    """A site file of one system with the facts that were given; empty texts are none."""
    entry: dict[str, Any] = {}
    cluster = environ.get("SLURM_CLUSTER_NAME")
    if system not in read_systems({}) and cluster:
        entry["clusters"] = [cluster]
    entry |= {key: value for key, value in (("account", account), ("partition", partition)) if value}
    if gpus is not None:
        entry["nodes"] = {"gpus": gpus}
    return _SITE_HEAD + as_yaml({system: entry})


def study_text(wishes: Wishes) -> str:
    """The study file: one treatment beside the control, or for a laptop two scripts.

    Raises:
        ConfigError, UsageError: a tag, model or treatment does not exist; the nearest is named.
    """
    select(wishes.tag)
    return _STUDY_HEAD + as_yaml(_scripted(wishes) if wishes.model == SCRIPTED else _compared(wishes))


def _compared(wishes: Wishes) -> dict[str, Any]:
    setups = read_setups(layers_root())
    if wishes.model not in setups.models:
        known = [SCRIPTED, *setups.models]
        raise ConfigError(f"no model '{wishes.model}'; {did_you_mean(wishes.model, known)}")
    read_treatment(wishes.treatment)
    return {
        "study": wishes.study,
        "question": f"Does the treatment '{wishes.treatment}' make an agent's kernels faster?",
        "experiment": _shortest(setups),
        "tag": wishes.tag,
        "models": [wishes.model],
        "languages": ["c"],
        "treatments": [CONTROL, wishes.treatment],
        "control": {"treatment": CONTROL},
    }


def _shortest(setups: Setups) -> str:
    """The experiment that gives agents the least time: the one to try things with."""

    def budget_s(experiment: str) -> int:
        said = values_of(stacked([setups.general(name) for name in setups.lineage(experiment)]))
        return int(said.get("AGENT_TIMEOUT_SECONDS", JobSettings.model_fields["agent_timeout_seconds"].default))

    return min(setups.experiments, key=budget_s)


def _scripted(wishes: Wishes) -> dict[str, Any]:
    """Setups are named for the study: names of setups are shared by all studies."""
    names = {rule: f"{wishes.study}-{rule}" for rule in ("gold", "noop")}
    return {
        "study": wishes.study,
        "question": "Does the judge tell an agent that succeeds from one that does nothing?",
        "experiment": wishes.study,
        "tag": wishes.tag,
        "control": names["noop"],
        "settings": _LAPTOP,
        "setups": {name: {"script": rule, "settings": {"MODEL": rule}} for rule, name in names.items()},
    }


def as_yaml(value: Mapping[str, Any]) -> str:
    """As people write it: short lists and mappings in one line, settings one a line."""
    return "".join(
        yaml.safe_dump({key: part}, sort_keys=False, width=110, default_flow_style=_flow(key, part))
        for key, part in value.items()
    )


def _flow(key: str, part: object) -> bool | None:
    """None: what holds nothing but plain values goes into one line."""
    return None if isinstance(part, dict | list) and key != "settings" else False


def study_path(name: str) -> Path:
    """Where a study of that name is written; raises UsageError for a name that no file and no setup can have."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' is no name for a study: small letters, digits and _, such as {suggested_name(name)}"
        )
    return experiments_root() / "studies" / f"{name}.yaml"


def suggested_name(name: str) -> str:
    """The name for a study that is the most like this text."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789") or "first"


def write_new(files: Mapping[Path, str], force: bool) -> None:
    """Write files that are not there yet, none when one is there already.

    Raises:
        ConfigError: one is there, and `force` is not said; or it cannot be written.
    """
    there = [str(path) for path in files if path.exists()]
    if there and not force:
        raise ConfigError(f"{' and '.join(there)}: there already; --force overwrites, another name keeps it")
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path}: cannot be written ({error.strerror}); name another place") from error
