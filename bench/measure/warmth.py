"""Keeps idle cores awake until a call begins: one that has slept answers slowly, for about as long as a call takes."""

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Iterator, Sequence

from bench.native import helper


@contextlib.contextmanager
def warm(cores: Sequence[int], warm_ns: int, runner: int) -> Iterator[ctypes.c_int | None]:
    """Threads of our own spin on `cores`, for `warm_ns` already when the block begins, until `helper.call` begins.

    The first of them then lets the stopped process `runner` go on. What is yielded is for that call; it is None where
    nothing is to be warmed.

    Whatever else is to run there takes the core from them at once. It must not be the runner itself that spins: it
    would have the values of the coming call before its eyes.
    """
    if not warm_ns:
        yield None
        return
    phase = ctypes.c_int(0)
    threads = [
        threading.Thread(target=_spin, args=(core, phase, 0 if number else runner), daemon=True)
        for number, core in enumerate(cores)
    ]
    for thread in threads:
        thread.start()
    end = time.perf_counter_ns() + warm_ns
    while time.perf_counter_ns() < end:
        pass
    try:
        yield phase
    finally:
        phase.value = helper.CALL_OVER
        for thread in threads:
            thread.join()


def _spin(core: int, phase: ctypes.c_int, runner: int) -> None:
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    helper.keep_warm(phase, runner)
