# Honest conv2d in Triton: a matrix product of the weights, a row a filter, with a matrix that is never made: of each
# point its neighbours in all channels. A program computes some filters at some points; no TF32.
import triton
import triton.language as tl

FILTERS, POINTS, DEPTH = 64, 128, 16


@triton.jit
def convolve(
    image, weight, out, images, channels, filters, height, width,
    FILTERS: tl.constexpr, POINTS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    size, depth = tl.cast(height, tl.int64) * width, channels * 9
    across = tl.cdiv(filters, FILTERS)
    f = (tl.program_id(0) % across * FILTERS + tl.arange(0, FILTERS)).to(tl.int64)[:, None]
    point = ((tl.program_id(0) // across).to(tl.int64) * POINTS + tl.arange(0, POINTS))[None, :]
    of, place = point // size, point % size
    y, x = place // width, place % width
    total = tl.zeros((FILTERS, POINTS), tl.float32)
    for first in range(0, depth, DEPTH):
        along, down = first + tl.arange(0, DEPTH)[None, :], first + tl.arange(0, DEPTH)[:, None]
        factor = tl.load(weight + f * depth + along, mask=(f < filters) & (along < depth), other=0.0)
        c, from_y, from_x = down // 9, y + down % 9 // 3 - 1, x + down % 3 - 1
        inside = (down < depth) & (of < images) & (from_y >= 0) & (from_y < height) & (from_x >= 0) & (from_x < width)
        value = tl.load(image + (of * channels + c) * size + from_y * width + from_x, mask=inside, other=0.0)
        total = tl.dot(factor, value, total, input_precision="ieee")
    tl.store(out + (of * filters + f) * size + place, total, mask=(f < filters) & (of < images))


def conv2d(image, weight, out, images, channels, filters, height, width):
    grid = (triton.cdiv(filters, FILTERS) * triton.cdiv(images * height * width, POINTS),)
    convolve[grid](image, weight, out, images, channels, filters, height, width, FILTERS, POINTS, DEPTH, num_warps=8)
