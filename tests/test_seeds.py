"""The seed tree: HKDF as published, independent streams, a secret file that only its owner reads."""

import hashlib
import hmac
import stat
from itertools import product
from pathlib import Path

import pytest

from bench import seeds
from bench.errors import JudgeFault

ROOT = bytes(range(32))


def published_hkdf(key: bytes, info: bytes, length: int, salt: bytes = b"") -> bytes:
    """RFC 5869, in full."""
    extracted = hmac.new(salt or bytes(32), key, hashlib.sha256).digest()
    block, out, counter = b"", b"", 0
    while len(out) < length:
        counter += 1
        block = hmac.new(extracted, block + info + bytes([counter]), hashlib.sha256).digest()
        out += block
    return out[:length]


def test_hkdf_gives_the_published_vector() -> None:
    # Test case 3 of RFC 5869: no salt, no info. Its first block is all that one seed takes.
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    assert seeds.hkdf(b"\x0b" * 22, "").hex() == expected
    assert published_hkdf(b"\x0b" * 22, b"", 42).hex().startswith(expected)


@pytest.mark.parametrize("info", ["", "request|a.n0.p1.w2|id", "timed|i0|x", "ü" * 40], ids=len)
@pytest.mark.parametrize("length", [1, 16, 32])
def test_hkdf_is_the_published_one(info: str, length: int) -> None:
    assert seeds.hkdf(ROOT, info, length) == published_hkdf(ROOT, info.encode(), length)


def test_no_two_uses_share_a_stream() -> None:
    requests = [seeds.request_seed(ROOT, episode, grade) for episode, grade in product("ab", ("1", "2", "12"))]
    uses = product(requests, ("verify", "held", "timed"), ("f0", "f1", "i0.1"), ("x", "y", "sizes"))
    keys = [seeds.stream_key(seed, stage, call, use) for seed, stage, call, use in uses]
    assert len(set(keys)) == len(keys) == 6 * 27
    words = [word for key in keys for word in key]
    assert len(set(words)) == len(words)


def test_the_same_use_gives_the_same_stream() -> None:
    assert seeds.stream_key(ROOT, "timed", "i0", "x") == seeds.stream_key(bytes(ROOT), "timed", "i0", "x")
    assert seeds.request_seed(ROOT, "a", "1") == seeds.request_seed(ROOT, "a", "1")
    assert seeds.new_root() != seeds.new_root()


def test_a_commitment_binds_a_seed_and_hides_it() -> None:
    assert seeds.commitment(ROOT) == hashlib.sha256(ROOT).hexdigest()
    assert ROOT.hex() not in seeds.commitment(ROOT)


def test_the_secret_file_is_its_owners_and_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "root.secret"
    seeds.write_root(path, ROOT)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert seeds.read_root(path) == ROOT
    with pytest.raises(FileExistsError):
        seeds.write_root(path, ROOT)


@pytest.mark.parametrize("content", [None, "", "abcd", "not hex" * 8, "é" * 64], ids=repr)
def test_a_file_without_a_secret_is_refused_by_name(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "root.secret"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(JudgeFault, match=r"root\.secret: .*secret"):
        seeds.read_root(path)
