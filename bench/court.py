"""Court: what one judge slot grades with – its sandbox, its cores – and the leases it takes."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.build.gpu_library import Kit
from bench.devices.card import Card, Vendor
from bench.devices.gpu import Gpu
from bench.devices.vendors import VENDORS
from bench.errors import EnvironmentFault, UsageError
from bench.evaluation import NO_TOOLS, Plan
from bench.judge.schemas import Device, Language, graded_on, not_graded
from bench.measure.cores import CorePlan, available_cores, plan_cores
from bench.measure.lease import timing_lease
from bench.measure.stopwatch import Stopwatch
from bench.runner.memory import HOST, DeviceMemory, Memory
from bench.sandbox import Sandbox, reach

# A GPU's runtime loads code at once, and keeps none of it on disk.
NO_DISTURBANCE = {"CUDA_MODULE_LOADING": "EAGER", "CUDA_CACHE_DISABLE": "1"}


@dataclass(frozen=True)
class Court:
    """A judge slot. Open it with `open_court`."""

    sandbox: Sandbox
    cores: CorePlan
    tools: Plan = NO_TOOLS
    gpu: Gpu | None = None
    card: Card | None = None

    @property
    def kit(self) -> Kit | None:
        """How code is built for the slot's GPU."""
        return self.gpu.kit if self.gpu else None

    @property
    def memory(self) -> Memory:
        """Where the arrays of a grade lie."""
        return DeviceMemory(self.gpu) if self.gpu else HOST

    def gpu_facts(self) -> dict[str, Any]:
        """What the slot's GPU is."""
        assert self.gpu is not None
        seen = {"index": self.card.index, "driver": self.card.driver, "target": self.card.target} if self.card else {}
        return {**self.gpu.facts, **seen}

    def gpu_state(self) -> dict[str, Any]:
        """How the slot's GPU is doing now: clocks (MHz), power (W), temperature (°C), load (%)."""
        return VENDORS[self.gpu.kit.device].state(self.card) if self.gpu and self.card else {}

    @property
    def devices(self) -> tuple[Device, ...]:
        """What grades here: the slot's GPU; without one this CPU, which plays a GPU for HIP."""
        return graded_on(self.gpu.kit.device if self.gpu else Device.CPU)

    def device_of(self, language: Language) -> Device:
        """What grades a language here.

        Raises:
            UsageError: nothing does.
        """
        if why := not_graded(language, self.devices):
            raise UsageError(why)
        return next(device for device in self.devices if language in device.languages)

    @property
    def untimed(self) -> tuple[int, ...]:
        """Cores for code that is run and not timed: those of nobody, or else, under the lease, the timing cores."""
        return self.cores.others if self.cores.spare else self.cores.timing

    @contextlib.contextmanager
    def building(self, watch: Stopwatch) -> Iterator[None]:
        """What a build needs: any core where some are spare; the timing lease, kept for the whole grade, where not."""
        with contextlib.nullcontext() if self.cores.spare else self._leased(watch):
            yield

    @contextlib.contextmanager
    def timing(self, watch: Stopwatch) -> Iterator[None]:
        """The timing cores are ours alone, and this thread (the clock) sits on its own."""
        before = os.sched_getaffinity(0)
        with self._leased(watch) if self.cores.spare else contextlib.nullcontext():
            os.sched_setaffinity(0, {self.cores.clock})
            try:
                yield
            finally:
                os.sched_setaffinity(0, before)

    @contextlib.contextmanager
    def _leased(self, watch: Stopwatch) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            with watch.stage("wait"):
                stack.enter_context(timing_lease(self.cores.leased))
            yield


def open_court(
    allow_sandbox: str,
    slot: int = 0,
    slots: int = 1,
    timing_cores: tuple[int, ...] | None = None,
    clock_core: int | None = None,
    tools: Plan = NO_TOOLS,
    device: Device = Device.CPU,
) -> Court:
    """The court of one judge slot on this machine; cores that are named are used, whatever this process inherits.

    Its GPU is the first of those that this process may see.

    Raises:
        EnvironmentFault: no sandbox of the allowed level, fewer than two cores, or a named one was not found; no such
            device, or no compiler for it.
    """
    if timing_cores is not None and clock_core is not None:
        _must_exist(sorted({*timing_cores, clock_core}))
        others = available_cores()
        spare = {*timing_cores, clock_core}.isdisjoint(others)
        cores = CorePlan(timing_cores, clock_core, others, spare)
    else:
        cores = plan_cores(available_cores(), slot, slots)
    sandbox = reach(allow_sandbox, len(cores.timing), seat=cores.timing[0])
    if device not in VENDORS:
        return Court(sandbox, cores, tools)
    vendor = VENDORS[device]
    seen = os.environ.get(vendor.mask, "").split(",")[0].strip() or "0"
    card = _card(vendor, seen)
    variables = {**sandbox.variables, vendor.mask: seen, **NO_DISTURBANCE}
    sandbox = replace(sandbox, devices=vendor.nodes(), variables=variables)
    return Court(sandbox, cores, tools, Gpu(vendor.kit(card)), card)


def _card(vendor: Vendor, seen: str) -> Card:
    """The card of that index; where a mask names it otherwise, any: a node's are of one kind."""
    cards = vendor.cards()
    return next((card for card in cards if str(card.index) == seen), cards[0])


def _must_exist(cores: Sequence[int]) -> None:
    """Raises EnvironmentFault unless this process may run on each of these cores."""
    before = os.sched_getaffinity(0)
    try:
        for core in cores:
            try:
                os.sched_setaffinity(0, {core})
            except (OSError, ValueError, OverflowError) as error:
                raise EnvironmentFault(
                    f"core {core} does not exist here, or this process may not use it; "
                    "set timing_cores and clock_core to other cores, or leave both out"
                ) from error
    finally:
        os.sched_setaffinity(0, before)
