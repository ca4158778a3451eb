"""Reference of layernorm: rows minus their mean, divided by their standard deviation, times a weight, plus a bias."""

import numpy as np


def layernorm(x, weight, bias, out, rows, cols, eps):
    """Write the normalised rows."""
    deviation = x - np.mean(x, axis=1, keepdims=True)
    variance = np.mean(deviation * deviation, axis=1, keepdims=True)
    out[...] = deviation / np.sqrt(variance + eps) * weight + bias


def magnitude(x, weight, bias, out, rows, cols, eps):
    """Write the same with all terms positive; the variance is that of the rows themselves."""
    spread = np.sqrt(np.var(x, axis=1, keepdims=True) + eps)
    size = np.abs(x)
    out[...] = (size + np.mean(size, axis=1, keepdims=True)) / spread * np.abs(weight) + np.abs(bias)
