"""attention_fwd in PyTorch: its fused operation, which takes a batch of heads."""

import torch.nn.functional as F


def attention_fwd(q, k, v, out, heads, seq, dim):
    out.copy_(F.scaled_dot_product_attention(q[None], k[None], v[None])[0])
