"""floyd_warshall in PyTorch: one intermediate vertex at a time."""

import torch


def floyd_warshall(dist, n):
    for k in range(n):
        torch.minimum(dist, dist[:, k, None] + dist[k], out=dist)
