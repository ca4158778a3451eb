"""Rejects a library by what the loader would do with it: what it shows, needs, runs at load time and may write to."""

import ctypes
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from elftools.elf.elffile import ELFFile

from bench.build.gpu_library import Kit
from bench.build.toolchain import Trace
from bench.gates import imports
from bench.judge.schemas import Language, Outcome
from bench.verdict import Rejected

LARGEST_BYTES, MOST_SYMBOLS, MOST_RELOCATIONS = 16 << 20, 20_000, 200_000
_PAGE = 4096
_WRITE, _EXECUTE = 2, 1
# Entries of the dynamic section that make the loader call code of the library, when it loads it or lets it go.
_CALLED = ("DT_INIT", "DT_INIT_ARRAY", "DT_PREINIT_ARRAY", "DT_FINI", "DT_FINI_ARRAY")
# The same as sections of an object.
_AT_LOAD = (".init_array", ".preinit_array", ".fini_array", ".ctors", ".dtors", ".init", ".fini")
_POINTER = 8
_REDIRECTS = ("DT_RPATH", "DT_RUNPATH", "DT_AUDIT", "DT_DEPAUDIT", "DT_FILTER", "DT_AUXILIARY")
_TEXT_RELOCATIONS = 0x4  # DF_TEXTREL of DT_FLAGS
# R_X86_64_ and R_AARCH64_: 64, GLOB_DAT, JUMP_SLOT, RELATIVE, and those of thread-local data. No IRELATIVE, no COPY.
_RELOCATIONS = {
    "EM_X86_64": {1, 6, 7, 8, 16, 17, 18, 36},
    "EM_AARCH64": {257, 1025, 1026, 1027, 1028, 1029, 1030, 1031},
}
_IRELATIVE = {"EM_X86_64": 37, "EM_AARCH64": 1032}
# What stands before the address that a call or a jump of x86-64 goes to; R_AARCH64_JUMP26 and CALL26.
_CALL_BYTES, _CALL_RELOCATIONS = {b"\xe8", b"\xe9"}, {282, 283}
# Names of the runtimes of GPUs; what their compilers add goes on in small letters (`__hip_module_ctor`).
_OF_A_GPU = re.compile(r"(?:__)?(?:cuda|hip)[A-Z]\w*")
# What the linker itself adds to what a library shows.
_LINKERS = {"_init", "_fini", "_edata", "_end", "__bss_start", "_bss_end__", "__bss_end__", "__bss_start__", "__end__"}
_RUNTIMES = (
    *("libc.so.6", "libm.so.6", "libmvec.so.1", "libgomp.so.1", "libgcc_s.so.1", "libstdc++.so.6", "libgfortran.so.5"),
    *("libquadmath.so.0", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"),
)


@dataclass(frozen=True)
class Library:
    """A shared object as the loader sees it: by its segments, whatever its sections say."""

    machine: str
    shown: frozenset[str]
    chooses: bool  # which function a name means is for code of the library to say (ifunc)
    wanted: frozenset[str]
    weak: frozenset[str]  # of those wanted, what may be missing
    libraries: tuple[str, ...]
    tags: frozenset[str]
    flags: int
    init_bytes: int
    relocations: frozenset[int]
    outside: bool  # a relocation writes to what is not the library's own data
    access: tuple[int, ...]  # of each loaded segment
    stack: int | None
    code: bytes


def check(path: Path, entry: str, language: Language, kit: Kit | None = None) -> Library:
    """Look at a library that is to be loaded for its function `entry`; returns it as it was read.

    One for a GPU has a single function that runs when it is loaded: the compiler's own, which hands over device code
    (`check_object`).

    Raises:
        Rejected: (`policy`) it has code that runs when it is loaded (`init_code`), memory that can be written and run
            (`segments`), other functions to show than its entry point (`symbols`), or calls what no kernel needs
            (`imports`); (`build_failed`) it is no shared object that can be read.
    """
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise _refused("segments", f"it is larger than {LARGEST_BYTES >> 20} MiB; compute tables instead")
        with path.open("rb") as file:
            library = read(file)
    except Rejected:
        raise
    except Exception as error:  # a file that contradicts itself can bring the reader to anything
        message = f"it is no shared library that can be read ({error}); build one for this machine"
        raise Rejected(Outcome.BUILD_FAILED, "load", {"message": message}) from error
    _check_load(library, allowed=("DT_INIT_ARRAY",) if kit else ())
    if kit and library.init_bytes > _POINTER:
        raise _refused("init_code", "it has more code that runs when it is loaded than its compiler adds")
    _check_memory(library)
    _check_names(library, entry)
    # A name that no runtime has is a slip, and the loader will say so; but for a weak one, which tells where it is run.
    # That of a GPU is not loaded here.
    used = [name for name in sorted(library.wanted) if kit or name in library.weak or _is_the_runtimes(name)]
    imports.check(used, library.libraries, language, kit)
    return library


def _check_load(library: Library, allowed: Sequence[str]) -> None:
    if library.chooses or _IRELATIVE[library.machine] in library.relocations:
        raise _refused("init_code", "it chooses functions while it is loaded (ifunc); choose when it is called")
    for tag in _CALLED:
        if tag in library.tags and tag not in allowed:
            raise _refused(
                "init_code",
                f"it has code that runs when it is loaded or unloaded ({tag}): a constructor, a destructor, a global"
                " object such as those of <iostream>; do all work in the call. Link a library with -nostartfiles",
            )
    for tag in _REDIRECTS:
        if tag in library.tags:
            raise _refused("imports", f"it tells the loader where to look ({tag}); leave that out")


def _check_memory(library: Library) -> None:
    if library.stack is None or library.stack & _EXECUTE:
        raise _refused(
            "segments", "it needs a stack that can be executed: a nested function whose address is taken, or assembly"
            " without .note.GNU-stack; write a plain function"
        )  # fmt: skip
    if any(access & _WRITE and access & _EXECUTE for access in library.access):
        raise _refused("segments", "it has memory that can be written to and executed; keep code and data apart")
    if library.flags & _TEXT_RELOCATIONS or "DT_TEXTREL" in library.tags:
        raise _refused("segments", "its code is changed while it is loaded (text relocations); compile with -fPIC")
    if library.outside or not library.relocations <= _RELOCATIONS[library.machine]:
        raise _refused("segments", "it has relocations that no compiler makes; use the linker's own")


def _check_names(library: Library, entry: str) -> None:
    others = sorted(library.shown - {entry} - _LINKERS)
    if others:
        raise _refused(
            "symbols", f"it shows '{others[0]}' beside its entry point; compile with -fvisibility=hidden, and show"
            f" '{entry}' alone"
        )  # fmt: skip


def _refused(property: str, message: str) -> Rejected:
    return Rejected(Outcome.POLICY, property, {"message": message})


def check_object(path: Path, entry: str, kit: Kit | None = None) -> None:
    """Look at the object file of a submission for functions that would stand in for those of the runtimes, and, where
    it is for a GPU, for code of its own that would run when it is loaded.

    Raises:
        Rejected: (`policy`) it defines one of their names (`symbols`), or has such code (`init_code`).
    """
    with Trace.OBJECT.of(path).open("rb") as file:
        elf = ELFFile(file)
        names = set(_defined(elf)) - {entry}
        if kit and (odd := _begins_otherwise(elf, kit)):
            raise _refused(
                "init_code", f"it has code that runs when it is loaded ({odd}): a constructor, a global object with"
                " one, a function that stands in for the runtime's; do all work in the call"
            )  # fmt: skip
    for name in sorted(names):
        if _is_the_runtimes(name) or (kit and _OF_A_GPU.fullmatch(name)):
            raise _refused(
                "symbols", f"it defines '{name}', a name of the runtime libraries; rename it, or make it static"
            )  # fmt: skip


def _begins_otherwise(elf: Any, kit: Kit) -> str:
    """What of an object runs at load time beside the function with which the GPU's compiler hands over device code."""
    symbols = elf.get_section_by_name(".symtab")
    for section in elf.iter_sections():
        if section["sh_type"] not in ("SHT_RELA", "SHT_REL"):
            continue
        target = elf.get_section(section["sh_info"]).name
        if not target.startswith(_AT_LOAD):
            continue
        places = [(symbols.get_symbol(one["r_info_sym"]), one["r_addend"]) for one in section.iter_relocations()]
        function = _local_function(symbols, kit.at_load)
        if target != ".init_array" or len(places) != 1 or not function or not _is_at(*places[0], function):
            return str(target)
        if called := _calls_of_its_own(elf, symbols, function):
            return called
    return ""


def _local_function(symbols: Any, name: str) -> Any:
    """The one symbol of that name, where it is local and lies in a section; else None."""
    found = [symbol for symbol in symbols.iter_symbols() if symbol.name == name]
    is_local = len(found) == 1 and found[0]["st_info"]["bind"] == "STB_LOCAL"
    return found[0] if is_local and isinstance(found[0]["st_shndx"], int) else None


def _is_at(base: Any, addend: int, function: Any) -> bool:
    """Whether a relocation against `base` means that function."""
    return (base["st_shndx"], base["st_value"] + addend) == (function["st_shndx"], function["st_value"])


def _calls_of_its_own(elf: Any, symbols: Any, function: Any) -> str:
    """What a function calls that the object itself defines, where all of it is the runtimes' to define; else nothing.

    An author's function gets there under the name of one of theirs, by a label, an alias or a pragma.
    """
    begin, code = function["st_value"], elf.get_section(function["st_shndx"]).data()
    for section in elf.iter_sections():
        if section["sh_type"] != "SHT_RELA" or section["sh_info"] != function["st_shndx"]:
            continue
        for one in section.iter_relocations():
            at, symbol = one["r_offset"], symbols.get_symbol(one["r_info_sym"])
            is_x86 = elf["e_machine"] == "EM_X86_64"
            calls = code[at - 1 : at] in _CALL_BYTES if is_x86 else one["r_info_type"] in _CALL_RELOCATIONS
            if calls and begin <= at < begin + function["st_size"] and symbol["st_shndx"] != "SHN_UNDEF":
                return symbol.name or "a function of its own"
    return ""


def _defined(elf: Any) -> Iterator[str]:
    """Names that an object defines for others; C++'s weak ones are copies of templates and inline functions."""
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        binding, is_weak_copy = symbol["st_info"]["bind"], symbol.name.startswith("_Z")
        if symbol["st_shndx"] == "SHN_UNDEF" or binding not in ("STB_GLOBAL", "STB_WEAK", "STB_LOOS"):
            continue
        if binding == "STB_GLOBAL" or not is_weak_copy:
            yield symbol.name.partition("@")[0]


@lru_cache(maxsize=1024)
def _is_the_runtimes(name: str) -> bool:
    return any(_has(library, name) for library in _runtimes())


def _has(library: ctypes.CDLL, name: str) -> bool:
    # Not `library[name]`: of a symbol at address 0, such as the names of versions, it would crash this process.
    find = ctypes.CDLL(None).dlsym
    find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
    return find(library._handle, name.encode()) is not None


@lru_cache(maxsize=1)
def _runtimes() -> list[ctypes.CDLL]:
    found = []
    for name in _RUNTIMES:
        with suppress(OSError):  # a machine without Fortran grades none
            found.append(ctypes.CDLL(name))
    return found


def read(file: BinaryIO) -> Library:
    """Read a shared object by its program headers.

    Raises:
        ELFError, ValueError, ...: it is none, or contradicts itself.
    """
    elf = ELFFile(_without_sections(file.read()))
    if elf["e_type"] != "ET_DYN" or elf["e_machine"] not in _RELOCATIONS or elf.elfclass != 64:
        raise ValueError("not a 64-bit shared object for x86-64 or aarch64")
    segments = list(elf.iter_segments())
    loaded = [segment for segment in segments if segment["p_type"] == "PT_LOAD"]
    _check_layout(loaded)
    dynamics = [segment for segment in segments if segment["p_type"] == "PT_DYNAMIC"]
    if len(dynamics) != 1 or _file_offset(loaded, dynamics[0]["p_vaddr"]) != dynamics[0]["p_offset"]:
        raise ValueError("its dynamic section is not where the loader would look")
    dynamic: Any = dynamics[0]
    tags = list(dynamic.iter_tags())
    once = [tag.entry.d_tag for tag in tags if tag.entry.d_tag not in ("DT_NEEDED", "DT_NULL")]
    if len(once) != len(set(once)):
        raise ValueError("an entry of its dynamic section is there twice")
    relocations = list(islice(_relocations(dynamic), MOST_RELOCATIONS + 1))
    if len(relocations) > MOST_RELOCATIONS:
        raise ValueError(f"more than {MOST_RELOCATIONS} relocations")
    symbols = _symbols(dynamic, relocations)
    stack = [segment["p_flags"] for segment in segments if segment["p_type"] == "PT_GNU_STACK"]
    return Library(
        machine=elf["e_machine"],
        shown=frozenset(symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"),
        chooses=any(symbol["st_info"]["type"] == "STT_LOOS" for symbol in symbols),
        wanted=frozenset(symbol.name for symbol in symbols if symbol["st_shndx"] == "SHN_UNDEF"),
        weak=frozenset(symbol.name for symbol in symbols if symbol["st_info"]["bind"] == "STB_WEAK"),
        libraries=tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
        tags=frozenset(str(tag.entry.d_tag) for tag in tags),
        init_bytes=sum(tag.entry.d_val for tag in tags if tag.entry.d_tag == "DT_INIT_ARRAYSZ"),
        flags=sum(tag.entry.d_val for tag in tags if tag.entry.d_tag == "DT_FLAGS"),
        relocations=frozenset(kind for kind, _, _ in relocations),
        outside=any(not _is_own_data(loaded, at) for _, _, at in relocations),
        access=tuple(segment["p_flags"] for segment in loaded),
        stack=stack[-1] if stack else None,
        code=b"".join(segment.data() for segment in loaded if segment["p_flags"] & _EXECUTE),
    )


def _without_sections(content: bytes) -> BinaryIO:
    """The file as the loader reads it: section headers are for linkers, and may say anything."""
    header = bytearray(content[:64])
    header[40:48] = bytes(8)  # e_shoff
    header[60:64] = bytes(4)  # e_shnum, e_shstrndx
    return io.BytesIO(bytes(header) + content[64:])


def _check_layout(loaded: list[Any]) -> None:
    """Raises ValueError when one segment would be loaded over another: the file would not show what is there."""
    end = 0
    for segment in loaded:
        if segment["p_vaddr"] // _PAGE * _PAGE < end:
            raise ValueError("its segments lie on top of each other")
        end = -(-(segment["p_vaddr"] + segment["p_memsz"]) // _PAGE) * _PAGE


def _file_offset(loaded: list[Any], address: int) -> int | None:
    for segment in loaded:
        if segment["p_vaddr"] <= address < segment["p_vaddr"] + segment["p_filesz"]:
            return int(address - segment["p_vaddr"] + segment["p_offset"])
    return None


def _is_own_data(loaded: list[Any], address: int) -> bool:
    return any(
        segment["p_flags"] & _WRITE and segment["p_vaddr"] <= address <= segment["p_vaddr"] + segment["p_memsz"] - 8
        for segment in loaded
    )


def _relocations(dynamic: Any) -> Iterator[tuple[int, int, int]]:
    """(type, index of its symbol, address) of everything that the loader will fill in."""
    for table in dynamic.get_relocation_tables().values():
        for relocation in table.iter_relocations():
            # RELR holds nothing but relative ones, and does not say so.
            packed = "r_info" not in relocation.entry
            kind = None if packed else relocation["r_info_type"]
            yield (8 if kind is None else kind), 0 if packed else relocation["r_info_sym"], relocation["r_offset"]


def _symbols(dynamic: Any, relocations: list[tuple[int, int, int]]) -> list[Any]:
    """Every dynamic symbol with a name that the loader can find, by name or from a relocation."""
    count = max([dynamic.num_symbols(), *(index + 1 for _, index, _ in relocations)])
    if count > MOST_SYMBOLS:
        raise ValueError(f"more than {MOST_SYMBOLS} symbols")
    found = (dynamic.get_symbol(index) for index in range(1, count))
    return [symbol for symbol in found if symbol.name]
