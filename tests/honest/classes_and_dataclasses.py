"""
kernel: nbody
outcome: solved

A dataclass with slots, a property, a class method, operators, a protocol, an abstract base and an enumeration.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import typing

import numpy as np


class Axis(enum.IntEnum):
    X = 0
    Y = 1
    Z = 2


class Pulls(typing.Protocol):
    def pull(self, square: np.ndarray) -> np.ndarray: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Places:
    held: np.ndarray

    @classmethod
    def of(cls, *parts: np.ndarray) -> typing.Self:
        return cls(np.stack([part.astype(np.float64) for part in parts]))

    def __sub__(self, at: int) -> Places:
        return Places(self.held - self.held[:, at, None])

    @property
    def squares(self) -> np.ndarray:
        return (self.held**2).sum(axis=0)

    def __getitem__(self, axis: Axis) -> np.ndarray:
        return self.held[axis]


class Law(abc.ABC):
    @abc.abstractmethod
    def pull(self, square: np.ndarray) -> np.ndarray: ...


class Gravity(Law):
    def __init__(self, mass: np.ndarray, soft: float) -> None:
        self._mass, self._floor = mass.astype(np.float64), float(soft) ** 2 + 2.0**-10

    def pull(self, square: np.ndarray) -> np.ndarray:
        return self._mass * (square + self._floor) ** -1.5


def nbody(x, y, z, mass, ax, ay, az, n, soft):
    places, law = Places.of(x, y, z), Gravity(mass, soft)
    for i in range(n):
        apart = places - i
        pull = law.pull(apart.squares)
        for axis, to in zip(Axis, (ax, ay, az), strict=True):
            to[i] = apart[axis] @ pull
