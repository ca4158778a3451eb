"""Which cores a judge slot times on, which one its clock spins on, and what is left for everything else."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bench.errors import EnvironmentFault


@dataclass(frozen=True)
class CorePlan:
    """Cores of one judge slot. `others` is where servers, agents and builds belong.

    `spare` says whether `others` is free of every slot's timing and clock cores: then builds of waiting
    submissions may overlap a timing, else they wait for the lease.
    """

    timing: tuple[int, ...]
    clock: int
    others: tuple[int, ...]
    spare: bool

    @property
    def leased(self) -> tuple[int, ...]:
        """Cores that nobody else may time on meanwhile."""
        return tuple(sorted({*self.timing, self.clock}))


def available_cores() -> tuple[int, ...]:
    """Cores that this process may run on, ascending."""
    return tuple(sorted(os.sched_getaffinity(0)))


def plan_cores(available: Sequence[int], slot: int = 0, slots: int = 1) -> CorePlan:
    """One timing core and one clock core a slot; slots share a pair (and its lease) when cores are short.

    Pairs are taken from the end, because core 0 serves the most interrupts.

    Raises:
        EnvironmentFault: fewer than two cores: a clock cannot spin on the core that it times.
    """
    cores = sorted(available)
    if len(cores) < 2:
        raise EnvironmentFault(
            f"grading needs two cores, one for the timed code and one for the clock; this process may use {len(cores)}"
        )
    pairs = [(cores[i + 1], cores[i]) for i in range(len(cores) - 2, -1, -2)][:slots]
    timing, clock = pairs[slot % len(pairs)]
    taken = {core for pair in pairs for core in pair}
    free = tuple(core for core in cores if core not in taken)
    others = free or tuple(sorted({clock for _, clock in pairs}))
    return CorePlan((timing,), clock, others, spare=bool(free))
