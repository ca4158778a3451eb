"""Whose GPUs a device is: what is asked of each vendor."""

from collections.abc import Mapping

from bench.devices import cuda, hip
from bench.devices.card import Vendor
from bench.judge.schemas import Device

VENDORS: Mapping[Device, Vendor] = {Device.CUDA: cuda.VENDOR, Device.HIP: hip.VENDOR}
