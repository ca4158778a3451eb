"""The judge's own native programs and libraries: each is one C file of this folder, built on first use."""

from pathlib import Path

from bench.cache import cached, content_key, default_cache, processor
from bench.errors import EnvironmentFault
from bench.process import Limits, run

HERE = Path(__file__).parent
_BUILD_LIMITS = Limits(wall_s=120)


def build(source: str, suffix: str, options: tuple[str, ...]) -> Path:
    """Build one file of this folder with gcc, cached by content and processor.

    Raises:
        EnvironmentFault: gcc is missing or fails; the message holds its output.
    """
    headers = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.h")))
    key = content_key((HERE / source).read_bytes(), headers, " ".join(options), processor())

    def make(target: Path) -> None:
        done = run(["gcc", *options, "-o", str(target), str(HERE / source), "-ldl", "-lm"], limits=_BUILD_LIMITS)
        if not done.ok:
            raise EnvironmentFault(f"gcc could not build the judge's own {source}:\n{done.output}")

    return cached(default_cache() / "native", key, suffix, make)


def enclose_program() -> Path:
    """What shuts a command in where bubblewrap does not."""
    return build("enclose.c", "", ("-O2",))
