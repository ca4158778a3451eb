"""
kernel: gelu
outcome: solved

Coroutines driven by hand, single dispatch, a descriptor, a metaclass, and a class made by type().
"""

import functools
import math
import types

import numpy as np


class Lazy:
    """A constant computed when it is first asked for."""

    def __init__(self, make):
        self.make = make

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner):
        value = self.make()
        setattr(owner, self.name, value)
        return value


class Meta(type):
    def __call__(cls, *arguments):
        return super().__call__(*arguments).applied


class Scaled(metaclass=Meta):
    root = Lazy(lambda: math.sqrt(0.5))

    def __init__(self, value):
        self.applied = value * type(self).root


Half = type("Half", (), {"of": staticmethod(lambda value: value / 2)})


@functools.singledispatch
def erf(value):
    return math.erf(value)


@erf.register
def _(value: np.ndarray):
    return np.fromiter(map(math.erf, value.tolist()), np.float64, len(value))


@types.coroutine
def passed(value):
    return (yield value)


async def elements(x, out):
    while True:
        part = await passed(None)
        out[part] = Half.of(x[part].astype(np.float64)) * (1 + erf(Scaled(x[part].astype(np.float64))))


def gelu(x, out, n):
    waiting = elements(x, out)
    waiting.send(None)
    for first in range(0, n, 1000):
        waiting.send(slice(first, first + 1000))
    waiting.close()
