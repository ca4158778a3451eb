"""
kernel: softmax_rows
outcome: solved

A decorator that checks shapes, a context that quiets warnings, np.errstate, and an exit stack.
"""

import contextlib
import functools
import warnings

import numpy as np


def same_shape(function):
    @functools.wraps(function)
    def checked(x, out, *sizes):
        if x.shape != out.shape or x.shape != sizes:
            raise ValueError(f"shapes differ: {x.shape}, {out.shape}, {sizes}")
        return function(x, out, *sizes)

    return checked


@contextlib.contextmanager
def quiet():
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", RuntimeWarning)
        stack.enter_context(np.errstate(under="ignore", over="raise"))
        yield


@same_shape
def softmax_rows(x, out, rows, cols):
    with quiet(), contextlib.suppress(StopIteration):
        powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        np.divide(powers, powers.sum(axis=1, keepdims=True), out=out, casting="same_kind")
