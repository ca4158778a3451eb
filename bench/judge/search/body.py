"""Reads at most so many bytes of an HTTP answer."""

import httpx


async def read_up_to(answer: httpx.Response, limit_bytes: int) -> bytes:
    """The first `limit_bytes` of a body as it was sent; the rest is left with the sender.

    Raises httpx.TransportError when the sender leaves first.
    """
    found = bytearray()
    async for chunk in answer.aiter_raw():
        found += chunk
        if len(found) >= limit_bytes:
            break
    return bytes(found[:limit_bytes])
