"""What makes a setup this setup and no other: the parts of its name, written in order and read from the right."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bench.errors import UsageError

CONTROL = "none"
USUAL_HARNESS = "claude_code"
Reading = Iterator[tuple[str, Any]]  # the text that is left, and what its end said
_EFFORT = re.compile(r"(.+)-e([a-z0-9]+)")
_TEMPERATURE = re.compile(r"(.+)-t(\d+(?:\.\d+)?)")


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


@dataclass(frozen=True)
class Known:
    """The words that names are made of; a treatment may be several of them, joined by `+`."""

    experiments: Sequence[str]
    models: Sequence[str]
    languages: Sequence[str]
    hardware: Sequence[str] = ()
    treatments: Sequence[str] = ()
    harnesses: Sequence[str] = ()


def temperature_text(temperature: float) -> str:
    """A temperature as names have it: 0.7, 1, never with an exponent."""
    return format(Decimal(repr(temperature)).normalize(), "f")


def parse(name: str, known: Known) -> Identity:
    """The identity that has this name.

    Raises:
        UsageError: no identity of known words has it, or several do; those are listed.
    """
    readings: list[tuple[str, dict[str, Any]]] = [(name, {})]
    for axis, read in _axes(known).items():
        readings = [(rest, {axis: value, **found}) for text, found in readings for rest, value in read(text)]
    fitting = [Identity(experiment=rest, **found) for rest, found in readings if rest in known.experiments]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"'{name}' can be read as {' or '.join(map(str, fitting))}; rename one of the parts")
    raise UsageError(
        f"'{name}' is no setup of known words; its form is <experiment>[-<hardware>]-<model>-<language>"
        f"[-<treatment>][-<harness>][-e<effort>][-t<T>], experiments are {', '.join(known.experiments)}"
    )


def _axes(known: Known) -> dict[str, Callable[[str], Reading]]:
    """Axis → how to read it off the end of a name, from the right."""
    harnesses = [name for name in known.harnesses if name != USUAL_HARNESS]
    return {
        "temperature": lambda text: _or(None, text, _matches(text, _TEMPERATURE, float)),
        "effort": lambda text: _or(None, text, _matches(text, _EFFORT, str)),
        "harness": lambda text: _or(USUAL_HARNESS, text, _words(text, harnesses)),
        "treatment": lambda text: _or(CONTROL, text, _treatments(text, known.treatments)),
        "language": lambda text: _words(text, known.languages),
        "model": lambda text: _words(text, known.models),
        "hardware": lambda text: _or(None, text, _words(text, known.hardware)),
    }


def _or(default: Any, text: str, others: Reading) -> Reading:
    yield text, default
    yield from others


def _matches(text: str, form: re.Pattern[str], kind: type) -> Reading:
    if found := form.fullmatch(text):
        yield found[1], kind(found[2])


def _words(text: str, words: Iterable[str]) -> Reading:
    for word in words:
        if text.endswith(f"-{word}"):
            yield text.removesuffix(f"-{word}"), word


def _treatments(text: str, words: Sequence[str]) -> Reading:
    """A treatment, or several joined by `+`; none stands in a name."""
    rest, dash, last = text.rpartition("-")
    parts = last.split("+")
    if dash and CONTROL not in parts and all(part in words for part in parts):
        yield rest, last
