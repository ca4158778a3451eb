"""What a submission in Triton may name, and what nobody may do to the runner around it."""

import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from conftest import REPOSITORY

from bench.gates import names
from bench.gates.imports import check_python, top_modules
from bench.judge.schemas import Language, Outcome
from bench.native import helper
from bench.runner.stance import Watched
from bench.verdict import Rejected

USED = """\
from __future__ import annotations
import math
from typing import Optional
import numpy as np
import torch
import triton
import triton.language as tl
from torch import cuda
from triton.language.extra import libdevice
"""


def refusal(source: str) -> str:
    """What the gates say of a module; empty when they let it pass."""
    try:
        check_python(source, Language.TRITON)
        names.check(source)
    except Rejected as rejected:
        assert (rejected.outcome, rejected.property) == (Outcome.POLICY, "imports")
        return str(rejected.detail["message"])
    return ""


@pytest.mark.parametrize(
    "line",
    [
        "BLOCK = triton.next_power_of_2(math.ceil(3.5))",
        "def f(x: torch.Tensor, y: Optional[int]): return torch.empty_like(x), x.new_zeros(3), torch.float16",
        "@triton.autotune([triton.Config({'B': 1}, num_warps=4)], key=['n'])\n@triton.jit\ndef f(n): tl.arange(0, 4)",
        "def f(a): return libdevice.tanh(a) + tl.math.exp2(a) + tl.random.rand(a, 1)",
        "WAVES = triton.runtime.driver.active.utils.get_device_properties(torch.cuda.current_device())['warpSize']",
        "STREAM = cuda.current_stream().cuda_stream",
        "TYPE, IS_HIP = getattr(tl, 'float8e4nv', None), hasattr(torch.version, 'hip')",
        "class Made:\n    def __init__(self): super().__init__()",
        "TABLE = torch.tensor(np.arange(4), device='cuda')",
        "def f(input, x): return input.shape, getattr(x, 'is_cuda', True), f.__name__",
    ],
)
def test_what_a_kernel_needs_is_let_in(line: str) -> None:
    assert refusal(f"{USED}{line}\n") == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("import threading", "imports 'threading'"),
        ("import torch.utils.cpp_extension", "'torch.utils.cpp_extension'"),
        ("from torch import *", "'torch.*'"),
        ("import triton.testing", "'triton.testing'"),
        ("GRAPH = torch.cuda.CUDAGraph()", "'torch.cuda.CUDAGraph'"),
        ("SIDE = cuda.Stream()", "'torch.cuda.Stream'"),
        ("t = torch", "'torch'"),
        ("def f(x, y): return torch.matmul(x, y)", "'torch.matmul'"),
        ("torch.os.fork()", "'torch.os.fork'"),
        ("MODULES = math.sys.modules", "'math.sys.modules'"),
        ("from typing import sys", "'typing.sys'"),
        ("LOAD = np.ctypeslib.load_library", "'numpy.ctypeslib.load_library'"),
        ("LIBRARY = np.zeros(1).ctypes", "'ctypes'"),
        ("tl.core.knobs.compilation.always_compile = True", "knobs"),
        ("NAME = getattr(torch, 'os')", "'torch.os'"),
        ("def f(x, name): return getattr(x, name)", "'getattr'"),
        ("def f(): return f.__globals__", "'__globals__'"),
        ("ALL = ().__class__.__base__.__subclasses__()", "'__subclasses__'"),
        ("OS = __import__('os')", "'__import__'"),
        ("exec('import os')", "'exec'"),
        ("import operator\nGET = operator.attrgetter('a')", "attrgetter"),
        ("triton.runtime.driver.active.utils.load_binary", "load_binary"),
    ],
)
def test_what_none_needs_is_refused_and_named(line: str, says: str) -> None:
    assert says in refusal(f"{USED}{line}\n")


def test_honest_solutions_pass() -> None:
    paths = sorted((REPOSITORY / "tasks").rglob("*_triton.py"))
    assert len(paths) > 20
    assert [path.name for path in paths if refusal(path.read_text(encoding="utf-8"))] == []


def modules_within(module: ModuleType, called: str) -> Iterator[tuple[str, str]]:
    """Modules that attributes lead to, as a source would call them, and their own names."""
    for name, value in vars(module).items():
        dotted = f"{called}.{name}"
        if isinstance(value, ModuleType) and dotted.count(".") < 6 and not refusal(f"import triton\n{dotted}\n"):
            yield dotted, value.__name__
            if value.__name__.startswith("triton."):
                yield from modules_within(value, dotted)


@pytest.mark.skipif(not importlib.util.find_spec("triton"), reason="triton is not installed")
def test_no_name_of_the_language_leads_to_a_module_that_may_not_be_imported() -> None:
    found = list(modules_within(importlib.import_module("triton.language"), "triton.language"))
    known = tuple(f"{name}." for name in ("triton.language", *(top_modules(Language.TRITON) - {"triton"})))
    assert [dotted for dotted, name in found if not f"{name}.".startswith(known)] == []
    assert len(found) > 5


PATCHES = """
import ctypes, os, signal, sys
libc, waiter = ctypes.CDLL(None), ctypes.PyDLL(sys.argv[1])
address = ctypes.cast(waiter.kc_py_say, ctypes.c_void_p).value
os.kill(os.getpid(), signal.SIGSTOP)
assert libc.mprotect(ctypes.c_void_p(address & ~4095), ctypes.c_size_t(8192), 7) == 0
ctypes.memset(address, 0xC3, int(sys.argv[2]))
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.parametrize(("nbytes", "changed"), [(0, False), (1, True)])
def test_code_that_was_written_to_is_seen_from_outside(nbytes: int, changed: bool) -> None:
    waiter = helper.python_waiter()
    child = subprocess.Popen([sys.executable, "-c", PATCHES, str(waiter), str(nbytes)])
    watched = Watched(child.pid)
    try:
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        pages = watched.pages_of([waiter.name])
        assert sum(len(held) for _, held in pages) > 4096 and not watched.changed(pages)
        child.send_signal(18)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        assert watched.changed(pages) is changed
    finally:
        watched.close()
        child.kill()
        child.wait()
