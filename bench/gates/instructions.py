"""Rejects machine code that makes system calls by itself, past the C library: a disassembly decides."""

import platform
import re
from pathlib import Path

from bench.errors import EnvironmentFault
from bench.judge.schemas import Outcome
from bench.process import Limits
from bench.sandbox import Sandbox
from bench.verdict import Rejected

_BYTES = {"x86_64": (b"\x0f\x05", b"\x0f\x34", b"\xcd\x80")}
_DISASSEMBLED = re.compile(r"^\s*[0-9a-f]+:\s+(syscall|sysenter|int\s+\$0x80)\b", re.MULTILINE)
_LIMITS = Limits(wall_s=60, cpu_s=30, file_bytes=1 << 30)
_FILE = "instructions.bin"


def check(sandbox: Sandbox, folder: Path, code: bytes) -> int:
    """Look for system calls in the executable bytes of a library.

    Returns:
        How many times the bytes of such an instruction lie within others, where a disassembly does not show them: by
        chance, as a rule. What jumps there is still behind the filter.

    Raises:
        Rejected: (`policy`) one of them is an instruction.
        EnvironmentFault: binutils' objdump is missing.
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
    # Only the lines in question: a disassembly is twenty times as long as its code.
    shown = (
        f"objdump -D -b binary -m i386:x86-64 --no-show-raw-insn {_FILE} | grep -m 1 -wE 'syscall|sysenter|int +.0x80'"
    )
    done = sandbox.run(["sh", "-c", shown], _LIMITS, folder)
    (folder / _FILE).unlink()
    if "objdump:" in done.output or "not found" in done.output:
        raise EnvironmentFault(f"objdump failed ({done.output.strip()[-200:]}); on Debian: apt-get install binutils")
    matched = _DISASSEMBLED.search(done.output)
    return matched[1] if matched else ""
