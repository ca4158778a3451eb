"""Is this machine quiet enough to time on? Load, stolen time, governor, strangers: it warns and never refuses."""

import contextlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure.cores import CorePlan

PROC, CPUS = Path("/proc"), Path("/sys/devices/system/cpu")
# What a grade itself adds to the load: the clock and the timed code, and a margin for what comes and goes.
OWN_LOAD = 2.5
# Of the other cores this share may be busy: they take memory bandwidth and clock frequency from the timed one.
BUSY_SHARE = 0.25
STOLEN_SHARE, STOLEN_TICKS = 0.01, 2
NAMED = 5
_KERNEL_THREAD = 0x200000


@dataclass(frozen=True)
class Ticks:
    """Time of some cores since the machine started, in ticks of 10 ms."""

    total: int
    stolen: int

    def since(self, before: "Ticks") -> "Ticks":
        return Ticks(self.total - before.total, self.stolen - before.stolen)


@dataclass(frozen=True)
class Seen:
    """What was seen of a machine of `machine_cores` cores during a grade.

    `strangers` are other processes that were running on the timing and clock cores, as `name (pid)`; `governors`
    belong to the timing cores, empty where the machine does not show them.
    """

    load: float
    machine_cores: int
    ticks: Ticks
    strangers: tuple[str, ...] = ()
    governors: tuple[str, ...] = ()


def warnings(seen: Seen) -> list[str]:
    """One sentence for each reason to distrust a time a little more; empty on a quiet machine."""
    found = []
    if seen.load > (limit := OWN_LOAD + BUSY_SHARE * max(seen.machine_cores - 2, 0)):
        found.append(f"load {seen.load:.1f} on {seen.machine_cores} cores; quiet is at most {limit:.1f}")
    if seen.ticks.stolen >= STOLEN_TICKS and seen.ticks.stolen > STOLEN_SHARE * seen.ticks.total:
        share = seen.ticks.stolen / seen.ticks.total
        found.append(f"the host took {share:.1%} of the timing cores' time away (steal)")
    if slow := sorted(set(seen.governors) - {"performance"}):
        found.append(f"the timing cores' frequency governor is {', '.join(slow)}, not performance")
    if seen.strangers:
        more = f" and {len(seen.strangers) - NAMED} more" if len(seen.strangers) > NAMED else ""
        found.append(f"other processes ran on the timing cores: {', '.join(seen.strangers[:NAMED])}{more}")
    return found


def ticks(stat: str, cores: Collection[int]) -> Ticks:
    """Sum over some cores, from the text of /proc/stat (its eighth figure is steal; guest time is in user)."""
    total = stolen = 0
    for line in stat.splitlines():
        name, *figures = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            total += sum(map(int, figures[:8]))
            stolen += int(figures[7])
    return Ticks(total, stolen)


def strangers(cores: Collection[int], own: int, proc: Path = PROC) -> list[str]:
    """Processes other than `own` that are running on one of these cores right now, as `name (pid)`.

    /proc is walked only when more is runnable than the caller itself: on a node with thousands of processes that
    costs more than a small grade.
    """
    if _runnable((proc / "loadavg").read_text()) <= 1:
        return []
    found = []
    for entry in os.scandir(proc):
        if entry.name.isdigit() and int(entry.name) != own:
            # A process may end while we look at it.
            with contextlib.suppress(OSError):
                if name := _running_on(_read(f"{entry.path}/stat"), cores):
                    found.append(f"{name} ({entry.name})")
    return found


def _read(path: str) -> str:
    """Start of a file, by the shortest way: opening it as text costs five times as much, for each process."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 1024).decode(errors="replace")
    finally:
        os.close(fd)


def _runnable(loadavg: str) -> int:
    return int(loadavg.split()[3].partition("/")[0])


def _running_on(stat: str, cores: Collection[int]) -> str | None:
    """Name of a process whose /proc/<pid>/stat says that it runs on one of these cores, else None.

    The kernel's own threads do not count: every machine has them.
    """
    head, _, tail = stat.rpartition(")")  # the name itself may hold blanks and brackets
    fields = tail.split()
    state, flags, core = fields[0], int(fields[6]), int(fields[36])
    return head.partition("(")[2] if state == "R" and core in cores and not flags & _KERNEL_THREAD else None


def governors(cores: Sequence[int], root: Path = CPUS) -> tuple[str, ...]:
    """Frequency governors of these cores, as far as the machine shows them."""
    files = [root / f"cpu{core}" / "cpufreq" / "scaling_governor" for core in cores]
    return tuple(file.read_text().strip() for file in files if file.is_file())


class Lookout:
    """Looks at the machine when it is made, just before timing, and again when it is asked for `warnings`."""

    def __init__(self, plan: CorePlan) -> None:
        self._plan = plan
        self._strangers = tuple(strangers(plan.leased, os.getpid()))
        self._before = self._ticks()

    def _ticks(self) -> Ticks:
        return ticks((PROC / "stat").read_text(), self._plan.leased)

    def warnings(self) -> list[str]:
        """What was not quiet between the making of this lookout and now."""
        seen = Seen(
            load=os.getloadavg()[0],
            machine_cores=os.cpu_count() or 1,
            ticks=self._ticks().since(self._before),
            strangers=self._strangers,
            governors=governors(self._plan.timing),
        )
        return warnings(seen)
