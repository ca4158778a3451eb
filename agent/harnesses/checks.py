"""What harnesses refuse: options, and efforts and temperatures that their client does not have."""

from collections.abc import Iterable, Sequence

from bench.errors import ConfigError
from bench.judge.schemas import SetupRecord
from bench.wording import did_you_mean

# What chat completions call `reasoning_effort`.
CHAT_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


def no_options(harness: str, given: Iterable[str]) -> None:
    """Raises ConfigError when there are any."""
    if names := ", ".join(sorted(given)):
        raise ConfigError(f"harness {harness} takes no options; given: {names}; remove them")


def known_effort(harness: str, setup: SetupRecord, efforts: Sequence[str]) -> None:
    """Raises ConfigError for an effort that the client does not have; without `efforts`, for any."""
    if setup.effort is not None and setup.effort not in efforts:
        advice = did_you_mean(setup.effort, efforts) if efforts else "unset it"
        raise ConfigError(f"setup '{setup.setup}': {harness} has no effort '{setup.effort}'; {advice}")


def no_temperature(harness: str, setup: SetupRecord) -> None:
    """Raises ConfigError when the setup sets one."""
    if setup.temperature is not None:
        raise ConfigError(
            f"setup '{setup.setup}': {harness} cannot be given a temperature, and {setup.temperature} is set; unset it"
        )
