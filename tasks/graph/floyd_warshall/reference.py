"""Reference of floyd_warshall: all pairs shortest paths in place, one intermediate vertex at a time."""

import numpy as np


def floyd_warshall(dist, n):
    for k in range(n):
        np.minimum(dist, dist[:, k, np.newaxis] + dist[k], out=dist)
