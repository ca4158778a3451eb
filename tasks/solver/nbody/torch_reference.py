"""nbody in PyTorch: all pairs as matrices, row i for the body that is pulled."""


def nbody(x, y, z, mass, ax, ay, az, n, soft):
    dx, dy, dz = (at[None, :] - at[:, None] for at in (x, y, z))
    square = dx * dx + dy * dy + dz * dz + (soft * soft + 2.0**-10)
    pull = mass / (square * square.sqrt())
    for d, a in ((dx, ax), (dy, ay), (dz, az)):
        a.copy_((d * pull).sum(dim=1))
