"""Hardware profiles: what a machine sets, and how EDFs, images and devices named for another are renamed for it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from bench.errors import ConfigError
from bench.wording import did_you_mean
from cluster.study.env_files import as_text
from cluster.study.layers import check_keys
from cluster.study.origins import Layer
from cluster.study.yaml_files import read_yaml

# Keys whose values carry the name of the hardware that they were made for.
RENAMED = ("INFERENCE_EDF", "AGENT_EDF", "JUDGE_EDF", "INFERENCE_IMAGE", "BENCH_IMAGE")


class Profile(BaseModel):
    """One entry of hardware.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    device: Literal["cpu", "hip", "cuda"]
    rename: dict[str, str] = {}
    env: dict[str, str | int | float | bool] = {}


class HardwareFile(BaseModel):
    """The whole of hardware.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hardware: dict[str, Profile]


@dataclass(frozen=True)
class Hardware:
    """One profile: the device of GPU languages, names exchanged for others, and keys that hold on this machine."""

    name: str
    device: str
    rename: Mapping[str, str]
    env: Layer
    line: int

    def renamed(self, text: str, base: str) -> str:
        """The name of an EDF or image on this hardware, made from its name on `base`.

        A name that `rename` holds becomes what that says; in any other the word `base` becomes this hardware's.
        Words are what stands between characters that are no letters or digits.
        """
        exchanged = re.sub(r"[A-Za-z0-9]+", lambda found: self.name if found[0] == base else found[0], text)
        return self.rename.get(text, exchanged)


def read_hardware(folder: Path) -> dict[str, Hardware]:
    """The profiles of `folder`/hardware.yaml by name.

    Raises:
        ConfigError: naming the file, the line and the key of its first fault.
    """
    path = folder / "hardware.yaml"
    file, document = read_yaml(path, HardwareFile)
    found = {}
    for name, profile in file.hardware.items():
        lines = {key: document.line(["hardware", name, "env", key]) for key in profile.env}
        values = {key: as_text(value) for key, value in profile.env.items()}
        env = Layer(f"hardware {name}", path, values, lines)
        check_keys(env)
        found[name] = Hardware(name, profile.device, profile.rename, env, document.line(["hardware", name]))
    return found


def chosen_hardware(wanted: str, folder: Path) -> Hardware:
    """The profile of that name; raises ConfigError where there is none (the nearest is named)."""
    profiles = read_hardware(folder)
    if wanted in profiles:
        return profiles[wanted]
    raise ConfigError(f"no hardware '{wanted}' in {folder / 'hardware.yaml'}; {did_you_mean(wanted, profiles)}")


def hardware_layer(values: Mapping[str, str], hardware: Hardware) -> Layer:
    """What the hardware makes of the layers below it, whose winning values are given, as one more layer.

    EDFs and images are renamed where their KCOURT_BASE_HARDWARE is another one; what grades on a GPU does so through
    this hardware's device.
    """
    base = values.get("KCOURT_BASE_HARDWARE", "")
    made = {"HARDWARE": hardware.name}
    if base != hardware.name:
        names = {key: hardware.renamed(values[key], base) for key in RENAMED if key in values}
        made |= {key: name for key, name in names.items() if name != values[key]}
    if values.get("DEVICE", "cpu") != "cpu":
        made["DEVICE"] = hardware.device
    lines = dict.fromkeys(made, hardware.line) | hardware.env.lines
    return Layer(hardware.env.name, hardware.env.path, made | hardware.env.values, lines)


def shown_hardware(hardware: str, base: str, experiment: str) -> str | None:
    """The hardware as a segment of a setup's name: none for the base, or where the experiment's name says it."""
    return None if hardware in ("", base, *experiment.split("-")) else hardware
