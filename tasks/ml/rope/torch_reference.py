"""rope in PyTorch, as models write it."""

import torch


def rope(x, cosine, sine, out, tokens, heads, half):
    low, high = x[..., :half], x[..., half:]
    along, across = cosine[:, None], sine[:, None]
    torch.cat((low * along - high * across, high * along + low * across), dim=-1, out=out)
