"""The GPUs of this machine: how many judges may have, and whether anything builds for them."""

from collections.abc import Mapping

from bench.devices.vendors import VENDORS
from bench.judge.schemas import Device


def gpus_here(device: str, environ: Mapping[str, str]) -> int:
    """How many GPUs of a device's vendor (cuda, hip) this process may use: those of its mask, else all.

    Raises:
        EnvironmentFault: there is none, or no compiler for it.
    """
    vendor = VENDORS[Device(device)]
    cards = vendor.cards()
    vendor.kit(cards[0])
    masked = [entry for entry in environ.get(vendor.mask, "").split(",") if entry.strip()]
    return len(masked or cards)
