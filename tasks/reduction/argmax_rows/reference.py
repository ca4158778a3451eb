"""Reference of argmax_rows: index of the first maximum in each row."""

import numpy as np


def argmax_rows(x, out, rows, cols):
    out[...] = np.argmax(x, axis=1)
