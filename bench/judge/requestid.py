"""Request ids: one word that finds a request in the logs of router and judge."""

import re
import secrets
from collections.abc import Iterable

from bench.judge.schemas import HEADER_REQUEST_ID

ID_HEADER = HEADER_REQUEST_ID.lower().encode()
_ID = re.compile(rb"[\w.-]{1,128}")


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The id that the request brings, or a new one where it brings none that a log line can carry."""
    for name, value in headers:
        if name == ID_HEADER and _ID.fullmatch(value):
            return value
    return secrets.token_hex(8).encode()
