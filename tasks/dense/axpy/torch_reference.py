"""axpy in PyTorch."""

import torch


def axpy(x, y, out, n, a):
    torch.add(y, x, alpha=a, out=out)
