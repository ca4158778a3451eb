"""
kernel: spmv_csr
outcome: solved

Rows as pairs of their ends, dot products, np.frompyfunc, and lambdas in a dictionary.
"""

import itertools

import numpy as np

SUMS = {
    0: lambda values, at: 0.0,
    1: lambda values, at: float(values[0]) * float(at[0]),
}
MULTIPLY = np.frompyfunc(lambda a, b: a * b, 2, 1)


def spmv_csr(row_ptr, col_idx, values, x, y, rows, cols, nnz):
    wide = x.astype(np.float64)
    for r, (first, end) in enumerate(itertools.pairwise(row_ptr.tolist())):
        part, at = values[first:end], wide[col_idx[first:end]]
        few = SUMS.get(end - first)
        y[r] = few(part, at) if few else MULTIPLY(part[:2].astype(np.float64), at[:2]).sum() + part[2:] @ at[2:]
