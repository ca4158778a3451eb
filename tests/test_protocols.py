"""The registry of protocols: stamps mean what their letters say, and unknown ones are named."""

import dataclasses
import re

import pytest

from bench.errors import UsageError
from bench.measure.protocols import PROTOCOLS, Protocol, ProtocolRole, find_protocol


@pytest.mark.parametrize("stamp", PROTOCOLS)
def test_a_stamp_says_how_many_inputs_and_runs(stamp: str) -> None:
    protocol = find_protocol(stamp)
    found = re.fullmatch(r"mw(\d+)x(\d+)(-aa)?", stamp)
    assert found
    assert (protocol.stamp, protocol.inputs, protocol.runs) == (stamp, int(found[1]), int(found[2]))
    assert protocol.against_itself == bool(found[3])
    assert protocol.alpha == 0.1


def test_the_roles_of_the_first_protocols() -> None:
    roles = {stamp: protocol.role for stamp, protocol in PROTOCOLS.items()}
    assert roles == {
        "mw2x5": ProtocolRole.PREVIEW,
        "mw4x5": ProtocolRole.FINAL,
        "mw4x5-aa": ProtocolRole.CALIBRATION,
    }


def test_a_protocol_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        find_protocol("mw4x5").runs = 1  # type: ignore[misc]
    assert isinstance(find_protocol("mw4x5"), Protocol)


@pytest.mark.parametrize("stamp", ["", "mw3x5", "MW4X5", "mw4x5 "])
def test_an_unknown_stamp_is_refused_with_those_that_are_known(stamp: str) -> None:
    with pytest.raises(UsageError, match=f"unknown protocol '{stamp}'; known protocols: mw2x5, mw4x5, mw4x5-aa"):
        find_protocol(stamp)
