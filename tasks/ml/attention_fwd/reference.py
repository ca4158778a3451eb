"""Reference of attention_fwd: probabilities of keys by a softmax of scores, and the mean of v under them."""

import numpy as np


def _probabilities(q, k, dim):
    """[heads, seq, seq]: for each query, of each key."""
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(dim)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True)


def attention_fwd(q, k, v, out, heads, seq, dim):
    """Write the mean of v, weighted by each query's probabilities."""
    out[...] = _probabilities(q, k, dim) @ v


def magnitude(q, k, v, out, heads, seq, dim):
    """Write the sum of probability * |v|: what is rounded is the probabilities.

    2^-94: probabilities below the smallest normal number, 2^-126, may be flushed to zero, and |v| is below 2^12; at
    2^11 keys and more, times the unit roundoff of bfloat16, 2^-8, that is what they add up to.
    """
    out[...] = _probabilities(q, k, dim) @ np.abs(v) + 2.0**-94
