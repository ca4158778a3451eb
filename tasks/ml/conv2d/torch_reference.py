"""conv2d in PyTorch."""

import torch.nn.functional as F


def conv2d(image, weight, out, images, channels, filters, height, width):
    out.copy_(F.conv2d(image, weight, padding=1))
