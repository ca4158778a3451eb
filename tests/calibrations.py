"""A calibration as a machine could have given it, for tests that read one."""

from typing import Any

from bench.judge.schemas import Preset
from bench.measure.calibration import AgainstItself, Calibration, Ceilings, Level, Rung, Share, Spread, Track

CEILINGS = Ceilings(
    cores=1,
    levels=(
        Level(name="L1", bytes=32 << 10, read_rate=200, copy_rate=150),
        Level(name="memory", bytes=256 << 20, read_rate=10, copy_rate=8),
    ),
    float32_flops=100,
    float64_flops=50,
)


TRACK = Track(kernel="axpy", preset=Preset.M, grades=100, inputs=400, credited=60, spread=0.03, resolves=1.04)


def calibration(**changes: Any) -> Calibration:
    """One with plausible figures; 10 GB/s and 100 Gflop/s at most."""
    share = Share(hits=60, of=400, rate=0.15, low=0.12, high=0.19)
    spread = Spread(median=1, low=0.99, high=1.01, of=100)
    own = AgainstItself(
        protocol="mw4x5-aa",
        grades=100,
        credited=share,
        expected=0.151,
        p=0.5,
        above_chance=False,
        spread=0.03,
        covered=Share(hits=91, of=100, rate=0.91, low=0.84, high=0.95),
        order_effect=spread,
        resolves=1.04,
        tracks=(
            Track(kernel="axpy", preset=Preset.M, grades=100, inputs=400, credited=60, spread=0.03, resolves=1.04),
        ),
    )
    fields: dict[str, Any] = {
        "made_at": "2026-01-02T03:04:05+00:00",
        "host": "node1",
        "cpu_model": "A CPU",
        "machine_cores": 2,
        "kernel_release": "6.1.0",
        "package_version": "0.1.0",
        "package_commit": None,
        "sandbox": "limits",
        "timing_cores": (1,),
        "clock_core": 0,
        "quick": False,
        "seconds": 600,
        "quiet": ("load 9.0 on 2 cores; quiet is at most 2.5",),
        "empty_call_ns": Spread(median=240, low=230, high=260, of=200),
        "empty_python_call_ns": Spread(median=900, low=880, high=950, of=5),
        "against_itself": own,
        "ladder_preset": Preset.XL,
        "ladder": (Rung(truth=1.05, raw=spread, worst_error=0.02, covered=90),),
        "ladder_covered": share,
        "ceilings": CEILINGS,
    }
    return Calibration(**fields | changes)
