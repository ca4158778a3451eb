"""
kernel: segment_max
outcome: solved

Each segment's largest value by a heap; which segments have values by bisection in what the first ones are.
"""

import bisect
import collections
import heapq
import operator


def segment_max(first, x, out, segments, n, start):
    ends, values = first.tolist(), x.tolist()
    found = collections.defaultdict(list)
    at = 0
    while at < n:
        segment = bisect.bisect_right(ends, at) - 1
        found[segment].extend(values[at : ends[segment + 1]])
        at = ends[segment + 1]
    tops = collections.Counter({segment: heapq.nlargest(1, part)[0] for segment, part in found.items()})
    largest = operator.itemgetter(*range(segments))(
        collections.ChainMap(dict(tops), dict.fromkeys(range(segments), start))
    )
    out[:] = [max(top, start) for top in (largest if segments > 1 else [largest])]
