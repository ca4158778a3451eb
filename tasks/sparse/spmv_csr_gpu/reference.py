"""Reference of spmv_csr_gpu: every row sums values[e] * x[col_idx[e]] over its entries e."""

import numpy as np


def _row_sums(terms, row_ptr, y):
    """Write the sum of each row's terms; an empty row gives zero."""
    filled = row_ptr[1:] > row_ptr[:-1]
    y[...] = 0
    y[filled] = np.add.reduceat(terms, row_ptr[:-1][filled])


def spmv_csr_gpu(row_ptr, col_idx, values, x, y, rows, cols, nnz):
    """Write y = A * x."""
    _row_sums(values * x[col_idx], row_ptr, y)


def magnitude(row_ptr, col_idx, values, x, y, rows, cols, nnz):
    """Write the sum of |terms| times the root of the row's own length, which `reduction` cannot name."""
    _row_sums(np.abs(values * x[col_idx]), row_ptr, y)
    y *= np.sqrt(np.diff(row_ptr))
