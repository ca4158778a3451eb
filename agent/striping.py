"""Which rank or replica serves what: the one rule."""


def striped(index: int, count: int) -> int:
    """Which of `count` ranks or replicas serves what has this global index: each in turn."""
    return index % count
