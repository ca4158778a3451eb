"""The seed tree: one root secret a job, from which every random draw of every grade is derived (HKDF-SHA256)."""

import hashlib
import hmac
import secrets
from functools import lru_cache
from pathlib import Path

from bench.errors import ConfigError, JudgeFault
from bench.judge.schemas import SECRET_BYTES, read_secret


def new_root() -> bytes:
    """A fresh job secret of 32 bytes."""
    return secrets.token_bytes(SECRET_BYTES)


def read_root(path: Path) -> bytes:
    """The job secret in `path` (hex text).

    Raises:
        JudgeFault: the file is missing or does not hold a secret.
    """
    try:
        return read_secret(path)
    except ConfigError as error:
        raise JudgeFault(f"{error}; the job writes it before a judge starts") from error


def write_root(path: Path, root: bytes) -> None:
    """Store the job secret as hex text, readable by the owner alone."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(root.hex(), encoding="ascii")


def hkdf(key: bytes, info: str, length: int = SECRET_BYTES) -> bytes:
    """HKDF-SHA256 of RFC 5869 with an empty salt; `length` at most 32 bytes (one block)."""
    return hmac.digest(_extracted(key), info.encode() + b"\x01", "sha256")[:length]


@lru_cache(maxsize=64)
def _extracted(key: bytes) -> bytes:
    """HKDF's first half; a grade derives hundreds of streams from one key."""
    return hmac.digest(bytes(SECRET_BYTES), key, "sha256")


def request_seed(root: bytes, episode: str, grade_id: str) -> bytes:
    """Seed of one request: what the `reveals` table publishes after the job, and the root of `stream_key`."""
    return hkdf(root, f"request|{episode}|{grade_id}")


def profile_seed(root: bytes | None, episode: str) -> bytes:
    """Seed of all profiles of an episode: the same inputs, so that counts compare, and none that a grade has."""
    return request_seed(root or bytes(SECRET_BYTES), episode, "profile")


def stream_key(seed: bytes, stage: str, call: int | str, use: str = "") -> tuple[int, int]:
    """Philox key (two 64-bit words) of one use (an argument's name, "sizes", "order") in one call of one stage."""
    block = hkdf(seed, f"{stage}|{call}|{use}", 16)
    return int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")


def commitment(seed: bytes) -> str:
    """sha256 (hex) of a request's seed: stored with the grade before the seed is revealed."""
    return hashlib.sha256(seed).hexdigest()
