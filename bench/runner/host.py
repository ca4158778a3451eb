"""The process that a Python submission runs in; started by path with `python -I`, it sees nothing of the judge.

argv: control-fd, cores "1,2", when the system call filter comes ("first": before the module is loaded, "last": after
that, "never"), waiter.so, the modules "a,b" to import before it, shim.py, module.py, symbol, then "fd:bytes:writable"
(or "-") an argument.
"""

import ctypes
import importlib
import mmap
import os
import runpy
import signal
import sys
import traceback
from typing import Any

STARTING, READY, NOT_LOADED, NO_SYMBOL, RAISED, LOADING = 0, 1, 2, 3, 4, 5
CALL = ctypes.CFUNCTYPE(None)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def borrow(word: str) -> Any:
    """Map one borrowed buffer, read-only unless the kernel may write to it."""
    if word == "-":
        return None
    fd, size, writable = (int(part) for part in word.split(":"))
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    return mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=access)


def load_waiter(path: str) -> ctypes.PyDLL:
    """The native loop. It keeps the interpreter's lock: threads of a submission rest between its calls."""
    waiter = ctypes.PyDLL(path)
    waiter.kc_py_slot.restype = ctypes.c_int64
    waiter.kc_py_slot.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    waiter.kc_py_wait_admitted.argtypes = [ctypes.c_void_p]
    waiter.kc_py_serve.argtypes = [ctypes.c_void_p, CALL]
    waiter.kc_py_say.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p]
    return waiter


def main() -> int:
    control_fd, cores, sealed, waiter_path, modules, shim_path, module_path, symbol, *words = sys.argv[1:]
    base = [borrow(word) for word in words]
    page = mmap.mmap(int(control_fd), mmap.PAGESIZE)
    control = ctypes.addressof(ctypes.c_char.from_buffer(page))
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what a submission forks twice stays among our descendants
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # the interpreter ignores it: too much output must end us
    os.closerange(3, 4096)
    waiter = load_waiter(waiter_path)
    arguments = runpy.run_path(shim_path)["arguments"]
    for name in modules.split(","):
        importlib.import_module(name)
    kernels: list[Any] = []
    call = called(waiter, control, kernels, arguments, base)  # before the filter: it is a piece of native code
    waiter.kc_py_wait_admitted(control)
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    if sealed == "first" and waiter.kc_py_seal():
        waiter.kc_py_say(control, STARTING, b"the kernel refused the system call filter")
        return 71
    waiter.kc_py_say(control, LOADING, b"")
    try:
        kernel = runpy.run_path(module_path).get(symbol)
    except BaseException:  # noqa: BLE001 - whatever a submission raises is reported, and ends this process
        waiter.kc_py_say(control, NOT_LOADED, traceback.format_exc(limit=-8).encode()[-2000:])
        return 68
    if not callable(kernel):
        waiter.kc_py_say(control, NO_SYMBOL, f"the module defines no function '{symbol}'".encode())
        return 69
    kernels.append(kernel)
    if sealed == "last" and waiter.kc_py_seal():
        waiter.kc_py_say(control, STARTING, b"the kernel refused the system call filter")
        return 71
    waiter.kc_py_say(control, READY, b"")
    waiter.kc_py_serve(control, call)
    return 0


def called(waiter: ctypes.PyDLL, control: int, kernels: list[Any], arguments: Any, base: list[Any]) -> Any:
    """The kernel, which will be put in `kernels`, as the native loop calls it."""

    def slot(index: int) -> int:
        return int(waiter.kc_py_slot(control, index))

    def call() -> None:
        try:
            kernels[0](*arguments(base, slot))
        except BaseException:  # noqa: BLE001 - as above
            waiter.kc_py_say(control, RAISED, traceback.format_exc(limit=-8).encode()[-2000:])
            os._exit(70)

    return CALL(call)


if __name__ == "__main__":
    os._exit(main())
