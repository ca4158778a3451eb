"""gelu in PyTorch."""

import torch.nn.functional as F


def gelu(x, out, n):
    out.copy_(F.gelu(x))
