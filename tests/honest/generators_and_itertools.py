"""
kernel: prefix_sum
outcome: solved

The running sum through generators, itertools.accumulate, chunks by islice, and a generator that is sent values.
"""

import itertools

CHUNK = 1000


def chunks(values):
    values = iter(values)
    while chunk := list(itertools.islice(values, CHUNK)):
        yield chunk


def running():
    total = 0.0
    while True:
        chunk = yield total
        total += sum(chunk)


def prefix_sum(x, out, n):
    before = running()
    next(before)
    at, start = 0, 0.0
    for chunk in chunks(x.tolist()):
        sums = itertools.accumulate(chunk, initial=start)
        out[at : at + len(chunk)] = list(itertools.chain.from_iterable(zip(itertools.islice(sums, 1, None))))
        at, start = at + len(chunk), before.send(chunk)
    before.close()
