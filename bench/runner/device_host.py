"""The process of a Triton submission on a GPU; started by path with `python -I`, it sees nothing of the judge.

argv: control-fd, cores "1,2", whether it is sealed once everything is compiled ("last") or not ("never"), or is none
but the judge's own, for which PyTorch may compute ("trusted"), waiter.so, the library that borrows a device's memory,
the device's type by DLPack's number, rehearsals.json, shim.py, module.py, symbol, then "fd:bytes:writable" (or "-") an
argument.

Before it is sealed the kernel is called once on each size that is to come, on zeros of its own: that is when Triton
compiles, and starts its compilers. Nothing of these calls is looked at, but for what they have PyTorch do: kernels are
to compute, and PyTorch may not.
"""

import contextlib
import ctypes
import json
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

STARTING, READY, NOT_LOADED, NO_SYMBOL, RAISED, LOADING, REFUSED = 0, 1, 2, 3, 4, 5, 7
CALL = ctypes.CFUNCTYPE(None)
PAGE, STREAM = 4096, 32
_HOST_MEMORY = 1
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
# Kind and bits of an element type, as DLPack numbers them.
_TYPES = {
    "int32": (0, 32),
    "int64": (0, 64),
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "bfloat16": (4, 16),
    "uint8": (1, 8),
}
# What a kernel may have PyTorch do, besides views: allocate, fill, look at one value, and copy things as they are.
_FILLS = {
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "zeros", "zeros_like", "new_zeros"),
    *("full", "full_like", "new_full", "zero_", "fill_", "set_", "_local_scalar_dense", "is_pinned"),
}
_COPIES = {"clone", "copy_", "_to_copy"}


class _Tensor(ctypes.Structure):
    """`DLTensor` of DLPack 0.8."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """`DLManagedTensor`; nobody deletes it, for the judge owns the memory."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Lent:
    """The judge's buffers as tensors of PyTorch, made once for each place and shape."""

    def __init__(self, torch: Any, bases: Any, device_type: int) -> None:
        self._torch, self._bases, self._device_type = torch, bases, device_type
        self._made: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def tensor(self, index: int, offset: int, shape: tuple[int, ...], dtype: str) -> Any:
        key = (index, offset, shape, dtype)
        if key not in self._made:
            self._made[key] = self._make(self._bases[index] + offset, shape, dtype)
        return self._made[key][0]

    def _make(self, address: int, shape: tuple[int, ...], dtype: str) -> tuple[Any, Any]:
        code, bits = _TYPES[dtype]
        extents = (ctypes.c_int64 * len(shape))(*shape)
        described = _Tensor(address, self._device_type, 0, len(shape), code, bits, 1, extents, None, 0)
        managed = _Managed(described, None, None)
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        tensor = self._torch.utils.dlpack.from_dlpack(capsule(ctypes.addressof(managed), b"dltensor", None))
        return tensor, (managed, extents)


class Zeros:
    """Tensors of zeros in place of the judge's, for a rehearsal; row pointers, which say where to read, are of rows of
    one length."""

    def __init__(self, torch: Any, device_type: int) -> None:
        self._torch, self.on_device = torch, device_type != _HOST_MEMORY
        self.ends: dict[str, int] = {}

    def tensor(self, index: int, offset: int, shape: tuple[int, ...], dtype: str) -> Any:
        kind, device = getattr(self._torch, dtype), "cuda" if self.on_device else "cpu"
        if str(index) in self.ends:
            rows = self._torch.arange(shape[0], device=device)
            return (rows * self.ends[str(index)] // (shape[0] - 1)).to(kind)
        return self._torch.zeros(shape, dtype=kind, device=device)


def load_waiter(path: str) -> ctypes.PyDLL:
    """The native loop. It keeps the interpreter's lock: threads of a submission rest between its calls."""
    waiter = ctypes.PyDLL(path)
    waiter.kc_py_slot.restype = ctypes.c_int64
    waiter.kc_py_slot.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    waiter.kc_py_wait_admitted.argtypes = [ctypes.c_void_p]
    waiter.kc_py_serve_on_device.argtypes = [ctypes.c_void_p, CALL]
    waiter.kc_py_say.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p]
    waiter.kc_py_open_device.restype = ctypes.c_char_p
    waiter.kc_py_open_device.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    return waiter


def map_control(fd: int) -> int:
    """Where the control page lies; its descriptor is closed."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    address: int = libc.mmap(None, PAGE, 3, 1, fd, 0)  # read and write, shared
    os.close(fd)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what a submission forks twice stays among our descendants
    return address


def main() -> int:
    fd, cores, sealed, waiter_path, library, kind, rehearsals, shim_path, module_path, symbol, *words = sys.argv[1:]
    control = map_control(int(fd))
    # Of all that PyTorch brings for a GPU, rehearsals load what calls need. A user of a sandbox has no name to ask for.
    os.environ.update(CUDA_MODULE_LOADING="LAZY", LOGNAME="submission")
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # the interpreter ignores it: too much output must end us
    waiter = load_waiter(waiter_path)
    bases = (ctypes.c_void_p * (STREAM + 1))()
    described = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    if failed := waiter.kc_py_open_device(control, library.encode(), len(words), described, bases):
        waiter.kc_py_say(control, STARTING, failed)
        return 72
    os.environ.update(TRITON_CACHE_DIR=f"{os.environ['TMPDIR']}/triton")
    try:
        import torch
        import triton  # noqa: F401 - so that a judge without it says so
    except ImportError as error:
        waiter.kc_py_say(control, STARTING, f"Triton submissions need torch and triton: {error}".encode())
        return 74
    arguments = runpy.run_path(shim_path)["arguments"]
    planned = json.loads(Path(rehearsals).read_text(encoding="utf-8"))
    lent, zeros = Lent(torch, bases, int(kind)), Zeros(torch, int(kind))
    kernels: list[Any] = []
    call = called(waiter, control, kernels, arguments, lent)
    guard = contextlib.nullcontext() if sealed == "trusted" else library_guard(waiter, control)
    waiter.kc_py_wait_admitted(control)
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    waiter.kc_py_say(control, LOADING, b"")
    try:
        kernel = runpy.run_path(module_path).get(symbol)
        if callable(kernel):
            rehearse(torch, within(guard, kernel), arguments, zeros, planned, bases[STREAM])
    except BaseException:  # noqa: BLE001 - whatever a submission raises is reported, and ends this process
        waiter.kc_py_say(control, NOT_LOADED, traceback.format_exc(limit=-8).encode()[-2000:])
        return 68
    if not callable(kernel):
        waiter.kc_py_say(control, NO_SYMBOL, f"the module defines no function '{symbol}'".encode())
        return 69
    kernels.append(kernel)
    if sealed == "last" and waiter.kc_py_seal_on_device():
        waiter.kc_py_say(control, STARTING, b"the kernel refused the system call filter")
        return 71
    waiter.kc_py_say(control, READY, b"")
    with guard:
        waiter.kc_py_serve_on_device(control, call)
    return 0


def rehearse(
    torch: Any, kernel: Any, arguments: Any, zeros: Zeros, planned: list[dict[str, Any]], stream: int | None
) -> None:
    """Call the kernel on zeros of every size that is to come, on the stream that it will be called on."""
    if zeros.on_device:
        torch.cuda.set_stream(torch.cuda.ExternalStream(stream))
    for call in planned:
        zeros.ends = call["ends"]
        kernel(*arguments(zeros.tensor, call["slots"].__getitem__))
    if zeros.on_device:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    if "torch._dynamo" in sys.modules:  # what is compiled from now on would be in somebody's time
        torch.compiler.set_stance("fail_on_recompile")


def library_guard(waiter: ctypes.PyDLL, control: int) -> Any:
    """A context in which PyTorch ends this process where it is to compute, in the thread that enters it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class LibraryGuard(TorchDispatchMode):  # type: ignore[misc]  # PyTorch need not be here
        def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = operation.name().removeprefix("aten::").partition(".")[0]
            if not operation.is_view and name not in _FILLS | _COPIES:
                refuse(waiter, control, name)
            result = operation(*args, **(kwargs or {}))
            source = args[name == "copy_"] if name in _COPIES else result
            if name in _COPIES and (result.stride(), result.dtype) != (source.stride(), source.dtype):
                refuse(waiter, control, f"{name} into another layout or type")
            return result

    return LibraryGuard()


def within(guard: Any, kernel: Any) -> Any:
    """The kernel, called with the guard on."""

    def call(*given: Any) -> None:
        with guard:
            kernel(*given)

    return call


def refuse(waiter: ctypes.PyDLL, control: int, what: str) -> None:
    message = (
        f"it has PyTorch compute ({what}); PyTorch may allocate, view, fill and copy, and kernels of Triton compute"
    )
    waiter.kc_py_say(control, REFUSED, message.encode())
    os._exit(75)


def called(waiter: ctypes.PyDLL, control: int, kernels: list[Any], arguments: Any, lent: Lent) -> Any:
    """The kernel, which will be put in `kernels`, as the native loop calls it."""

    def slot(index: int) -> int:
        return int(waiter.kc_py_slot(control, index))

    def call() -> None:
        try:
            kernels[0](*arguments(lent.tensor, slot))
        except BaseException:  # noqa: BLE001 - as above
            waiter.kc_py_say(control, RAISED, traceback.format_exc(limit=-8).encode()[-2000:])
            os._exit(70)

    return CALL(call)


if __name__ == "__main__":
    os._exit(main())
