"""sgemm in PyTorch."""

import torch


def sgemm(A, B, C, m, n, k):
    torch.mm(A, B, out=C)
