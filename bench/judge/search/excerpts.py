"""The part of a text that is about a query: pure functions."""

import re

GAP = "\n[...]\n"
_WORD = re.compile(r"\w{2,}")
# Longer lines are cut into pieces of this many characters, so that one does not take all the room.
_PIECE_CHARS = 600


def excerpt(text: str, query: str, limit_chars: int) -> str:
    """The paragraphs of a text that hold most words of a query, in their order, `limit_chars` characters at most.

    A text that is short enough is given whole.
    """
    if len(text) <= limit_chars:
        return text
    pieces = _pieces(text)
    asked = {word.lower() for word in _WORD.findall(query)}
    best = sorted(range(len(pieces)), key=lambda place: (-_hits(pieces[place], asked), place))
    chosen: list[int] = []
    left = limit_chars
    for place in best:
        if len(pieces[place]) + len(GAP) <= left:
            chosen.append(place)
            left -= len(pieces[place]) + len(GAP)
    return _joined(pieces, sorted(chosen)) or text[:limit_chars]


def _pieces(text: str) -> list[str]:
    paragraphs = (paragraph for paragraph in text.split("\n\n") if paragraph.strip())
    return [
        paragraph[start : start + _PIECE_CHARS]
        for paragraph in paragraphs
        for start in range(0, len(paragraph), _PIECE_CHARS)
    ]


def _hits(piece: str, asked: set[str]) -> int:
    return len(asked.intersection(word.lower() for word in _WORD.findall(piece)))


def _joined(pieces: list[str], places: list[int]) -> str:
    """Pieces in their order, with a mark where something between them is left out."""
    text = ""
    for before, place in zip([-1, *places], places, strict=False):
        text += ("" if not text else "\n\n" if place == before + 1 else GAP) + pieces[place]
    return text
