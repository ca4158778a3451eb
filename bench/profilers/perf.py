"""perf: where a call spends its time, by samples of its instruction pointer on the processor's clock."""

import re
import tempfile
from collections import Counter
from pathlib import PurePath

from bench.judge.schemas import Preset
from bench.profilers.profiler import Counts, Place, Profiler, Recording, works
from bench.sandbox import Sandbox

# cpu-clock needs no counters of the processor, which virtual machines and containers rarely offer; user code alone,
# which is what an ordinary user may look at.
RECORD = ("perf", "record", "-q", "-e", "cpu-clock:u", "-F", "4000")
PROBE = (*RECORD, "-o", "/dev/null", "true")
REPLAY_MS = 1000
# Beside the submission: the program that calls it and the call shim (their names are hashes), the clock, the loader.
_NOT_ITS_OWN = re.compile(r"ld-linux.*|\[vdso\]|[0-9a-f]{32}(\.so)?")
# Numbers of bounded length: a submission can write into what is read here.
_AT = "[0-9a-f]{1,16}"
_MAPPED = re.compile(
    rf"PERF_RECORD_MMAP2 .*\[0x(?P<at>{_AT})\(0x{_AT}\) @ (?P<offset>0x{_AT}|0) [^]]*\]: \S+ (?P<path>.*)"
)
_SAMPLE = re.compile(rf"\s*(?P<at>{_AT}) (?P<function>.+) \((?P<object>[^()]*)\)")
_LINE = re.compile(r"(?P<file>.*):(?P<line>\d{1,9})(?: \(discriminator \d+\))?")


def lacking(sandbox: Sandbox) -> str:
    """Tried, not looked up: a wrapper may find no perf for this kernel, and a kernel may forbid it to users."""
    if works(sandbox, PROBE):
        return ""
    return (
        "perf cannot record here; on Debian: apt-get install linux-perf, "
        "and /proc/sys/kernel/perf_event_paranoid must be 2 or less"
    )


def flags() -> tuple[str, ...]:
    return ("-g",)


def command(path: str) -> list[str]:
    return [*RECORD, "-o", path, "--"]


def read(recording: Recording) -> Counts:
    """Samples of each place; samples in the loader and in the program that makes the calls are left out."""
    argv = ["perf", "script", "-i", recording.path, "-F", "ip,sym,dso", "--show-mmap-events"]
    with tempfile.TemporaryFile() as output:
        samples = parse(recording.asked(argv, output), recording.library.name)
    addresses = sorted({at for _, _, at in samples if at is not None})
    lines = dict(zip(addresses, _lines(recording, addresses), strict=False))
    counts: Counter[Place] = Counter()
    for (function, object_name, at), count in samples.items():
        file, line = lines.get(at, ("", 0)) if at is not None else ("", 0)
        counts[Place(function, object_name, file, line)] += count
    return dict(counts)


def parse(said: str, library: str) -> Counter[tuple[str, str, int | None]]:
    """Samples by function, object and, inside `library`, address in its file, from the words of `perf script`."""
    found: Counter[tuple[str, str, int | None]] = Counter()
    base = None
    for text in said.splitlines():
        if mapped := _MAPPED.fullmatch(text):
            if PurePath(mapped["path"]).name == library:
                base = int(mapped["at"], 16) - int(mapped["offset"], 0)
        elif sample := _SAMPLE.fullmatch(text):
            name = PurePath(sample["object"]).name
            if not _NOT_ITS_OWN.fullmatch(name):
                at = int(sample["at"], 16)
                own = name == library and base is not None and at >= base
                found[sample["function"], name, at - (base or 0) if own else None] += 1
    return found


def _lines(recording: Recording, addresses: list[int]) -> list[tuple[str, int]]:
    """File name and line of each address of the library; ("", 0) where its debug information says nothing."""
    if not addresses:
        return []
    argv = ["addr2line", "-e", str(recording.library), *map(hex, addresses)]
    with tempfile.TemporaryFile() as output:
        said = recording.asked(argv, output).splitlines()
    found = [_LINE.fullmatch(text) for text in said]
    return [(PurePath(match["file"]).name, int(match["line"])) if match else ("", 0) for match in found]


PROFILER = Profiler(
    unit="samples",
    preset=Preset.M,
    replay_ms=REPLAY_MS,
    sealed=True,
    variables={},
    flags=flags,
    lacking=lacking,
    command=command,
    read=read,
)
