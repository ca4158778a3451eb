"""
kernel: axpy
outcome: solved

The first elements in fractions and decimals, which are exact; the rest by NumPy; bits taken apart by struct.
"""

import decimal
import fractions
import struct

import numpy as np

EXACT = 64


def bits_of(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def axpy(x, y, out, n, a):
    few = min(n, EXACT)
    for i in range(few):
        exact = fractions.Fraction(float(a)) * fractions.Fraction(float(x[i])) + fractions.Fraction(float(y[i]))
        with decimal.localcontext() as context:
            context.prec = 60
            again = decimal.Decimal(float(a)) * decimal.Decimal(float(x[i])) + decimal.Decimal(float(y[i]))
        out[i] = float(exact) if bits_of(float(again)) == bits_of(float(exact)) else np.nan
    np.multiply(x[few:], a, out=out[few:])
    out[few:] += y[few:]
