"""Ladder kernels: pairs of sources whose ratio of times is known by construction, to test the estimator with."""

from dataclasses import dataclass
from pathlib import Path

from bench.task import Task, load_task

NAME = "ladder"
# A candidate always does 20 units of work, so that its fixed cost (cold buffers) weighs alike on every rung.
CANDIDATE_UNITS = 20
PASSES_PER_UNIT = 1000

_MANIFEST = """\
# Manifest of a ladder kernel: the same arithmetic on the same cache-resident array, more or less often.
name: ladder
suite: calibration
summary: "Half of x plus a quarter, computed as often as the source says."
arguments:
  x:   {role: input,  dtype: float32, shape: [n], values: [uniform]}
  out: {role: output, dtype: float32, shape: [n]}
  n:   {role: size}
sizes:
  S:  {n: 64}
  M:  {n: 256}
  L:  {n: 512}
  XL: {n: 1024}
edge: {n: [1, 3, 33]}
traffic: 8 * n
flops: 2 * n
languages: [c, python]
"""
# The reference; and, because the empty call of a Python runner is another than that of a native one, a submission.
PYTHON_SOURCE = "def ladder(x, out, n):\n    out[...] = x * 0.5 + 0.25\n"
_SOURCE = """\
#include <stdint.h>
#ifndef real
#define real float
#endif
#ifdef KC_ORACLE
#define PASSES 1
#else
#define PASSES %d
#endif

void ladder(const real *restrict x, real *restrict out, int64_t n)
{
    for (int pass = 0; pass < PASSES; pass++) {
        for (int64_t i = 0; i < n; i++)
            out[i] = x[i] * (real)0.5 + (real)0.25;
        /* Without this the compiler may keep one pass of them all. */
        __asm__ volatile("" : : "r"(x), "r"(out) : "memory");
    }
}
"""


@dataclass(frozen=True)
class Step:
    """One rung: the denominator does `units` of work for every 20 of the candidate."""

    units: int

    @property
    def truth(self) -> float:
        """The true ratio of the two times."""
        return self.units / CANDIDATE_UNITS


# 1.05, 1.10, 1.25, 2 and 4.
STEPS = tuple(Step(units) for units in (21, 22, 25, 40, 80))


def source(units: int) -> str:
    """C source that does `units` units of work."""
    return _SOURCE % (units * PASSES_PER_UNIT)


def write(folder: Path, step: Step) -> Task:
    """Write a rung's kernel into an empty folder `<folder>/ladder` and load it; its baseline is the denominator."""
    home = folder / NAME
    home.mkdir(parents=True)
    (home / "task.yaml").write_text(_MANIFEST, encoding="utf-8")
    (home / "reference.py").write_text(PYTHON_SOURCE, encoding="utf-8")
    (home / "baseline.c").write_text(source(step.units), encoding="utf-8")
    return load_task(home)
