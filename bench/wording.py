"""Words for what somebody wrote wrongly: the first fault that pydantic found, the nearest known name."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

_SHOWN_CHARS = 80


@dataclass(frozen=True)
class Fault:
    """One fault: its place as dotted keys (empty: the whole), pydantic's word for its type, and what is wrong."""

    where: str
    type: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


def first_fault(error: ValidationError, known: Iterable[str] = ()) -> Fault:
    """The first fault of a model; `known` are the keys that an unknown one is answered with."""
    fault = fault_of(error.errors(include_url=False, include_input=False)[0])
    if fault.type == "extra_forbidden" and (keys := ", ".join(known)):
        return Fault(fault.where, fault.type, f"unknown key; known keys are {keys}")
    return fault


def fault_of(found: Mapping[str, Any]) -> Fault:
    """One entry of pydantic's `errors()`; a key that somebody invented is shown cut."""
    where = ".".join(str(part)[:_SHOWN_CHARS] for part in found["loc"])
    return Fault(where, found["type"], str(found["msg"]).removeprefix("Value error, "))


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like a wrong one."""
    return difflib.get_close_matches(name, list(known), n=1, cutoff=0)[0]
