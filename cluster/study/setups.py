"""`experiments/setups.yaml`: from an experiment and a model to the layers of a setup, and from layers to settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from bench.errors import ConfigError
from bench.wording import did_you_mean
from bench.yaml_lines import Document
from cluster.study.env_files import as_text
from cluster.study.layers import chain, check_keys, known_layers, read_layer
from cluster.study.origins import Layer, Origins, values_of
from cluster.study.settings import JobSettings, checked
from cluster.study.yaml_files import read_yaml

Given = dict[str, str | int | float | bool]
MODEL = "model-"
# A budget is the experiment's policy: a model with more of it would win by that.
BUDGET = frozenset({"AGENT_MAX_TOKENS", "AGENT_TIMEOUT_SECONDS", "AGENT_MAX_ITERATIONS"})


class Experiment(BaseModel):
    """What all setups of an experiment share, and what differs for single models."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    extends: str | None = None
    env: Given = {}
    models: dict[str, Given] = {}


class SetupsFile(BaseModel):
    """The whole of setups.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    experiments: Annotated[dict[str, Experiment], Field(min_length=1)]


@dataclass(frozen=True)
class Setups:
    """setups.yaml in a folder, beside `layers/`."""

    folder: Path
    experiments: dict[str, Experiment]
    document: Document

    @property
    def layers(self) -> Path:
        return self.folder / "layers"

    @property
    def models(self) -> list[str]:
        """Models that have a layer, in alphabetical order."""
        return [name.removeprefix(MODEL) for name in known_layers(self.layers) if name.startswith(MODEL)]

    def where(self, *keys: str) -> str:
        """`file:line` of a key of an experiment."""
        return f"{self.folder / 'setups.yaml'}:{self.document.line(['experiments', *keys])}"

    def lineage(self, experiment: str) -> list[str]:
        """An experiment behind all that it extends, the eldest first; raises ConfigError where one is unknown."""
        found: list[str] = []
        where, wanted = str(self.folder / "setups.yaml"), experiment
        while True:
            if wanted not in self.experiments:
                raise ConfigError(f"{where}: no experiment '{wanted}'; {did_you_mean(wanted, self.experiments)}")
            if wanted in found:
                round_trip = " → ".join((*found, wanted))
                raise ConfigError(f"{where}: extends: {wanted} comes back to itself ({round_trip}); take one step out")
            found.append(wanted)
            parent = self.experiments[wanted].extends
            if parent is None:
                return found[::-1]
            where, wanted = self.where(wanted, "extends"), parent

    def check_model(self, model: str, where: str) -> None:
        """Raises ConfigError where the model has no layer; known ones are named."""
        if model not in self.models:
            known = ", ".join(self.models) or "none; see experiments/README.md"
            raise ConfigError(f"{where}: model '{model}' has no layer layers/{MODEL}{model}.env; known models: {known}")

    def general(self, experiment: str) -> Layer:
        """What an experiment says of all its setups."""
        return self._layer(f"experiment {experiment}", self.experiments[experiment].env, experiment, "env")

    def special(self, experiment: str, model: str) -> Layer:
        """What an experiment says of one model; empty where it says nothing."""
        given = self.experiments[experiment].models.get(model, {})
        return self._layer(f"experiment {experiment}, model {model}", given, experiment, "models", model)

    def _layer(self, name: str, given: Given, *keys: str) -> Layer:
        lines = {key: self.document.line(["experiments", *keys, key]) for key in given}
        layer = Layer(name, self.folder / "setups.yaml", {key: as_text(value) for key, value in given.items()}, lines)
        check_keys(layer)
        return layer


def read_setups(folder: Path) -> Setups:
    """setups.yaml of a folder; raises ConfigError naming the file and the line of its first fault."""
    file, document = read_yaml(folder / "setups.yaml", SetupsFile)
    return Setups(folder, file.experiments, document)


def experiment_layers(experiment: str, model: str, folder: Path) -> list[Layer]:
    """The layers of a setup that lie below hardware, treatment and its own keys, weakest first.

    common.env, the serving shape that the model's layer extends, the experiment behind those that it extends, the
    model, and what the experiment says of that model. `folder` holds setups.yaml and `layers/`.

    Raises:
        ConfigError: an experiment, model or parent is unknown, a chain of `extends` comes back to itself, a KEY is
            unknown or secret, or a budget is set for a model; file and line are named.
    """
    setups = read_setups(folder)
    lineage = setups.lineage(experiment)
    for name in lineage:
        for other in setups.experiments[name].models:
            setups.check_model(other, setups.where(name, "models", other))
    setups.check_model(model, setups.where(experiment))
    common = read_layer(setups.layers / "common.env")
    of_model = [layer for layer in chain(f"{MODEL}{model}", setups.layers) if layer.name != common.name]
    special = [layer for name in lineage if (layer := setups.special(name, model)).values]
    _refuse_budgets([*of_model, *special])
    return [
        common,
        *(layer for layer in of_model if not layer.name.startswith(MODEL)),
        *(setups.general(name) for name in lineage),
        *(layer for layer in of_model if layer.name.startswith(MODEL)),
        *special,
    ]


def _refuse_budgets(layers: list[Layer]) -> None:
    for layer in layers:
        for key in layer.values:
            if key in BUDGET:
                raise ConfigError(
                    f"{layer.where(key)}: {key} is a budget, and that is the experiment's policy, the same for all its "
                    "models; set it in the experiment's env"
                )


def settings_of(origins: Origins) -> JobSettings:
    """The settings that win.

    Raises:
        ConfigError: a KEY is unknown or its value wrong (file and line are named), or values do not go together.
    """
    values = values_of(origins)
    whole = f"setup '{values.get('SETUP', '')}'"
    return checked(values, lambda key: str(origins[key][-1]) if key in origins else whole)
