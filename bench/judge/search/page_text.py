"""The readable text of a page, as a program of its own that can be ended: nobody here chose what it reads.

`python -I -S page_text.py PAGE TEXT KIND CHARSET` reads the file PAGE and writes the file TEXT.
"""

import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

TEXT_CHARS = 200_000
# Behind everything else that its cores have to do.
NICE = 10
# What a reader does not read, and what begins a line.
_SKIPPED = frozenset(
    (
        *("title", "script", "style", "noscript", "template", "svg", "iframe", "object"),
        *("nav", "footer", "aside", "button", "select", "dialog"),
    )
)
_BLOCKS = frozenset(
    (
        *("p", "div", "br", "hr", "li", "ul", "ol", "dl", "dt", "dd", "table", "tr", "section", "article", "main"),
        *("header", "blockquote", "figure", "figcaption", "pre", "h1", "h2", "h3", "h4", "h5", "h6"),
    )
)
_CELLS = frozenset({"td", "th"})
_BLANKS, _GAPS = re.compile(r"[^\S\n]+"), re.compile(r"\n{3,}")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset=[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)


class _Reader(HTMLParser):
    """Collects text outside of what is skipped; inside `pre` line by line as it is."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._skipped: list[str] = []
        self._kept = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self._skipped.append(tag)
        self._kept += tag == "pre"
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skipped:
            # What was opened inside of it and never closed ends with it.
            del self._skipped[self._skipped.index(tag) :]
        self._kept = max(0, self._kept - (tag == "pre"))
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._skipped:
            return
        if not self._kept:
            data = _BLANKS.sub(" ", data.replace("\n", " "))
            if self._begins():
                data = data.lstrip()
        self.parts.append(data)

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")
        elif tag in _CELLS and not self._begins():
            self.parts.append(" ")

    def _begins(self) -> bool:
        """Whether a blank would be the first of its line, or follow another."""
        return not self.parts or self.parts[-1].endswith(("\n", " "))


def text_of(page: bytes, kind: str, charset: str) -> str:
    """The text of a page (kind html or plain), TEXT_CHARS characters at most; what is broken in it is passed over."""
    content = page.decode(_codec(charset) or _codec(_declared(page)) or "utf-8", errors="replace")
    if kind == "html":
        reader = _Reader()
        reader.feed(content)
        reader.close()
        content = "".join(reader.parts)
    lines = [line.rstrip() for line in content.replace("\r\n", "\n").split("\n")]
    return _GAPS.sub("\n\n", "\n".join(line if line.strip() else "" for line in lines)).strip()[:TEXT_CHARS]


def _declared(page: bytes) -> str:
    found = _META_CHARSET.search(page[:4096])
    return found[1].decode("ascii", errors="replace") if found else ""


def _codec(name: str) -> str | None:
    """The name, or None when it is no text encoding's."""
    try:
        b"a".decode(name, errors="replace")
    except (LookupError, ValueError):
        return None
    return name


def main(page_file: str, text_file: str, kind: str, charset: str) -> int:
    os.nice(NICE)
    text = text_of(Path(page_file).read_bytes(), kind, charset)
    Path(text_file).write_text(text, encoding="utf-8", errors="replace")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
