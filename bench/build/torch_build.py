"""A kernel in PyTorch as something to be faster than: the module that a runner loads, run as it is or compiled."""

from enum import StrEnum
from importlib.metadata import version
from importlib.util import find_spec

from bench.build.toolchain import Artifact
from bench.cache import cached, content_key, default_cache, of_text
from bench.judge.schemas import Language
from bench.task import Task

NEEDED = ("torch", "triton")
# Behind the reference: single precision is single precision, which PyTorch leaves to convolutions to decide.
_EXACT = """

import torch as _torch

_torch.backends.cuda.matmul.allow_tf32 = _torch.backends.cudnn.allow_tf32 = False
"""
# One compilation for each of the sizes, in this process and in small files; an error is told as it is. Scalars come as
# tensors, because numbers would be compiled in.
_COMPILED = """
import torch._inductor.config

_torch._inductor.config.compile_threads, _torch._inductor.config.cpp_cache_precompile_headers = 1, False
_torch._dynamo.config.recompile_limit, _torch._dynamo.config.fail_on_recompile_limit_hit = 64, True
_torch._dynamo.config.capture_scalar_outputs = _torch._dynamo.config.verbose = True
_compiled = _torch.compile({kernel}, dynamic=False)


def {kernel}(*arguments):
    _compiled(*(_torch.tensor(one, dtype=_torch.float64) if isinstance(one, float) else one for one in arguments))
"""


class Mode(StrEnum):
    """How PyTorch runs a kernel, by the name that rows have for it."""

    EAGER = "torch eager"
    COMPILED = "torch.compile"


def lacking(task: Task) -> str:
    """Why a kernel is not run in PyTorch here; an empty text when it is."""
    if task.torch_reference is None:
        return f"{task.name} has no torch_reference.py"
    missing = [name for name in NEEDED if find_spec(name) is None]
    return f"the judge's Python lacks {' and '.join(missing)}" if missing else ""


def compiler() -> str:
    """What runs kernels in PyTorch here: versions of the packages."""
    return ", ".join(f"{name} {version(name)}" for name in NEEDED)


def text(task: Task, mode: Mode) -> str:
    """The module that defines a kernel of the contract's name and arguments."""
    assert task.torch_reference
    tail = _EXACT + (_COMPILED.format(kernel=task.name) if mode is Mode.COMPILED else "")
    return task.torch_reference.read_text(encoding="utf-8") + tail


def build(task: Task, mode: Mode) -> Artifact:
    """That module as a file, cached by content; what it compiles, it compiles in its runner."""
    content = text(task, mode)
    path = cached(default_cache() / "denominators", content_key(content), ".py", of_text(content))
    return Artifact(path, Language.TRITON, compiler=compiler(), trusted=True)
