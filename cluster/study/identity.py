"""What makes a setup this setup and no other: the parts of its name, in order."""

from dataclasses import dataclass
from decimal import Decimal

CONTROL = "none"
USUAL_HARNESS = "claude_code"


@dataclass(frozen=True)
class Identity:
    """The axes of one setup; a hardware, effort or temperature of None is no part of its name."""

    experiment: str
    hardware: str | None
    model: str
    language: str
    treatment: str = CONTROL
    harness: str = USUAL_HARNESS
    effort: str | None = None
    temperature: float | None = None

    @property
    def name(self) -> str:
        """`<experiment>[-<hardware>]-<model>-<language>[-<treatment>][-<harness>][-e<effort>][-t<T>]`."""
        parts = (
            self.experiment,
            self.hardware,
            self.model,
            self.language,
            None if self.treatment == CONTROL else self.treatment,
            None if self.harness == USUAL_HARNESS else self.harness,
            None if self.effort is None else f"e{self.effort}",
            None if self.temperature is None else f"t{temperature_text(self.temperature)}",
        )
        return "-".join(part for part in parts if part)


def temperature_text(temperature: float) -> str:
    """A temperature as names have it: 0.7, 1, never with an exponent."""
    return format(Decimal(repr(temperature)).normalize(), "f")
