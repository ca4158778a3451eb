"""What harnesses refuse alike: options that they do not know, efforts and temperatures that their client has not."""

from collections.abc import Iterable, Sequence

from bench.errors import ConfigError
from bench.judge.schemas import SetupRecord
from bench.wording import nearest


def no_options(harness: str, given: Iterable[str]) -> None:
    """Raises ConfigError when there are any."""
    if names := ", ".join(sorted(given)):
        raise ConfigError(f"harness {harness} takes no options; given: {names}")


def known_effort(harness: str, setup: SetupRecord, efforts: Sequence[str]) -> None:
    """Raises ConfigError for an effort that the client does not have; without `efforts`, for any."""
    if setup.effort is None or setup.effort in efforts:
        return
    only = f", only {', '.join(efforts)}; did you mean {nearest(setup.effort, efforts)}?" if efforts else "; unset it"
    raise ConfigError(f"setup '{setup.setup}': {harness} has no effort '{setup.effort}'{only}")


def no_temperature(harness: str, setup: SetupRecord) -> None:
    """Raises ConfigError when the setup sets one."""
    if setup.temperature is not None:
        raise ConfigError(
            f"setup '{setup.setup}': {harness} cannot be given a temperature, and {setup.temperature} is set; unset it"
        )
