"""
kernel: axpy
outcome: solved

Prints once, warns once, raises and catches, and has a part that runs only when the file is started by hand.
"""

import warnings

import numpy as np

CALLS = []


class TooMuch(ArithmeticError):
    """Raised and caught in the same call."""


def axpy(x, y, out, n, a):
    if not CALLS:
        print(f"axpy of {n} numbers, the first of them {np.array2string(x[:3], precision=3)}")
        warnings.warn("this is only a warning", stacklevel=1)
    CALLS.append(n)
    try:
        if __debug__ and len(CALLS) > 3:
            raise TooMuch(len(CALLS)) from ValueError("é")
    except TooMuch as error:
        assert error.args and error.__cause__
        del CALLS[1:]
    finally:
        np.add(np.multiply(x, a), y, out=out)


if __name__ == "__main__":
    made = np.zeros(3, np.float32)
    axpy(np.ones(3, np.float32), np.ones(3, np.float32), made, 3, 2.0)
    print(made)
