"""Reference of cross_entropy: the logarithm of a sum of exponentials, minus the label's logit."""

import numpy as np


def cross_entropy(logits, label, loss, rows, classes):
    """Write the loss of every row."""
    top = logits.max(axis=1)
    chosen = logits[np.arange(rows), label]
    loss[...] = top - chosen + np.log(np.exp(logits - top[:, np.newaxis]).sum(axis=1))


def magnitude(logits, label, loss, rows, classes):
    """Write what errors scale with: the sum's, and three roundings without the sum's share of the bound.

    Rounding logit - max changes its exponential by |logit - max| units, so its share of the sum weighs in by that
    much; the sum's own relative error is an absolute one of its logarithm.
    """
    top = logits.max(axis=1)
    below = top[:, np.newaxis] - logits
    weight = np.exp(-below)
    spread = (weight * below).sum(axis=1) / weight.sum(axis=1)
    cross_entropy(logits, label, loss, rows, classes)
    rounded = np.abs(top) + np.abs(logits[np.arange(rows), label]) + np.abs(loss)
    loss[...] = 1 + spread + rounded / np.sqrt(classes)
