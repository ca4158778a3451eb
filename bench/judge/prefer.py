"""What the header `Prefer` of a request asks for (RFC 7240): an answer later, and how long to wait before that."""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Preference(NamedTuple):
    """`later`: 202 instead of a long wait (`respond-async`); `wait_s`: how long an answer is waited for before that."""

    later: bool
    wait_s: int


def preference(fields: Iterable[str]) -> Preference:
    """Read every `Prefer` field of a request; what is not known, or malformed, is no preference."""
    found: dict[str, str] = {}
    for part in ",".join(fields).split(","):
        name, _, value = part.partition(";")[0].partition("=")
        found.setdefault(name.strip().lower(), value.strip().strip('"'))
    wait = found.get("wait", "")
    return Preference("respond-async" in found, int(wait) if re.fullmatch("[0-9]{1,9}", wait) else 0)
