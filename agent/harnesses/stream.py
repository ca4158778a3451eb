"""The lines that our own clients print, one JSON object each; and what the answers of a model's server mean."""

import json
import re
import sys
from typing import Any

from agent.harnesses import Event
from agent.usage import NOTHING, Usage
from bench.judge.schemas import End

# How servers of models word that a conversation no longer fits.
TOO_LONG = re.compile(
    r"prompt is too long|maximum context length|context[ _](?:length|window)|contextwindow", re.IGNORECASE
)


def emit(kind: str, **facts: Any) -> None:
    """Print one line: `init` with `tools`, `result` with `end`, or any other; each may carry `usage` and `model`.

    Raises:
        ValueError, TypeError, KeyError: the driver would not understand the line, and pass over it.
    """
    line = json.dumps({"type": kind} | facts)
    _event(json.loads(line))
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def read_line(line: bytes) -> Event:
    """The meaning of a line that `emit` printed; nothing, for any other."""
    try:
        return _event(json.loads(line))
    except (ValueError, TypeError, KeyError):
        return Event()


def _event(facts: dict[str, Any]) -> Event:
    kind = facts["type"]
    return Event(
        tools=frozenset(facts["tools"]) if kind == "init" else None,
        usage=Usage(**facts["usage"]) if "usage" in facts else NOTHING,
        model=facts.get("model"),
        end=End(facts["end"]) if kind == "result" else None,
    )


def chat_tokens(reported: dict[str, Any]) -> Usage:
    """Tokens by kind of the `usage` of a chat completion; unknown where a server reports none."""
    if "prompt_tokens" not in reported:
        return NOTHING
    cached = (reported.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(reported["prompt_tokens"] - cached, cached, reported.get("completion_tokens") or 0)


def too_long(text: object) -> bool:
    """Whether an error of a server of models says that the conversation no longer fits."""
    return TOO_LONG.search(str(text)) is not None
