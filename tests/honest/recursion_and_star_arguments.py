"""
kernel: gauss_seidel2d
outcome: solved

A recursion over rows, keyword-only and positional-only parameters, a default that is a list, nonlocal and global.
"""

CALLS = 0


def gauss_seidel2d(f, u, rows, cols):
    global CALLS
    CALLS += 1
    grid = [[0.0] * (cols + 2), *([0.0, *row, 0.0] for row in u.tolist()), [0.0] * (cols + 2)]
    known = f.tolist()
    west = 0.0

    def point(north, east, south, /, *, force):
        nonlocal west
        west = 0.25 * (north + west + east + south + force)
        return west

    def sweep(i, done=()):
        nonlocal west
        if i > rows:
            return done
        west, above, here, below = 0.0, *grid[i - 1 : i + 2]
        for j in range(1, cols + 1):
            here[j] = point(above[j], here[j + 1], below[j], force=known[i - 1][j - 1])
        return sweep(i + 1, (*done, i))

    assert len(sweep(1)) == rows
    u[...] = [row[1:-1] for row in grid[1:-1]]
