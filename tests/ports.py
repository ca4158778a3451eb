"""Ports of loopback for servers that a test starts in other processes."""

import contextlib
import socket
from collections.abc import Iterator

BLOCK = 100
# Below the range that the system itself hands out, where any connection of any process may take a port meanwhile.
BLOCKS = range(12000, 32000, BLOCK)


def _ports() -> Iterator[int]:
    """Free ports of blocks that no other test process of this machine has while this one lives."""
    claims = []
    for first in BLOCKS:
        claim = socket.socket(socket.AF_UNIX)
        claims.append(claim)
        with contextlib.suppress(OSError):
            claim.bind(f"\0kernelcourt-test-ports-{first}")
            yield from filter(_is_free, range(first, first + BLOCK))


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


_PORTS = _ports()


def free_port() -> int:
    return free_ports(1)


def free_ports(count: int) -> int:
    """First of `count` consecutive ports; none of them is given twice."""
    found = [next(_PORTS)]
    while len(found) < count:
        port = next(_PORTS)
        found = [*found, port] if port == found[-1] + 1 else [port]
    return found[0]
