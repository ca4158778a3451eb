"""Where the configuration of studies lies: what people write, and what is rendered from it."""

import os
from pathlib import Path

from bench.errors import ConfigError
from bench.places import checkout
from bench.wording import did_you_mean


def experiments_root() -> Path:
    """Folder of studies, treatments and what is rendered: `KCOURT_EXPERIMENTS_DIR`, else the checkout's."""
    if override := os.environ.get("KCOURT_EXPERIMENTS_DIR"):
        return Path(override).absolute()
    return checkout() / "experiments"


def layers_root() -> Path:
    """Folder of setups.yaml, hardware.yaml and layers/: the operator's own where it has them, else the shipped one."""
    own = experiments_root()
    return own if (own / "setups.yaml").is_file() else checkout() / "experiments"


def folders_of(kind: str) -> list[Path]:
    """Where studies, treatments or prices lie: the operator's own first, then the shipped ones."""
    return list(dict.fromkeys(root / kind for root in (experiments_root(), checkout() / "experiments")))


def env_of_setup(setup: str) -> Path:
    """The env file of a rendered setup, or the env file that is named itself.

    Raises:
        ConfigError: nothing is rendered under that name; the nearest is named.
    """
    folder = experiments_root()
    path = folder / f".env.{setup}"
    if path.is_file() or Path(setup).is_file():
        return path if path.is_file() else Path(setup)
    known = sorted(found.name.removeprefix(".env.") for found in folder.glob(".env.*"))
    hint = did_you_mean(setup, known, "none has a similar name;")
    raise ConfigError(
        f"no setup '{setup}' is rendered in {folder}; {hint} `kcourt study plan STUDY` renders the setups of a study"
    )
