"""Rewrites what is HIP and no C++ in a source, for the headers in `bench/native/hip_cpu`: line by line as it was."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bench.gates.text import blank, code_only
from bench.judge.schemas import Language

# Space, and ends of lines within a macro.
_GAP = r"(?:\s|\\(?=\r?\n))"
# What tells where a name begins and which brackets are open; operators of two characters are neither.
_TOKEN = re.compile(
    rf"""(?P<gap>{_GAP}++) | (?P<word>[^\W\d]\w*+) | (?P<number>\.?\d(?:'?[\w.])*+) | (?P<joint>::|\#\#|->|\.)
    | (?P<launch><<<|>>>) | (?P<condition>\?) | <=>|<<=?|<=|>= | (?P<bracket>[<>()\[\]{{}};]) | .""",
    re.VERBOSE | re.DOTALL,
)
_CALL = re.compile(rf"{_GAP}*+\(")
_OPENING = {")": "(", "]": "[", "}": "{", ">": "<", ">>>": "<<<"}
# Behind them begins a statement or a condition, and no arguments.
_KEYWORDS = {"if", "for", "while", "switch", "return", "else", "do", "case", "throw", "constexpr"}
# Within one configuration, that are still open at its end.
_MOST_ANGLES = 16

# Up to the semicolon. Nothing longer declares shared memory.
_DECLARATION = re.compile(r"\bextern\b(?=([^;{}]{0,512}+;))")
_NESTED = r"\((?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+\)"
_ATTRIBUTE = re.compile(rf"\b(?:alignas|__align__|__attribute__)\s*+{_NESTED}|\[\[[^\[\]]*+\]\]|\b__shared__\b")
_NAME = re.compile(r"\b[^\W\d]\w*+\Z")
_BOUNDS = re.compile(r"\[\s*+\]((?:\s*+\[[^\[\]=]*+\])*+)\s*+;")
_LINE_END = re.compile(r"\\?\r?\n")
# The header's `__shared__` is `static`, which C++ takes once, and behind an alignment.
_STATIC = re.compile(r"\bstatic(?=\s++__shared__\b)")
_ALIGNED = re.compile(rf"\b__shared__({_GAP}++)(alignas\s*+{_NESTED})")


@dataclass(frozen=True)
class _Edit:
    """What stands in place of a piece of the source."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class _Open:
    """A bracket that waits for its end, and where the name begins that stands before it.

    `is_condition`: a question mark follows. Of `<`, it is then a comparison as a rule.
    """

    bracket: str
    start: int
    name: int | None
    is_condition: bool = False


def as_cpp(source: str) -> str:
    """`source` with every launch as a call of the header's launcher, and dynamic shared memory as a pointer to it.

    What it does not understand stays as it is: the compiler will say so.
    """
    code = code_only(source, Language.CPP)
    edits: list[_Edit] = []
    if "<<<" in code:
        edits += _Launches(code).found()
    if "__shared__" in code:
        edits += _shared(code)
    return "".join(_applied(source, sorted(edits, key=lambda edit: edit.start)))


def _applied(source: str, edits: list[_Edit]) -> Iterator[str]:
    end = 0
    for edit in edits:
        if edit.start >= end:
            yield source[end : edit.start]
            yield edit.text
            end = edit.end
    yield source[end:]


class _Launches:
    """Reads code once from its beginning to its end, with the brackets that are open on a stack.

    `<` is taken for a bracket behind any name: one that was a comparison is dropped at the end of its statement, or of
    the bracket around it.
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._open: list[_Open] = []
        self._edits: list[_Edit] = []
        self._rest()

    def _rest(self) -> None:
        """No name ends here."""
        self._name: int | None = None  # where it begins
        self._is_joined = False  # it goes on behind a `::` or the like
        self._is_called = False  # it ends with arguments or an index
        self._is_keyword = False

    def found(self) -> list[_Edit]:
        """The edits of all launches."""
        for token in _TOKEN.finditer(self._code):
            text, start = token[0], token.start()
            match token.lastgroup:
                case "gap":
                    pass
                case "word":
                    self._word(text, start)
                case "condition":
                    self._condition()
                case "number" if self._is_joined:
                    self._is_joined = False
                case "joint":
                    self._joint(text, start)
                case "launch" | "bracket" if text in _OPENING:
                    self._close(text, start)
                case "launch" | "bracket":
                    self._opened(text, start)
                case _:
                    self._rest()
        return self._edits

    def _word(self, text: str, start: int) -> None:
        if self._is_joined:
            self._is_joined = text == "template"
            return
        self._rest()
        self._is_keyword = text in _KEYWORDS
        if not self._is_keyword:
            self._name = start

    def _joint(self, text: str, start: int) -> None:
        if text == "::" and (self._name is None or self._is_called):
            self._rest()
            self._name = start
        self._is_joined = self._name is not None

    def _condition(self) -> None:
        self._rest()
        if self._open:
            self._open[-1].is_condition = True

    def _opened(self, text: str, start: int) -> None:
        name = None if self._is_joined else self._name
        is_first = self._name is None and not self._is_keyword
        self._rest()
        if text == ";":
            self._drop_angles()
        elif text == "(" and is_first:
            self._open.append(_Open(text, start, start))
        elif text != "<" or name is not None:
            self._open.append(_Open(text, start, name))

    def _drop_angles(self) -> None:
        while self._open and self._open[-1].bracket in ("<", "<<<"):
            self._open.pop()

    def _close(self, text: str, start: int) -> None:
        self._rest()
        if text == ">>>":
            self._close_launch(start)
        elif text == ">":
            self._close_angles(1)
        else:
            self._drop_angles()
            if self._open and self._open[-1].bracket == _OPENING[text]:
                self._name = self._open.pop().name
                self._is_called = True

    def _close_angles(self, most: int) -> None:
        while most and self._open and self._open[-1].bracket == "<":
            self._name = self._open.pop().name
            most -= 1

    def _close_launch(self, start: int) -> None:
        """The end of a launch's configuration, which may hold comparisons; or that of three templates in each other."""
        templates = 0
        for count, opened in enumerate(self._open[: -_MOST_ANGLES - 1 : -1]):
            if opened.bracket == "<<<":
                del self._open[len(self._open) - count - 1 :]
                self._launch(opened, start)
                return
            templates += not opened.is_condition
            if opened.bracket != "<" or templates == 3:
                break
        self._close_angles(3)

    def _launch(self, opened: _Open, end: int) -> None:
        if opened.name is not None and _CALL.match(self._code, end + 3):
            self._edits += [
                _Edit(opened.name, opened.name, "kc::launcher(KC_KERNEL("),
                _Edit(opened.start, opened.start + 3, "), "),
                _Edit(end, end + 3, ")"),
            ]


def _shared(code: str) -> Iterator[_Edit]:
    for declared in _DECLARATION.finditer(code):
        if pointer := _pointer(declared[1]):
            ends = "".join(f" {end}" for end in _LINE_END.findall(declared[1]))
            yield _Edit(declared.start(), declared.end(1), f"{pointer}{ends};")
    for static in _STATIC.finditer(code):
        yield _Edit(static.start(), static.end(), blank(static[0]))
    for aligned in _ALIGNED.finditer(code):
        yield _Edit(aligned.start(), aligned.end(), f"{aligned[2]}{aligned[1]}__shared__")


def _pointer(declared: str) -> str | None:
    """`T *const name = ...` for ` __shared__ T name[];`, or nothing if it is something else."""
    if "__shared__" not in declared:
        return None
    plain = _ATTRIBUTE.sub(" ", declared).replace("\\", " ")
    before, bracket, _ = plain.partition("[")
    bounds = _BOUNDS.fullmatch(plain, len(before)) if bracket else None
    name = _NAME.search(before.rstrip())
    if bounds is None or name is None or "=" in before:
        return None
    of = " ".join(before[: name.start()].split())
    others = " ".join(bounds[1].split())
    if not of:
        return None
    if others:
        return f"{of} (*const {name[0]}){others} = ({of} (*){others})kc::dynamic_memory"
    return f"{of} *const {name[0]} = ({of} *)kc::dynamic_memory"
