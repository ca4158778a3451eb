"""Rejects machine code that makes system calls by itself, past the C library: a disassembly decides."""

import platform
import re
from pathlib import Path

from bench.errors import EnvironmentFault, JudgeFault
from bench.judge.schemas import Outcome
from bench.process import Limits
from bench.sandbox import Sandbox
from bench.verdict import Rejected

_BYTES = {"x86_64": (b"\x0f\x05", b"\x0f\x34", b"\xcd\x80")}
_DISASSEMBLED = re.compile(r"^\s*[0-9a-f]+:\s+(syscall|sysenter|int\s+\$0x80)\b", re.MULTILINE)
_LIMITS = Limits(wall_s=240, cpu_s=200, file_bytes=1 << 30)
_FILE = "instructions.bin"


def check(sandbox: Sandbox, folder: Path, code: bytes) -> int:
    """Look for system calls in the executable bytes of a library.

    Returns:
        How many times the bytes of such an instruction lie within others, where a disassembly does not show them: by
        chance, as a rule. What jumps there is still behind the filter.

    Raises:
        Rejected: (`policy`) one of them is an instruction.
        EnvironmentFault: binutils' objdump is missing.
        JudgeFault: it was killed.
    """
    if platform.machine() == "aarch64":
        _check_words(code)
        return 0
    found = sum(code.count(pattern) for pattern in _BYTES.get(platform.machine(), ()))
    if found and (name := _disassembled(sandbox, folder, code)):
        raise _rejected(name)
    return found


def _check_words(code: bytes) -> None:
    """`svc` of aarch64: instructions are whole words there."""
    words = memoryview(code[: len(code) // 4 * 4]).cast("I")
    if any(word & 0xFFE0001F == 0xD4000001 for word in words):
        raise _rejected("svc")


def _rejected(name: str) -> Rejected:
    message = f"it holds the instruction '{name}': a kernel makes no system calls of its own"
    return Rejected(Outcome.POLICY, "instructions", {"message": message})


def _disassembled(sandbox: Sandbox, folder: Path, code: bytes) -> str:
    """The first system call that a disassembly shows, or nothing."""
    (folder / _FILE).write_bytes(code)
    # Only the lines in question, and how it ended: a disassembly is twenty times as long as its code.
    objdump = f"objdump -D -b binary -m i386:x86-64 --no-show-raw-insn {_FILE}"
    shown = f"{{ {objdump}; echo ended: $?; }} | grep -wE 'syscall|sysenter|int +.0x80|^ended: [0-9]+' | tail -n 9"
    done = sandbox.run(["sh", "-c", shown], _LIMITS, folder)
    (folder / _FILE).unlink()
    if "ended: 127" in done.output:
        raise EnvironmentFault("objdump was not found; on Debian: apt-get install binutils")
    if "ended: 0" not in done.output:
        raise JudgeFault(f"a disassembly did not come to its end ({done.output.strip()[-200:]}); grade again")
    matched = _DISASSEMBLED.search(done.output)
    return " ".join(matched[1].split()) if matched else ""
