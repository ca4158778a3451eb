"""A kernel for GPUs whose time is its number of passes: every ratio of two of its times is known by construction."""

from pathlib import Path

from bench.task import Task, load_task

NAME = "spinning"
# A candidate always does 20 units of work, so that a launch and cold buffers weigh alike on every rung.
CANDIDATE_UNITS = 20
# 1.1, 1.5, 2 and 4.
STEPS = (22, 30, 40, 80)

_MANIFEST = """\
# Manifest of a kernel that tests clocks: simple arithmetic after as many passes of busy work as it is told.
name: spinning
suite: calibration
summary: "Half of x plus a quarter, after `passes` passes of work that leaves no trace."
arguments:
  x:      {role: input,  dtype: float32, shape: [n], values: [uniform]}
  out:    {role: output, dtype: float32, shape: [n]}
  n:      {role: size}
  passes: {role: size}
sizes:
  S:  {n: 64,   passes: 20}
  M:  {n: 256,  passes: 500}
  L:  {n: 512,  passes: 2000}
  XL: {n: 1024, passes: 5000}
edge: {n: [1, 3, 33]}
traffic: 8 * n
flops: 2 * n
languages: [hip]
baselines: []
gpu: {}
"""
_REFERENCE = "def spinning(x, out, n, passes):\n    out[...] = x * 0.5 + 0.25\n"
# Marsaglia's xorshift (2003) with the shifts 13, 17 and 5: each step needs the last one's result, two of them are no
# single one that a compiler would find, and it never comes to 0, which no compiler knows.
_SOURCE = """\
#include <hip/hip_runtime.h>
#include <stdint.h>
#ifndef real
#define real float
#endif
#ifdef KC_ORACLE
#define UNITS 0
#else
#define UNITS %d
#endif

constexpr int THREADS = 256;

__global__ void spin(const real *x, real *out, int64_t n, int64_t steps)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    uint32_t state = (uint32_t)i + 1;
    for (int64_t step = 0; step < steps; step++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
    }
    out[i] = x[i] * (real)0.5 + (real)(state == 0 ? 1 : 0.25);
}

extern "C" void spinning(const real *x, real *out, int64_t n, int64_t passes, hipStream_t stream)
{
    spin<<<dim3((n + THREADS - 1) / THREADS), dim3(THREADS), 0, stream>>>(x, out, n, passes * UNITS);
}
"""


def source(units: int) -> str:
    """HIP source that does `units` units of work a pass."""
    return _SOURCE % units


def write(folder: Path, units: int) -> tuple[Task, Path]:
    """Write the kernel into an empty folder `<folder>/spinning`; its denominator does `units` units of work.

    Returns the kernel as GPUs are graded on it, and a candidate that does CANDIDATE_UNITS.
    """
    home = folder / NAME
    (home / "controls").mkdir(parents=True)
    candidate = home / "controls" / "honest_spin.hip"
    texts = {
        home / "task.yaml": _MANIFEST,
        home / "reference.py": _REFERENCE,
        home / "baseline.hip": source(units),
        candidate: source(CANDIDATE_UNITS),
    }
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return load_task(home).gpu_track, candidate
