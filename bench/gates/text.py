"""Rejects source that reads otherwise than it compiles: characters that hide, look-alikes, faked line numbers."""

import io
import re
import tokenize
import unicodedata
from collections.abc import Iterator

from bench.judge.schemas import Language, Outcome
from bench.verdict import Rejected

C_LIKE = (Language.C, Language.CPP, Language.HIP, Language.CUDA)
_SPACES = "\t\v\f"
# Control, format (zero width, direction), surrogate and private characters, line and paragraph separators.
_HIDING = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
# Joiners of letters and of emoji: they hide nothing, and code cannot have them anyhow.
_JOINERS = "\u200c\u200d"
# A line that goes on: both halves are one for the compiler, but for those within a raw string.
_SPLICED = r"\\[ \t\f\v]*\r?\n"
# Comments and literals, and numbers: the apostrophe in one of C++ (1'000) starts no literal. What a quote opens ends
# with its line, and a raw string that nothing ends is the rest of the file: so the compiler sees it, and no text is
# looked at twice.
C_LITERALS = re.compile(
    rf"""//(?:{_SPLICED}|[^\n])* | /\*.*?(?:\*/|\Z)
    | \b(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{{0,16}})\((?:.*?\)(?P=mark)"|.*)
    | "(?:{_SPLICED}|[^"\\\n]|\\.)*+"? | '(?:{_SPLICED}|[^'\\\n]|\\.)*+'?
    | (?P<number>(?<![\w.])\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)""",
    re.VERBOSE | re.DOTALL,
)
# What would be one token for the compiler and two for the pattern above: a literal or the end of a comment, torn.
_TORN_LITERAL = re.compile(rf"""\w{_SPLICED}(?:u8|[uUL])?R?['"]""")
_TORN_COMMENT = re.compile(rf"[/*]{_SPLICED}[/*]")
# A literal goes on behind an ampersand at the end of its line, past lines of comments.
_FORTRAN_LITERALS = re.compile(
    r"""![^\n]*
    | '(?:''|&[ \t]*\r?\n(?:[ \t]*+(?:![^\n]*)?\n)*+|[^'\n])*+'?
    | "(?:""|&[ \t]*\r?\n(?:[ \t]*+(?:![^\n]*)?\n)*+|[^"\n])*+"?""",
    re.VERBOSE,
)
_SPLICE = re.compile(_SPLICED)
_LINE_DIRECTIVE = re.compile(
    r"^[ \t\f\v\0]*(?:\#|%\0*:|\?\0*\?\0*=)[ \t\f\v\0]*(?:l\0*i\0*n\0*e(?!\0*\w)|\d)", re.MULTILINE
)
# `include` is a line of its own in Fortran, no statement; nothing else reads a file.
_FORTRAN_INCLUDE = re.compile(r"^[ \t]*+(?:!\$)?[ \t]*+include[ \t]*(?:\w+_)?[ \t]*['\"]", re.MULTILINE | re.IGNORECASE)

# What says in which encoding Python is to read a file.
_COOKIE = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*+(?!utf[-_]?8(?![-\w.]))", re.IGNORECASE)


def check(source: str, language: Language) -> None:
    """Look at a submission's text before anything reads it.

    Raises:
        Rejected: (`policy`) it holds a character that hides, code that is not ASCII, a line number of its own (these
            are `text`) or, in Fortran, an include line (`include`).
    """
    for number, line in enumerate(source.split("\n"), 1):
        for character in line.removesuffix("\r"):
            if character not in _SPACES + _JOINERS and unicodedata.category(character) in _HIDING:
                raise _rejected(number, f"holds the character U+{ord(character):04X}, which nobody sees; take it out")
    code = "" if source.isascii() else code_only(source, language)
    for number, line in enumerate(code.split("\n"), 1):
        if not line.isascii():
            other = next(character for character in line if not character.isascii())
            what = f"{other!r} ({unicodedata.name(other, 'unnamed')})"
            raise _rejected(number, f"has {what} in its code; outside comments and literals write ASCII alone")
    if language in C_LIKE:
        _check_directives(source)
    if language in (Language.PYTHON, Language.TRITON) and any(map(_COOKIE.match, source.split("\n")[:2])):
        raise _rejected(1, "or line 2 sets an encoding; write UTF-8, which needs no such line")
    if language is Language.FORTRAN and (found := _FORTRAN_INCLUDE.search(source)):
        message = f"line {source.count(chr(10), 0, found.start()) + 1} includes a file; put all into one"
        raise Rejected(Outcome.POLICY, "include", {"message": message})


def _check_directives(source: str) -> None:
    """Raises Rejected for a `#line`: it would pass the lines below off as another file's."""
    if found := _TORN_LITERAL.search(source) or _TORN_COMMENT.search(source):
        raise _rejected(source.count("\n", 0, found.start()) + 1, "ends within a token; write it on one line")
    # Neither a comment nor a splice ends a directive's line.
    code = C_LITERALS.sub(lambda found: found[0] if found["number"] else blank(found[0], "\v"), source)
    joined = _SPLICE.sub("\0", code)
    if found := _LINE_DIRECTIVE.search(joined):
        number = len(re.findall(r"[\n\v\0]", joined[: found.start()])) + 1
        raise _rejected(number, "sets line numbers or a file name (#line); take it out")


def _rejected(number: int, what: str) -> Rejected:
    return Rejected(Outcome.POLICY, "text", {"message": f"line {number} {what}"})


def code_only(source: str, language: Language) -> str:
    """`source` with comments and literals blanked, line by line as it was."""
    match language:
        case Language.C | Language.CPP | Language.HIP | Language.CUDA:
            return C_LITERALS.sub(lambda found: found[0] if found["number"] else blank(found[0]), source)
        case Language.FORTRAN:
            return _FORTRAN_LITERALS.sub(lambda found: blank(found[0]), source)
        case Language.PYTHON | Language.TRITON:
            return "\n".join(_python_names(source))


def blank(text: str, newline: str = "\n") -> str:
    return "".join(newline if character == "\n" else " " for character in text)


def _python_names(source: str) -> Iterator[str]:
    """The names of each line that has some; only they can be anything but ASCII in Python's code."""
    found: dict[int, list[str]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NAME:
                found.setdefault(token.start[0], []).append(token.string)
    except (tokenize.TokenError, SyntaxError):
        pass  # the build will say what does not parse
    for number in range(1, max(found, default=0) + 1):
        yield " ".join(found.get(number, []))
