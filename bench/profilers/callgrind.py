"""callgrind: instructions that a call executes, by function and line; the same number at every run."""

import re
from collections import Counter
from functools import lru_cache
from pathlib import PurePath

from bench.cache import processor
from bench.judge.schemas import Preset
from bench.profilers.profiler import Counts, Place, Profiler, Recording, works
from bench.sandbox import Sandbox

# Collected between a call and its return; what the call shim itself executes is left out when the file is read.
ENTRY = "kc_invoke"
PROBE = ("valgrind", "--tool=callgrind", "--version")
# Numbers of bounded length: a submission can write into this file.
_COST = re.compile(r"(?P<line>\d{1,9}) (?P<count>\d{1,18})")


def lacking(sandbox: Sandbox) -> str:
    if works(sandbox, PROBE):
        return ""
    return "callgrind needs valgrind, which was not found; on Debian: apt-get install valgrind"


@lru_cache(maxsize=1)
def flags() -> tuple[str, ...]:
    """valgrind knows no instructions beyond AVX2: where the processor has more, it must not get them."""
    found = re.search(r"^flags\s*:(.*)$", processor(), re.M)
    if not found:  # not x86
        return ("-g",)
    has_avx2 = {"avx2", "fma", "bmi2", "movbe"} <= set(found[1].split())
    return ("-g", "-march=x86-64-v3" if has_avx2 else "-march=x86-64")


def command(path: str) -> list[str]:
    options = [f"--callgrind-out-file={path}", f"--toggle-collect={ENTRY}", "--vgdb=no"]
    return ["valgrind", "--quiet", "--tool=callgrind", *options, "--compress-strings=no", "--compress-pos=no"]


def read(recording: Recording) -> Counts:
    """Own cost of each place, from the text that callgrind writes (its format 1, without compression)."""
    counts: Counter[Place] = Counter()
    object_name = function = file = ""
    skip = False
    for text in recording.text().splitlines():
        key, equals, value = text.partition("=")
        if skip:  # the cost of a call, which is counted where it arises
            skip = False
        elif cost := _COST.fullmatch(text):
            if function != ENTRY:
                counts[Place(function, object_name, file, int(cost["line"]))] += int(cost["count"])
        elif equals and key == "ob":
            object_name = PurePath(value).name
        elif equals and key in ("fl", "fi", "fe"):
            file = PurePath(value).name
        elif equals and key == "fn":
            function = value
        elif equals and key == "calls":
            skip = True
    return dict(counts)


PROFILER = Profiler(
    unit="instructions",
    preset=Preset.S,
    replay_ms=0,
    sealed=False,  # the filter would end valgrind, which opens files and makes code executable
    variables={"OMP_NUM_THREADS": "1"},  # other threads' instructions would not be collected
    flags=flags,
    lacking=lacking,
    command=command,
    read=read,
)
