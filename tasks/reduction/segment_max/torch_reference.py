"""segment_max in PyTorch: every value goes to its segment's place."""

import torch


def segment_max(first, x, out, segments, n, start):
    places = torch.arange(segments, device=x.device)
    segment = torch.repeat_interleave(places, first.diff(), output_size=n)
    out.fill_(start).scatter_reduce_(0, segment, x, reduce="amax")
