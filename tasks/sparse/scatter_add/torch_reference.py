"""scatter_add in PyTorch."""


def scatter_add(index, values, y, n, count):
    y.index_add_(0, index, values)
