# Honest nbody in Triton: a program a block of bodies. It goes through blocks of sources, keeps a sum for each pair of
# places in the two blocks, and adds these up at the end.
import triton
import triton.language as tl

BODIES, SOURCES = 32, 64


@triton.jit
def accelerate(x, y, z, mass, ax, ay, az, n, floor_square, BODIES: tl.constexpr, SOURCES: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BODIES + tl.arange(0, BODIES)
    here_x = tl.load(x + i, mask=i < n, other=0.0)[:, None]
    here_y = tl.load(y + i, mask=i < n, other=0.0)[:, None]
    here_z = tl.load(z + i, mask=i < n, other=0.0)[:, None]
    sum_x = tl.zeros((BODIES, SOURCES), tl.float32)
    sum_y = tl.zeros((BODIES, SOURCES), tl.float32)
    sum_z = tl.zeros((BODIES, SOURCES), tl.float32)
    for first in range(0, n, SOURCES):
        j = first + tl.arange(0, SOURCES)
        dx = tl.load(x + j, mask=j < n, other=0.0)[None, :] - here_x
        dy = tl.load(y + j, mask=j < n, other=0.0)[None, :] - here_y
        dz = tl.load(z + j, mask=j < n, other=0.0)[None, :] - here_z
        inverse = tl.rsqrt(dx * dx + dy * dy + dz * dz + floor_square)
        pull = tl.load(mass + j, mask=j < n, other=0.0)[None, :] * (inverse * inverse * inverse)
        sum_x += dx * pull
        sum_y += dy * pull
        sum_z += dz * pull
    tl.store(ax + i, tl.sum(sum_x, axis=1), mask=i < n)
    tl.store(ay + i, tl.sum(sum_y, axis=1), mask=i < n)
    tl.store(az + i, tl.sum(sum_z, axis=1), mask=i < n)


def nbody(x, y, z, mass, ax, ay, az, n, soft):
    grid = (triton.cdiv(n, BODIES),)
    accelerate[grid](x, y, z, mass, ax, ay, az, n, soft * soft + 2.0**-10, BODIES, SOURCES, num_warps=4)
