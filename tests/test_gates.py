"""What is refused before anything of it runs: by its text, its build's traces, its library, and what it calls."""

import io
import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import run_program
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import (
    AXPY,
    HONEST_C,
    HONEST_CPP,
    HONEST_FORTRAN,
    HONEST_HIP,
    HONEST_PYTHON,
    LANGUAGES,
    LOOP,
    NEEDS_GFORTRAN,
    axpy_c,
    axpy_py,
    court,
    graded,
    on_load,
    order,
)

from bench.errors import EnvironmentFault
from bench.gates import artifacts, binary, imports, instructions, origins, text
from bench.gates.text import code_only
from bench.judge.schemas import Language, Outcome
from bench.sandbox import Level, Sandbox, scratch_folder
from bench.task import find_task, select
from bench.verdict import Rejected

C, CPP, FORTRAN, PYTHON, HIP = Language.C, Language.CPP, Language.FORTRAN, Language.PYTHON, Language.HIP
BOTH_C = (C, CPP)
NOT_LOADED = (Outcome.BUILD_FAILED, "load")
ON_X86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="written for x86-64")


def axpy(body: str = LOOP, before: str = "", attributes: str = "") -> str:
    """C source of an axpy that includes little, and so is built fast."""
    return f"#include <stdint.h>\n{before}\n{attributes} {AXPY} {{ {body} }}\n"


def axpy_cpp(before: str = "", attributes: str = "", body: str = LOOP) -> str:
    return f'#include <cstdint>\n{before}\nextern "C" {attributes} {AXPY} {{ {body} }}\n'


# What the gates may note of anything: such bytes lie within other instructions, too.
BY_CHANCE = {"system_call_bytes"}
HONEST = {C: HONEST_C, CPP: HONEST_CPP, FORTRAN: HONEST_FORTRAN, PYTHON: HONEST_PYTHON, HIP: HONEST_HIP}
HONEST |= {Language.CUDA: HONEST_HIP.replace("hip", "cuda"), Language.TRITON: HONEST_PYTHON}


def made(source: str | None, language: Language = C, **changes: Any) -> dict[str, Any]:
    """What the gates note of a submission to axpy that they let pass."""
    with scratch_folder() as folder:
        return artifacts.make(court().sandbox, folder, find_task("axpy"), order(source, language, **changes))[1]


def rejection(check: Callable[..., object], *arguments: Any, **changes: Any) -> Rejected:
    """How something is rejected, which says what to do about it."""
    with pytest.raises(Rejected) as rejected:
        check(*arguments, **changes)
    assert rejected.value.detail["message"]
    return rejected.value


def said(check: Callable[..., object], *arguments: Any) -> str:
    return str(rejection(check, *arguments).detail["message"])


def what(rejected: Rejected) -> tuple[Outcome, str]:
    return rejected.outcome, rejected.property


def policy(property: str) -> tuple[Outcome, str]:
    return Outcome.POLICY, property


# Text

HIDING = {
    "null": "\0",
    "bell": "\a",
    "backspace": "\b",
    "escape": "\x1b",
    "delete": "\x7f",
    "carriage return within a line": "\rx",
    "next line": "\x85",
    "soft hyphen": "\u00ad",
    "zero width space": "\u200b",
    "zero width no-break space within": "a\ufeffb",
    "word joiner": "\u2060",
    "right-to-left mark": "\u200f",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "right-to-left override": "\u202e",
    "isolate": "\u2067",
    "invisible plus": "\u2064",
    "byte order mark": "\ufeff",
    "private": "\ue000",
    "what was no UTF-8": "\udcff",
    "tag": "\U000e0041",
}
PLACES = {
    C: ("// {}\n", "/* {} */\n", 'static const char *s = "{}";\n', "int {};\n"),
    CPP: ("// {}\n", 'auto s = R"({})";\n', "auto c = '{}';\n", "int {};\n"),
    HIP: ("// {}\n", 'auto s = R"({})";\n', "__constant__ char c = '{}';\n", "int {};\n"),
    FORTRAN: ("! {}\n", "print *, '{}'\n", 'print *, "{}"\n', "{} = 1\n"),
    PYTHON: ("# {}\n", "s = '{}'\n", '"""\n{}"""\n', "{} = 1\n"),
}
PLACES |= {Language.CUDA: PLACES[HIP], Language.TRITON: PLACES[PYTHON]}


@pytest.mark.parametrize("character", HIDING)
@pytest.mark.parametrize("language", Language)
def test_what_nobody_sees_may_stand_nowhere(language: Language, character: str) -> None:
    for place in PLACES[language]:
        words = said(text.check, f"\n{place}".format(HIDING[character]), language)
        assert re.match(r"line [23] holds the character U\+[0-9A-F]{4,6}, .*; take it out", words)


@pytest.mark.parametrize("language", Language)
def test_lines_may_end_as_they_do_elsewhere_and_tabs_and_form_feeds_stand_between(language: Language) -> None:
    honest = HONEST[language]
    text.check(honest.replace("\n", "\r\n"), language)
    text.check(f"\t\n\f\n\v\n{honest}\n\t", language)


OTHER_SCRIPTS = "é日本語🙂👩\u200d🔬 क्\u200dष \u0378"
WELCOME = {
    "a comment": (BOTH_C, "// {}\n"),
    "a comment in a line": (BOTH_C, "int /* {} */ n;\n"),
    "a comment of lines": (BOTH_C, "/* don't\n{}\n*/\n"),
    "a comment that a backslash goes on with": (BOTH_C, "// a \\\n{}\n"),
    "a string": (BOTH_C, 'const char *s = "{}";\n'),
    "a string with quotes": (BOTH_C, 'const char *s = "\\"{}\\\\";\n'),
    "a string of two lines": (BOTH_C, 'const char *s = "a\\\n{}";\n'),
    "a wide character": (BOTH_C, "int c = L'{}';\n"),
    "a raw string": (BOTH_C, 'const char *s = R"({})";\n'),
    "a raw string of lines with quotes": (BOTH_C, 'const char *s = u8R"x(")" /* \n{} )x";\n'),
    "a comment behind thousands": ((CPP,), "int n = 1'000'000; // {}\n"),
    "a comment behind an odd apostrophe": (BOTH_C, "#if 0\n#error don't\n#endif\n// {}\n"),
    "a comment of Fortran": ((FORTRAN,), "x = 1 ! don't {}\n"),
    "a string of Fortran": ((FORTRAN,), "print *, 'it''s {}', \"{}\"\n"),
    "a string that goes on": ((FORTRAN,), "print *, 'a &\n  ! don''t\n  &{}'\n"),
    "a comment of Python": ((PYTHON,), "x = 1  # {}\n"),
    "a string of Python": ((PYTHON,), "x = '{}' + f'{}'\n"),
    "a docstring": ((PYTHON,), '"""First line.\n\n{}\n"""\n'),
}
CODE = {
    "a name": (BOTH_C, "int {};\n"),
    "a macro": (BOTH_C, "#define {} 1\n"),
    "a space": (BOTH_C, "int\u00a0n;\n"),
    "what follows a string": (BOTH_C, '"\\"", {}\n'),
    "what follows a raw string": (BOTH_C, 'R"(")", {}\n'),
    "what follows an apostrophe and a comment": (BOTH_C, "#if 0\ndon't /*\n#endif\nint {}; /* */\n"),
    "a name of Fortran": ((FORTRAN,), "{} = 1\n"),
    "what follows a string of Fortran": ((FORTRAN,), "print *, 'it''s', {}\n"),
    "a name of Python": ((PYTHON,), "{} = 1\n"),
    "a name with a joiner": (BOTH_C, "int a\u200db;\n"),
    "an argument": ((PYTHON,), "def axpy(x, y, out, n, \u0430):\n    pass\n"),
}


@pytest.mark.parametrize("where", WELCOME)
def test_other_scripts_are_welcome_in(where: str) -> None:
    languages, source = WELCOME[where]
    for language in languages:
        text.check(source.replace("{}", OTHER_SCRIPTS), language)


@pytest.mark.parametrize("where", CODE)
def test_code_is_ascii_alone_also_in(where: str) -> None:
    languages, source = CODE[where]
    for language in languages:
        words = said(text.check, source.replace("{}", "\u00e9"), language)
        assert "in its code; outside comments and literals write ASCII alone" in words


def test_a_lookalike_is_named_with_its_line() -> None:
    words = said(text.check, "int a;\nint \u0430;\n", C)
    assert words.startswith("line 2 has '\u0430' (CYRILLIC SMALL LETTER A) in its code")


LINES = {
    "plainly": '#line 1 "x.h"',
    "with spaces": '  #  line 1 "x.h"',
    "with tabs and form feeds": '\t#\f\vline\t1 "x.h"',
    "as a digraph": '%:line 1 "x.h"',
    "as a trigraph": '??=line 1 "x.h"',
    "as the preprocessor marks it": '# 1 "x.h"',
    "without a space": "#1",
    "in the middle of the word": '#li\\\nne 1 "x.h"',
    "behind a backslash": '#\\\nline 1 "x.h"',
    "behind a backslash and spaces": '#\\  \nline 1 "x.h"',
    "behind a backslash and a form feed": '#\\\f\nline 1 "x.h"',
    "behind a backslash and CR LF": '#\\\r\nline 1 "x.h"',
    "in a digraph of two lines": '%\\\n:line 1 "x.h"',
    "behind a comment": '/* a */ # /* b */ line 1 "x.h"',
    "behind a comment of two lines": '#/*\n*/line 1 "x.h"',
    "behind a comment that ends there": '/* a\n*/ #line 1 "x.h"',
    "behind a raw string": 'const char *s = R"(\n"/*\n)";\n#line 1 "x.h" // */',
    "behind an odd apostrophe": '#if 0\ndon\'t /*\n#endif\n#line 1 "x.h" /* */',
}
NO_LINES = {
    "a comment": '// #line 1 "x.h"\n/*\n#line 1 "x.h"\n*/',
    "a comment that goes on": '// a \\\n#line 1 "x.h"',
    "a string": 'const char *s = "\\\n#line 1";',
    "a raw string": 'const char *s = R"(\n#line 1 "x.h"\n# 1 "x.h"\n)";',
    "a macro's argument as text": "#define TEXT(line) #line",
    "a macro's argument as text in a second line": "#define TEXT(line) \\\n  #line",
    "a macro's argument as text behind a comment": "#define TEXT(line) /*\n*/ #line",
    "a name": "#define line 3\nint lines[line];",
    "another directive": "#lineage\n#if 1 // # 1\n#endif",
}


@pytest.mark.parametrize("how", LINES)
def test_no_line_may_pass_for_another_files(how: str) -> None:
    for language in BOTH_C:
        rejected = rejection(text.check, LINES[how], language)
        assert what(rejected) == policy("text") and "sets line numbers" in rejected.detail["message"]


def test_a_line_directive_is_found_where_it_stands() -> None:
    source = 'int a\\\n;\n/*\n*/\n#line 1 "x.h"\n'
    assert said(text.check, source, C).startswith("line 5 sets line numbers")


@pytest.mark.parametrize(
    "torn",
    ["/* a *\\\n/ int \u00e9; /* */", "/\\\n/ a\n", "/\\\n* a */\n", 'int nu\\\nR"(" /*)";\n', "int nu\\\n'0'0'';\n"],
)
def test_a_comment_or_a_literal_begins_and_ends_on_one_line(torn: str) -> None:
    for language in BOTH_C:
        assert what(rejection(text.check, torn, language)) == policy("text")


@pytest.mark.parametrize("where", NO_LINES)
def test_the_word_line_may_stand_in(where: str) -> None:
    for language in BOTH_C:
        text.check(NO_LINES[where], language)


@pytest.mark.parametrize("line", ["include 'x'", '  INCLUDE "x"', "\tinclude'x'", "!$ include 'x'", "Include c_'x'"])
def test_fortran_includes_nothing(line: str) -> None:
    source = HONEST_FORTRAN.replace("  implicit none", f"  implicit none\n{line}")
    rejected = rejection(text.check, source, FORTRAN)
    assert what(rejected) == policy("include") and rejected.detail["message"].startswith("line 4 includes a file")


@pytest.mark.parametrize("line", ["! include 'x'", "include = 1", "call include('x')", "print *, 'include' ! 'x'"])
def test_include_is_a_name_like_any_other_in_fortran(line: str) -> None:
    text.check(f"{line}\n", FORTRAN)


@pytest.mark.parametrize("language", [PYTHON, Language.TRITON])
@pytest.mark.parametrize("first", ["", "#!/usr/bin/python\n"])
@pytest.mark.parametrize("encoding", ["utf-7", "raw_unicode_escape", "latin-1", "utf-8-sig", "rot13"])
def test_python_is_read_as_it_is_run(language: Language, first: str, encoding: str) -> None:
    source = f"{first}# -*- coding: {encoding} -*-\n# +AAo-import os\n"
    assert what(rejection(text.check, source, language)) == policy("text")


def test_python_may_say_that_it_is_utf_8() -> None:
    for said in ("# -*- coding: utf-8 -*-", "# vim: set fileencoding=UTF-8 :", "#coding:utf8", "x = 1\n\n# coding: a"):
        text.check(f"{said}\nx = 1\n", PYTHON)


SNIPPETS = st.sampled_from(
    [*"/*\"'\\\n\r\t R()!&#é1ax{}?", "//", "/*", "*/", '"', "'", 'R"x(', ')x"', "\\\n", "'''", '"""', "1'0", "#line 1"]
)
PIECES = st.lists(SNIPPETS, max_size=40).map("".join)


@given(PIECES | st.text(max_size=60))
def test_what_is_left_of_a_source_is_as_long_as_it_was(source: str) -> None:
    for language in (C, CPP, FORTRAN):
        left = code_only(source, language)
        assert [len(line) for line in left.split("\n")] == [len(line) for line in source.split("\n")]
        assert all(kept in (" ", was) for kept, was in zip(left, source, strict=True))
    left = code_only(source, PYTHON)
    assert len(left) <= len(source) and left.count("\n") <= source.count("\n")


@given(PIECES | st.text(max_size=60))
def test_no_text_is_too_odd_to_be_looked_at(source: str) -> None:
    for language in Language:
        try:
            text.check(source, language)
        except Rejected as rejected:
            assert rejected.outcome is Outcome.POLICY and rejected.property in ("text", "include")


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"], exclude_characters="\\*/\"'()&"), max_size=40))
def test_comments_and_strings_hold_any_text(words: str) -> None:
    text.check(f'// {words}\n/* {words} */\nconst char *s = "{words}", *t = R"({words})";\n', CPP)
    text.check(f"! {words}\nprint *, '{words}'\n", FORTRAN)
    text.check(f"# {words}\ns = '{words}'\n", PYTHON)


ENDLESS = {
    "raw strings": (CPP, 'R"(\n'),
    "quotes": (C, "'\\"),
    "double quotes": (C, '"\\'),
    "comments": (C, "/* "),
    "spaces": (FORTRAN, " "),
    "blanks in C": (C, " "),
    "splices": (C, "\\\n"),
    "quotes of Fortran": (FORTRAN, "'&\n"),
    "brackets": (PYTHON, "("),
}


@pytest.mark.parametrize("piece", ENDLESS)
def test_a_long_text_is_looked_at_in_no_time(piece: str) -> None:
    language, repeated = ENDLESS[piece]
    before = time.process_time()
    text.check(repeated * (100_000 // len(repeated)), language)
    assert time.process_time() - before < 10, "its time grows with the square of its length"


# Corpus


def test_all_that_is_honest_passes_by_its_text() -> None:
    """The other gates see it where `test_validate.py` grades it."""
    for task in select("all"):
        for path in [*task.defining_baselines, *task.controls("honest"), *task.controls("fast")]:
            text.check(path.read_text(encoding="utf-8"), Language.of(path))


# Origins

READS = {
    "a file by its path": '#include "/etc/hostname"\n',
    "a file of the toolchain that is no header": '#include "/usr/share/common-licenses/GPL-3"\n',
    "a file above": '#include "../../../../../../etc/hostname"\n',
    "a file above a header's folder": "#include <../../etc/hostname>\n",
    "a file that a macro names": '#define NAME "/etc/hostname"\n#include NAME\n',
    "a file that a macro makes": "#define TEXT(x) #x\n#define MORE(x) TEXT(x)\n#include MORE(/etc/hostname)\n",
    "bytes": 'asm(".pushsection .rodata\\n.incbin \\"/usr/bin/env\\"\\n.popsection");\n',
    "bytes of a process": 'asm(".pushsection .rodata\\n.incbin \\"/proc/self/cmdline\\"\\n.popsection");\n',
    "bytes, by a macro of the assembler": (
        'asm(".pushsection .rodata\\n.macro take what\\n.inc\\\\what \\"/usr/bin/env\\"\\n.endm\\ntake bin\\n'
        '.popsection");\n'
    ),
    "bytes, by a macro of C": (
        '#define TAKE(x) asm(".pushsection .rodata\\n.inc" x " \\"/usr/bin/env\\"\\n.popsection")\nTAKE("bin");\n'
    ),
}


@pytest.mark.parametrize("file", READS)
def test_a_build_takes_in_no(file: str) -> None:
    assert what(rejection(made, axpy(before=READS[file]))) == policy("include")


def test_the_assembler_includes_nothing() -> None:
    assert what(rejection(made, axpy(before='asm(".include \\"/dev/null\\"");'))) == policy("include")


def test_the_message_names_the_file_and_the_log_none_of_its_lines() -> None:
    rejected = rejection(made, axpy(before='#include "/etc/hostname"\n'))
    assert "'/etc/hostname'" in rejected.detail["message"] and not rejected.log


def test_the_compilers_own_headers_may_be_included() -> None:
    assert made(axpy(before="#define HEADER <math.h>\n#include HEADER\n#include <omp.h>\n")) == {}
    assert made(axpy_cpp("#include <vector>\n#include <algorithm>\n"), CPP) == {}


def fast(attributes: str) -> str:
    return axpy(attributes=attributes)


FLAGS = {
    "a pragma": (C, axpy(before='#pragma GCC optimize("Ofast")')),
    "a pragma of two lines": (C, axpy(before='#pragma \\\n  GCC \\\n optimize ("O0")')),
    "a pragma as a digraph": (C, axpy(before='%:pragma GCC target("avx2")')),
    "a pragma that an operator makes": (C, axpy(before='_Pragma("GCC optimize(3)")')),
    "a pragma that a macro makes": (C, axpy(before='#define P(x) _Pragma(#x)\nP(GCC target("avx2"))')),
    "a pragma around a function": (CPP, axpy_cpp("#pragma GCC push_options\n#pragma GCC pop_options")),
    "a pragma behind a raw string": (
        C,
        axpy('(void)s; out[0] = 0;' + LOOP, 'static const char *s = R"(\n# 1 "/usr/include/math.h" 1 3\n)";\n'
             '#pragma GCC optimize("Ofast")'),
    ),
    "a pragma behind a line of a header that is not there": (
        C,
        axpy(before='#if __has_include(</*x>)\n#endif\n#line 1 "x.h"\n#pragma GCC optimize(3)\n// */'),
    ),
    "a pragma in itself, included": (
        C,
        f'#ifndef AGAIN\n#define AGAIN\n#include "./axpy.c"\n#else\n{axpy(before="#pragma GCC optimize(3)")}#endif\n',
    ),
    "an attribute": (C, fast('__attribute__((optimize("Ofast")))')),
    "an attribute in other words": (C, fast("__attribute ( ( __hot__ , __optimize__ ( 0 ) ) )")),
    "an attribute of two lines": (C, fast('__attribute__((target\n\n\n\n\n\n\n\n\n\n\n("avx2")))')),
    "an attribute that a macro makes": (
        C, axpy(before="#define J(a, b) a##b", attributes="__attribute__((J(opti, mize)(0)))"),
    ),
    "clones": (C, fast('__attribute__((target_clones("default", "avx2")))')),
    "an attribute in brackets": (C, fast("[[gnu::optimize(0)]]")),
    "an attribute in digraphs": (C, fast("<:<:gnu::optimize(0):>:>")),
    "an attribute of C++": (CPP, axpy_cpp(attributes="[[using gnu: hot, optimize(0)]]")),
    "an attribute that shuts a sanitizer out": (C, fast('__attribute__((no_sanitize("address")))')),
    "another one that does": (C, fast("__attribute__((__no_sanitize_address__))")),
}  # fmt: skip
NO_FLAGS = """
#include <math.h>
static int optimize(int n) { return n; }
static const char *const words = "__attribute__((optimize(0)))" R"(
#pragma GCC optimize("O0")
[[gnu::target("avx2")]]
)";
/* __attribute__((optimize(0))) */
#pragma GCC ivdep_is_no_such_thing
#pragma GCC diagnostic ignored "-Wunused"
struct __attribute__((packed, aligned(64))) target { char optimize; };
__attribute__((hot, noinline)) static int target_of(const int *target) { return target[target[0]] + optimize(2); }
"""


@pytest.mark.parametrize("how", FLAGS)
def test_flags_are_set_by(how: str) -> None:
    if "avx2" in FLAGS[how][1] and os.uname().machine != "x86_64":
        pytest.skip("written for x86-64")
    language, source = FLAGS[how]
    assert what(rejection(made, source, language)) == policy("flags")


@pytest.mark.parametrize("language", BOTH_C)
def test_what_is_called_like_a_flag_is_none(language: Language) -> None:
    body = f"int t[2] = {{0, 1}}; if (words[0] == 'x') out[0] = target_of(t); {LOOP}"
    noted = made(axpy(body, NO_FLAGS) if language is C else axpy_cpp(NO_FLAGS, body=body), language)
    assert noted.keys() <= BY_CHANCE


def test_a_header_of_the_compiler_may_set_flags() -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("written for x86-64")
    assert "pragma GCC target" in Path(include_of("immintrin.h")).with_name("avx2intrin.h").read_text()
    made(axpy(before="#include <immintrin.h>"))


def include_of(header: str) -> str:
    """Where the compiler finds a header."""
    return next(f"{folder}/{header}" for folder in origins.include_folders("gcc") if Path(folder, header).is_file())


# Binary

PLAIN = axpy("out[0] = sinf(a); free(malloc(8)); " + LOOP, "#include <math.h>\n#include <stdlib.h>")


def linked(folder: Path, source: str = PLAIN, *options: str, start_files: bool = False) -> Path:
    """A library as an author would build it; `-nostartfiles` is what the contract asks for."""
    path = folder / "axpy.c"
    path.write_text(source)
    usual = [] if start_files else ["-nostartfiles"]
    argv = ["gcc", "-O1", "-fPIC", "-shared", *usual, "axpy.c", "-o", "axpy.so", *options, "-lm"]
    subprocess.run(argv, cwd=folder, check=True)
    return folder / "axpy.so"


@cache
def good() -> bytes:
    """A library that passes."""
    with scratch_folder() as folder:
        return linked(folder).read_bytes()


def looked_at(path: Path) -> binary.Library:
    return binary.check(path, "axpy", C)


def test_a_library_made_as_the_contract_says_passes(tmp_path: Path) -> None:
    assert made(None, library=str(linked(tmp_path))) == {}


RUNS = "static void run(void) { for (volatile int i = 0; i < 1; i++); }"
HELPER = "void helper(void); void helper(void) { }"
LIBRARIES: dict[str, tuple[str, tuple[str, ...], str, str]] = {
    "a constructor": (
        axpy(before=f"__attribute__((constructor)) {RUNS}"), (), "init_code", "constructor.*do all work in the call",
    ),
    "a destructor": (
        axpy(before=f"__attribute__((destructor)) {RUNS}"), (), "init_code", "DT_FINI_ARRAY",
    ),
    "a section of functions to call": (
        axpy(before=f'{RUNS} __attribute__((section(".init_array"), used)) static void (*p)(void) = run;'),
        (), "init_code", "DT_INIT_ARRAY",
    ),
    "code in .init that the linker is told of": (PLAIN, ("-Wl,-init,axpy",), "init_code", "DT_INIT"),
    "code to end with": (PLAIN, ("-Wl,-fini,axpy",), "init_code", "DT_FINI"),
    "a function that is chosen": (
        axpy("out[0] = one(); " + LOOP, "static int first(void) { return 1; }\n"
             "__attribute__((used)) static void *choose(void) { return (void *)first; }\n"
             'static int one(void) __attribute__((ifunc("choose")));'),
        (), "init_code", "ifunc",
    ),
    "an entry point that is chosen": (
        "#include <stdint.h>\n" + AXPY.replace("axpy", "own") + f" {{ {LOOP} }}\n"
        "__attribute__((used)) static void *choose(void) { return (void *)own; }\n"
        f'{AXPY} __attribute__((ifunc("choose")));',
        (), "init_code", "ifunc",
    ),
    "a second function to show": (axpy(before=HELPER), (), "symbols", "'helper'.*-fvisibility=hidden"),
    "another file to load": (PLAIN, ("-Wl,--no-as-needed", "-l:libdl.so.2"), "imports", "the library 'libdl.so.2'"),
    "a folder to load from": (PLAIN, ("-Wl,-rpath,/tmp",), "imports", "RUNPATH"),
    "a folder to load from, as of old": (PLAIN, ("-Wl,-rpath,/tmp,--disable-new-dtags",), "imports", "RPATH"),
    "a library to watch it": (PLAIN, ("-Wl,--audit=/tmp/a.so",), "imports", "DT_AUDIT"),
    "a library to ask first": (PLAIN, ("-Wl,-f,libm.so.6",), "imports", "DT_AUXILIARY"),
    "a function that no kernel needs": (
        axpy('out[0] = getenv("HOME") != 0; ' + LOOP, "#include <stdlib.h>"), (), "imports", "'getenv'",
    ),
    "a stack to run": (PLAIN, ("-Wl,-z,execstack",), "segments", "stack that can be executed.*write a plain function"),
    "code with the loader's changes": (
        axpy(before='asm(".text\\n.quad axpy");'), ("-Wl,-z,notext",), "segments", "compile with -fPIC",
    ),
    "code that can be written to": (
        axpy(before='asm(".section .both, \\"awx\\"\\n.quad 1\\n.previous");'), (), "segments",
        "keep code and data apart",
    ),
}  # fmt: skip


@pytest.mark.parametrize("thing", LIBRARIES)
def test_a_library_may_not_bring(tmp_path: Path, thing: str) -> None:
    source, options, property, words = LIBRARIES[thing]
    rejected = rejection(looked_at, linked(tmp_path, source, *options))
    assert what(rejected) == policy(property)
    assert re.search(words, rejected.detail["message"])


def test_a_library_with_the_usual_start_files_is_told_to_leave_them_out(tmp_path: Path) -> None:
    words = said(looked_at, linked(tmp_path, start_files=True))
    assert words.endswith("Link a library with -nostartfiles")


def test_a_library_of_16_mib_and_a_byte_is_too_large(tmp_path: Path) -> None:
    library = tmp_path / "axpy.so"
    library.write_bytes(good())
    os.truncate(library, binary.LARGEST_BYTES + 1)
    assert what(rejection(looked_at, library)) == policy("segments")


def test_a_library_that_is_gone_is_asked_for_again(tmp_path: Path) -> None:
    assert what(rejection(made, None, library=str(tmp_path / "axpy.so"))) == NOT_LOADED


def program_header(library: bytes, kind: str, number: int = 0) -> int:
    """Where the header of the library's segment of that kind (the first is 0) lies in the file."""
    elf = ELFFile(io.BytesIO(library))
    found = [index for index, segment in enumerate(elf.iter_segments()) if segment["p_type"] == kind]
    return int(elf["e_phoff"] + found[number] * elf["e_phentsize"])


def executable(library: bytes) -> int:
    """Which of the loaded segments holds the code."""
    loaded = [part for part in ELFFile(io.BytesIO(library)).iter_segments() if part["p_type"] == "PT_LOAD"]
    return next(number for number, part in enumerate(loaded) if part["p_flags"] & 1)


def put(form: str, at: Callable[[bytes], int], value: int) -> Callable[[bytearray], None]:
    def spoil(library: bytearray) -> None:
        struct.pack_into(form, library, at(bytes(library)), value)

    return spoil


def in_header(kind: str, offset: int, number: int = 0) -> Callable[[bytes], int]:
    return lambda library: program_header(library, kind, number) + offset


def in_code_header(offset: int) -> Callable[[bytes], int]:
    return lambda library: program_header(library, "PT_LOAD", executable(library)) + offset


def section(name: str, offset: int = 0) -> Callable[[bytes], int]:
    def at(library: bytes) -> int:
        found: Any = ELFFile(io.BytesIO(library)).get_section_by_name(name)
        return int(found["sh_offset"]) + offset

    return at


def tag(name: str) -> Callable[[bytes], int]:
    def at(library: bytes) -> int:
        part: Any = ELFFile(io.BytesIO(library)).get_section_by_name(".dynamic")
        names = [entry.entry.d_tag for entry in part.iter_tags()]
        return int(part["sh_offset"] + 16 * names.index(name))

    return at


# Where the fields lie: of the file's header, of a program header (flags 4, offset 8, address 16), of a relocation.
TYPE, MACHINE, CLASS = (lambda _: 16), (lambda _: 18), (lambda _: 4)
RELOCATIONS = ".rela.plt"
NULL, DYNAMIC, STRTAB, IRELATIVE, COPY = 0, 2, 5, 37, 5
SPOILT: dict[str, tuple[Callable[[bytearray], None], tuple[Outcome, str]]] = {
    "another machine's": (put("<H", MACHINE, 40), NOT_LOADED),
    "a program": (put("<H", TYPE, 2), NOT_LOADED),
    "of 32 bits": (put("<B", CLASS, 1), NOT_LOADED),
    "without a dynamic section": (put("<I", in_header("PT_DYNAMIC", 0), NULL), NOT_LOADED),
    "with two of them": (put("<I", in_header("PT_GNU_STACK", 0), DYNAMIC), NOT_LOADED),
    "with another one than the loader sees": (
        put("<Q", in_header("PT_DYNAMIC", 8), 4096), NOT_LOADED,
    ),
    "with two tables of names": (put("<Q", tag("DT_SYMENT"), STRTAB), NOT_LOADED),
    "loaded over itself": (put("<Q", in_header("PT_LOAD", 16, 1), 0), NOT_LOADED),
    "of code that can be written to": (put("<I", in_code_header(4), 7), policy("segments")),
    "of a stack to run": (put("<I", in_header("PT_GNU_STACK", 4), 7), policy("segments")),
    "silent about the stack": (put("<I", in_header("PT_GNU_STACK", 0), NULL), policy("segments")),
    "changing what is not its own": (put("<Q", section(RELOCATIONS), 1 << 40), policy("segments")),
    "changing its code": (
        put("<Q", section(RELOCATIONS), 4096), policy("segments"),
    ),
    "copying data": (put("<I", section(RELOCATIONS, 8), COPY), policy("segments")),
    "choosing its functions": (put("<I", section(RELOCATIONS, 8), IRELATIVE), policy("init_code")),
}  # fmt: skip


@ON_X86
@pytest.mark.parametrize("how", SPOILT)
def test_a_library_may_not_be(tmp_path: Path, how: str) -> None:
    spoil, expected = SPOILT[how]
    library = bytearray(good())
    spoil(library)
    path = tmp_path / "axpy.so"
    path.write_bytes(library)
    assert what(rejection(looked_at, path)) == expected


@pytest.mark.parametrize("length", [0, 1, 16, 64, 500, 4096, 9000, None])
def test_what_is_no_library_is_built_again(tmp_path: Path, length: int | None) -> None:
    content = b"int x;\n" if length is None else good()[:length]
    path = tmp_path / "axpy.so"
    path.write_bytes(content)
    rejected = rejection(looked_at, path)
    assert what(rejected) == NOT_LOADED and "build one for this machine" in rejected.detail["message"]


def hot() -> list[int]:
    """The bytes of the library that are looked at."""
    elf = ELFFile(io.BytesIO(good()))
    places = list(range(64 + elf.num_segments() * elf["e_phentsize"]))
    for name in (".dynamic", ".dynsym", ".dynstr", ".gnu.hash", RELOCATIONS):
        found: Any = elf.get_section_by_name(name)
        places += range(found["sh_offset"], found["sh_offset"] + found["sh_size"])
    return places


CHANGES = st.lists(
    st.tuples(st.sampled_from(hot()) | st.integers(0, len(good()) - 1), st.integers(0, 255)), min_size=1, max_size=4
)


@settings(max_examples=50)
@given(CHANGES)
def test_a_library_with_some_bytes_changed_is_refused_or_not_and_that_is_all(changes: list[tuple[int, int]]) -> None:
    library = bytearray(good())
    for at, value in changes:
        library[at] = value
    with scratch_folder() as folder:
        path = folder / "axpy.so"
        path.write_bytes(library)
        try:
            looked_at(path)
        except Rejected as rejected:
            assert rejected.outcome in (Outcome.POLICY, Outcome.BUILD_FAILED) and rejected.detail["message"]


def test_a_library_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "axpy.so"
    for name in ("DT_PLTRELSZ", "DT_PLTREL", "DT_JMPREL", "DT_SYMTAB", "DT_STRTAB", "DT_GNU_HASH"):
        for form, offset, value in (("<Q", 0, 0x6000000D), ("<Q", 8, 0), ("<Q", 8, 1 << 62)):
            library = bytearray(good())
            struct.pack_into(form, library, tag(name)(good()) + offset, value)
            path.write_bytes(library)
            try:
                looked_at(path)
            except Rejected as rejected:
                assert rejected.detail["message"]


def test_a_name_of_the_loaders_own_harms_nobody_but_the_submission() -> None:
    version = "GLIBC_2.2.5" if os.uname().machine == "x86_64" else "GLIBC_2.17"
    named = f'extern __attribute__((weak)) char node[] __asm__("{version}");'
    source = axpy(f"if (node == (char *)out) return; {LOOP}", named)
    program = (
        "import sys; sys.path.insert(0, 'tests')\nfrom test_gates import made\nfrom bench.verdict import Rejected\n"
        f"try: made({source!r})\nexcept Rejected as rejected: print(rejected.property)\n"
    )
    done = run_program(sys.executable, "-c", program)  # in a process of its own, which ends if this one would have
    assert (done.code, done.out) == (0, "imports\n"), done.err


STANDS_IN = {
    "memcpy": axpy(before="void *memcpy(void *to, const void *of, unsigned long n) { return n ? to : (void *)of; }"),
    "malloc": axpy(before="void *malloc(unsigned long n) { return (void *)n; }"),
    "omp_get_wtime": axpy(before="__attribute__((weak)) double omp_get_wtime(void) { return 0; }"),
    "GOMP_barrier": axpy(before="void GOMP_barrier(void) { }"),
    "sin": axpy(before='static double own(double x) { return x; }\nasm(".globl sin\\n.set sin, own");\n'
                'double (*volatile keep)(double) = own;'),
}  # fmt: skip


@pytest.mark.parametrize("name", STANDS_IN)
def test_no_submission_stands_in_for(name: str) -> None:
    rejected = rejection(made, STANDS_IN[name])
    assert what(rejected) == policy("symbols") and f"'{name}'" in rejected.detail["message"]


def test_new_is_the_runtimes_and_a_class_may_have_its_own() -> None:
    own = "#include <cstdlib>\nvoid *operator new(std::size_t n) { return std::malloc(n); }"
    assert what(rejection(made, axpy_cpp(own), CPP)) == policy("symbols")
    inside = own.replace("void *operator", "struct Own { void *operator") + " };\nOwn *make() { return new Own; }"
    made(axpy_cpp(inside), CPP)


def test_names_of_its_own_are_a_submissions_own() -> None:
    static = "__attribute__((noinline)) static void *memcpy(void *to) { return to; }\n"
    noted = made(axpy(f"memcpy(out); {LOOP}", f"{static} void helper(void) {{ }} int table[4], axpys;"))
    assert noted.keys() <= BY_CHANCE


# Imports

REFUSED = """
  dlopen dlsym dlmopen dladdr dl_iterate_phdr open openat fopen fdopen read write close mmap mprotect munmap fork
  vfork execve system popen socket connect syscall sigaction signal raise kill getenv setenv pthread_atfork
  pthread_kill atexit on_exit exit _exit quick_exit clock_gettime gettimeofday time clock nanosleep usleep sleep
  sched_setaffinity prctl ptrace getpid getauxval sysconf shm_open sem_open memfd_create process_vm_readv personality
  setrlimit secure_getenv omp_get_wtime omp_get_wtick GOMP_target_ext GOMP_OFFLOAD_register_ver backtrace mallopt
  __libc_dlopen_mode
"""
FOR_ALL = """
  memcpy memset strlen strtod malloc calloc realloc free aligned_alloc posix_memalign madvise qsort bsearch rand
  printf puts snprintf abort __assert_fail setjmp _setjmp longjmp __sigsetjmp pthread_create pthread_join
  pthread_mutex_lock pthread_cond_wait pthread_barrier_wait GOMP_parallel GOMP_barrier omp_get_thread_num
  omp_get_max_threads fesetround sinf lgamma_r lgammaf_r cexpf __expf_finite _ZGVdN8v_sinf __tls_get_addr __mulsc3
  __popcountdi2 __memcpy_chk
"""
BY_LANGUAGE = {
    CPP: """
      _Znwm _ZdlPvm __cxa_throw __gxx_personality_v0 _ZNSt6thread4joinEv _ZSt4cout _ZNSt12out_of_rangeC1EPKc
    """,
    FORTRAN: """
      _gfortran_st_write _gfortran_matmul_r4 _gfortran_stop_string _gfortran_runtime_error_at expq
    """,
}
REFUSED_BY_LANGUAGE = {
    CPP: """
      _ZNSt14basic_ifstreamIcSt11char_traitsIcEEC1Ev _ZNSt13basic_filebufIcSt11char_traitsIcEEC1Ev
      _ZNSt6chrono3_V212steady_clock3nowEv _ZNSt10filesystem12current_pathB5cxx11Ev _ZNSt13random_device9_M_getvalEv
    """,
    FORTRAN: """
      _gfortran_st_open _gfortran_st_inquire _gfortran_system_sub _gfortran_execute_command_line_i4
      _gfortran_get_environment_variable_i4 _gfortran_system_clock_4 _gfortran_system_clock_8 _gfortran_cpu_time_4
      _gfortran_date_and_time _gfortran_unlink_i4 _gfortran_getenv _gfortran_signal_sub _gfortran_sleep_i4_sub
      _gfortran_kill_i4 _gfortran_secnds
    """,
}


@pytest.mark.parametrize("language", [C, CPP, FORTRAN])
def test_a_kernel_needs_neither_files_nor_clocks_nor_signals(language: Language) -> None:
    assert [name for name in REFUSED.split() if imports.allowed(name, language)] == []


@pytest.mark.parametrize("language", [C, CPP, FORTRAN])
def test_a_kernel_computes_allocates_prints_and_has_threads(language: Language) -> None:
    assert [name for name in FOR_ALL.split() if not imports.allowed(name, language)] == []


def test_each_language_has_its_own_runtime() -> None:
    for language in (C, CPP, FORTRAN):
        for whose, names in BY_LANGUAGE.items():
            assert {imports.allowed(name, language) for name in names.split()} == {whose is language}, (whose, language)


def test_a_runtime_also_has_files_and_clocks() -> None:
    for language, names in REFUSED_BY_LANGUAGE.items():
        assert [name for name in names.split() if imports.allowed(name, language)] == []


def test_what_is_refused_is_let_in_by_no_other_line() -> None:
    rules = Path(imports.__file__).with_suffix(".yaml").read_text()
    refused_below = rules.partition("\nrefused:")[2].partition("\nlibraries:")[0]
    names = re.findall(r"[\w*]+", re.sub(r"#.*", "", refused_below))
    assert len(names) > 50
    for language in (C, CPP, FORTRAN):
        assert [name for name in names if imports.allowed(name.replace("*", "x"), language)] == []


def test_all_of_the_mathematical_library_is_allowed() -> None:
    (path,) = {
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "/libm.so" in line or "/libm-" in line
    } or pytest.skip("this interpreter has not loaded libm")
    with open(path, "rb") as file:
        symbols: Any = ELFFile(file).get_section_by_name(".dynsym")
        functions = {
            one.name
            for one in symbols.iter_symbols()
            if one["st_shndx"] != "SHN_UNDEF" and one["st_info"]["type"] in ("STT_FUNC", "STT_LOOS")
        }
    assert len(functions) > 500
    gone = {"matherr"}  # that of old programs alone
    assert sorted(name for name in functions - gone if not imports.allowed(name, C)) == []


CALLS = {
    "the environment": (C, axpy('out[0] = getenv("HOME") != 0;' + LOOP, "#include <stdlib.h>"), "getenv"),
    "a clock": (C, axpy("out[0] = omp_get_wtime();" + LOOP, "#include <omp.h>"), "omp_get_wtime"),
    "the loader": (C, axpy('out[0] = dlsym(0, "x") != 0;' + LOOP, "#include <dlfcn.h>"), "dlsym"),
    "a sanitizer that may be there": (
        C, axpy("if (__asan_init) return;" + LOOP, "extern __attribute__((weak)) void __asan_init(void);"),
        "__asan_init",
    ),
    "a file": (CPP, axpy_cpp("#include <fstream>", body='std::ifstream("x") >> out[0];' + LOOP), "fstream|filebuf"),
    "the time": (
        CPP, axpy_cpp("#include <chrono>", body="out[0] = std::chrono::steady_clock::now() > std::chrono::steady_clock"
                      "::time_point{};" + LOOP), "steady_clock",
    ),
    "a file of Fortran": (FORTRAN, HONEST_FORTRAN.replace("  out = ", "  open (7, file='x')\n  out = "), "st_open"),
    "a clock of Fortran": (
        FORTRAN, HONEST_FORTRAN.replace("value :: a\n", "value :: a\n  real :: t\n").replace(
            "  out = ", "  call cpu_time(t)\n  if (t < 0) error stop\n  out = "), "cpu_time",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "thing", [pytest.param(thing, marks=NEEDS_GFORTRAN if CALLS[thing][0] is FORTRAN else ()) for thing in CALLS]
)
def test_a_submission_may_not_ask_for(thing: str) -> None:
    language, source, named = CALLS[thing]
    rejected = rejection(made, source, language)
    assert what(rejected) == policy("imports")
    assert re.search(f"it uses '.*({named}).*', which no kernel needs", rejected.detail["message"])


MODULES = {
    "import os": "os",
    "import os.path": "os.path",
    "import numpy, sys": "sys",
    "import ctypes as numpy": "ctypes",
    "from ctypes import CDLL": "ctypes",
    "from os import *": "os",
    "from . import numpy": ".",
    "from .numpy import add": ".numpy",
    "def f():\n    import time": "time",
    "try:\n    import scipy\nexcept ImportError:\n    pass": "scipy",
    "class A:\n    from subprocess import run": "subprocess",
    "import multiprocessing.pool": "multiprocessing.pool",
    "if 0: import gc": "gc",
}
FINE = (
    "import numpy as np",
    "import numpy.linalg",
    "from numpy.fft import rfft",
    "from collections import abc",
    "import math, itertools, functools",
    "from __future__ import annotations",
    "import threading\nfrom concurrent.futures import ThreadPoolExecutor",
    "x = 'import os'  # import os",
    "__import__('os')",  # left to the filter
)


@pytest.mark.parametrize("statement", MODULES)
def test_python_imports_what_computes(statement: str) -> None:
    rejected = rejection(imports.check_python, statement)
    assert what(rejected) == policy("imports")
    assert f"it imports '{MODULES[statement]}', which no kernel needs; use NumPy" in rejected.detail["message"]


@pytest.mark.parametrize("statement", FINE)
def test_python_may_say(statement: str) -> None:
    imports.check_python(statement)


def test_a_module_of_python_that_may_be_imported_can_be() -> None:
    for name in imports.python_modules():
        imports.check_python(f"import {name}")


def test_python_that_imports_something_else_is_not_built() -> None:
    assert what(rejection(made, axpy_py("out[:] = a * x + y", "import os"), PYTHON)) == policy("imports")
    made(HONEST_PYTHON, PYTHON)


# Instructions


@ON_X86
@pytest.mark.parametrize("instruction", ["syscall", "sysenter", "int $0x80"])
def test_no_submission_makes_system_calls_by_itself(instruction: str) -> None:
    rejected = rejection(made, axpy(f'if (n < 0) asm volatile("{instruction}"); {LOOP}'))
    assert what(rejected) == policy("instructions")
    assert f"the instruction '{instruction}'" in rejected.detail["message"]


@ON_X86
def test_the_bytes_of_a_system_call_within_others_are_counted() -> None:
    body = f'asm volatile("movl $0x050f340f, %%eax\\nmovl $0x80cd, %%eax" ::: "eax"); {LOOP}'
    assert made(axpy(body)) == {"system_call_bytes": 3}


@ON_X86
def test_a_machine_without_objdump_is_told_what_to_install(tmp_path: Path) -> None:
    for name in ("prlimit", "sh", "grep", "tail"):
        (tmp_path / name).symlink_to(
            next(Path(f).joinpath(name) for f in ("/usr/bin", "/bin") if Path(f, name).exists())
        )
    poor = Sandbox(Level.LIMITS, {"PATH": str(tmp_path)})
    with pytest.raises(EnvironmentFault, match="apt-get install binutils"), scratch_folder() as folder:
        instructions.check(poor, folder, b"\x90\x0f\x05")


def test_system_calls_of_aarch64_are_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    sandbox = replace(court().sandbox)
    call, nop = struct.pack("<I", 0xD4000001), struct.pack("<I", 0xD503201F)
    assert instructions.check(sandbox, Path(), nop + nop[:2] + call + nop[:2]) == 0
    with pytest.raises(Rejected, match="instructions"):
        instructions.check(sandbox, Path(), nop + call)


# Grades

NEVER_RUN = {
    "text": (C, axpy(before="// \u200b")),
    "include": (C, axpy(before='#include "/etc/hostname"')),
    "flags": (C, axpy(before="#pragma GCC optimize(0)")),
    "symbols": (C, STANDS_IN["malloc"]),
    "imports": (C, CALLS["the environment"][1]),
    "init_code": (C, axpy_c(LOOP, on_load('for (;;) puts("ran");'))),
}


@pytest.mark.parametrize("protocol", ["mw2x5", "mw4x5"])
@pytest.mark.parametrize("property", NEVER_RUN)
def test_previews_and_submits_refuse_alike_and_nothing_runs(property: str, protocol: str) -> None:
    language, source = NEVER_RUN[property]
    report = graded(source, language, protocol=protocol)
    assert (report.outcome, report.property) == policy(property)
    assert report.detail["message"] and not report.cells and "ran" not in report.log


@pytest.mark.parametrize("language", LANGUAGES)
def test_honest_submissions_pass_all_gates(language: Language) -> None:
    assert made(HONEST[language], language).keys() <= BY_CHANCE | {"code_object"}
