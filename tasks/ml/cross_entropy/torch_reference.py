"""cross_entropy in PyTorch."""

import torch.nn.functional as F


def cross_entropy(logits, label, loss, rows, classes):
    loss.copy_(F.cross_entropy(logits, label.long(), reduction="none"))
