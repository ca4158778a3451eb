"""rmsnorm in PyTorch, as models write it."""

import torch


def rmsnorm(x, weight, out, rows, cols, eps):
    mean_square = x.pow(2).mean(dim=1, keepdim=True)
    out.copy_(x * torch.rsqrt(mean_square + eps) * weight)
