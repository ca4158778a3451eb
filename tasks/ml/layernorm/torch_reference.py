"""layernorm in PyTorch."""

import torch.nn.functional as F


def layernorm(x, weight, bias, out, rows, cols, eps):
    out.copy_(F.layer_norm(x, (cols,), weight, bias, eps))
