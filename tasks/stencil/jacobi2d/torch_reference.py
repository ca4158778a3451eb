"""jacobi2d in PyTorch."""


def jacobi2d(x, out, rows, cols):
    out.copy_(x)
    neighbours = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    out[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + neighbours)
