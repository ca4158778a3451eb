"""Element types of arrays: what NumPy calls them, and how floats round."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Rounding:
    """Unit roundoff of a float type, 2^-p at p bits of precision, and its smallest number above 0."""

    unit: float
    smallest: float


FLOATS = {
    "float16": Rounding(2.0**-11, 2.0**-24),
    "bfloat16": Rounding(2.0**-8, 2.0**-133),
    "float32": Rounding(2.0**-24, 2.0**-149),
    "float64": Rounding(2.0**-53, 2.0**-1074),
}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of a manifest's `dtype`; `bfloat16` is one that a package adds."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
