"""argmax_rows in PyTorch."""

import torch


def argmax_rows(x, out, rows, cols):
    out.copy_(torch.argmax(x, dim=1))
