"""The registry of protocols: how a grade is timed and credited. A stamp is immutable; stamps are never pooled."""

from dataclasses import dataclass
from enum import StrEnum

from bench.errors import UsageError


class ProtocolRole(StrEnum):
    FINAL = "final"
    PREVIEW = "preview"
    CALIBRATION = "calibration"


@dataclass(frozen=True)
class Protocol:
    """`mw{m}x{n}`: m timed inputs, one warm-up and n timed runs a side each, one-sided Mann-Whitney at `alpha`.

    With `against_itself` the denominator takes the candidate's place (A/A).
    """

    stamp: str
    inputs: int
    runs: int
    role: ProtocolRole
    alpha: float = 0.1
    against_itself: bool = False


PROTOCOLS = {
    protocol.stamp: protocol
    for protocol in (
        Protocol("mw2x5", inputs=2, runs=5, role=ProtocolRole.PREVIEW),
        Protocol("mw4x5", inputs=4, runs=5, role=ProtocolRole.FINAL),
        Protocol("mw4x5-aa", inputs=4, runs=5, role=ProtocolRole.CALIBRATION, against_itself=True),
    )
}


def find_protocol(stamp: str) -> Protocol:
    """Raises UsageError when no protocol has that stamp."""
    if stamp not in PROTOCOLS:
        raise UsageError(f"unknown protocol '{stamp}'; known protocols: {', '.join(PROTOCOLS)}")
    return PROTOCOLS[stamp]
