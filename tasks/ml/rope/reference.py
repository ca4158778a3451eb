"""Reference of rope: pairs of elements, half a head apart, are turned by an angle for each token and pair."""

import numpy as np


def rope(x, cosine, sine, out, tokens, heads, half):
    """Write the turned heads."""
    low, high = x[:, :, :half], x[:, :, half:]
    along, across = cosine[:, np.newaxis], sine[:, np.newaxis]
    out[:, :, :half] = low * along - high * across
    out[:, :, half:] = high * along + low * across


def magnitude(x, cosine, sine, out, tokens, heads, half):
    """Write the sum of the two products' magnitudes."""
    low, high = np.abs(x[:, :, :half]), np.abs(x[:, :, half:])
    along, across = np.abs(cosine)[:, np.newaxis], np.abs(sine)[:, np.newaxis]
    out[:, :, :half] = low * along + high * across
    out[:, :, half:] = high * along + low * across
