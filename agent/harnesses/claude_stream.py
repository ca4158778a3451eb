"""What Claude Code's stream of JSON lines says: tools, tokens by kind, turns, and how it ended.

The stream speaks whenever the model does, piece by piece, and is silent while nothing comes (a server's pings are
not passed on): silence of the stream is lack of progress.
"""

import json
from dataclasses import replace
from typing import Any

from agent.harnesses import Event
from agent.harnesses.stream import too_long
from agent.tools.settings import SERVER
from agent.usage import NOTHING, Usage
from bench.judge.schemas import End

# The client's own tools that an agent needs: it reads, writes and runs what lies in its folder.
BUILT_IN = ("Bash", "Edit", "Glob", "Grep", "Read", "Write")
OURS = f"mcp__{SERVER}__"
# The author that the client gives to what it says itself, in place of a model.
_SYNTHETIC = "<synthetic>"
_FULL = frozenset({"prompt_too_long", "blocking_limit", "rapid_refill_breaker"})
_ORDERLY = frozenset({None, "completed", "stop_hook_prevented", "hook_stopped"})


class ClaudeStream:
    """Reads one attempt's stream; what was counted once is not counted again."""

    def __init__(self) -> None:
        self._counted: dict[str, Usage] = {}
        self._calls: set[str] = set()
        self._speaking: dict[str | None, str] = {}
        self._failed = False

    def read(self, line: bytes) -> Event:
        """The meaning of one line; nothing, for whatever is no line of this client."""
        try:
            return self._read(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            return Event()

    def _read(self, event: dict[str, Any]) -> Event:
        match event["type"], event.get("subtype"):
            case "system", "init":
                return Event(tools=_announced(event), model=event["model"], session=event["session_id"])
            case "stream_event", _:
                return self._piece(event["event"], event.get("parent_tool_use_id"))
            case "assistant", _:
                return Event(usage=self._message(event["message"], bool(event.get("error"))))
            case "result", _:
                return Event(usage=self._rest(event), end=self._end(event))
        return Event()

    def _piece(self, piece: dict[str, Any], speaker: str | None) -> Event:
        """A piece of an answer; the last but one tells what the whole cost."""
        match piece["type"]:
            case "message_start":
                self._speaking[speaker] = piece["message"]["id"]
                return Event(usage=self._count(self._speaking[speaker], piece["message"]["usage"]), partial=True)
            case "message_delta":
                return Event(usage=self._count(self._speaking[speaker], piece["usage"]))
        return Event(partial=True)

    def _message(self, message: dict[str, Any], failed: bool) -> Usage:
        if message["model"] == _SYNTHETIC:
            self._failed = failed
            return NOTHING
        self._failed = False
        calls = {block["id"] for block in message["content"] if block["type"] == "tool_use"} - self._calls
        self._calls |= calls
        return self._count(message["id"], message["usage"]) + Usage(tool_calls=len(calls))

    def _count(self, message: str, reported: dict[str, Any]) -> Usage:
        """What a report adds to what this message was counted for; one that is seen first is a turn."""
        known = self._counted.get(message)
        now = _tokens(reported)
        self._counted[message] = _larger(now, known or NOTHING)
        return replace(_beyond(now, known or NOTHING), turns=0 if known else 1)

    def _rest(self, result: dict[str, Any]) -> Usage:
        """What the totals hold beyond the messages: requests that the client makes beside its conversation."""
        total = NOTHING
        for used in (result.get("modelUsage") or {}).values():
            total += Usage(
                tokens_fresh=used["inputTokens"] + used["cacheCreationInputTokens"],
                tokens_cached=used["cacheReadInputTokens"],
                tokens_output=used["outputTokens"],
            )
        counted = sum(self._counted.values(), NOTHING)
        return replace(_beyond(total, counted), api_s=result["duration_api_ms"] / 1000)

    def _end(self, result: dict[str, Any]) -> End:
        """How the client ended; its last word may be its own, about a request that came to nothing.

        `subtype` is success and the exit code may be 0 for a request that failed: neither is looked at.
        """
        reason = result.get("terminal_reason")
        refused = self._failed or result.get("api_error_status") is not None or reason == "model_error"
        if reason in _FULL or (refused and too_long(result.get("result"))):
            return End.CONTEXT
        if refused:
            return End.API
        orderly = result["is_error"] is False and reason in _ORDERLY and self._counted
        return End.FINISHED if orderly else End.CRASH


def _announced(init: dict[str, Any]) -> frozenset[str]:
    """Our tools that are announced and whose server is connected.

    A tool of the client's own that should be there and is not, or is there and should not be, is in the set as well:
    it is then not the expected one.
    """
    lost = {f"mcp__{server['name']}__" for server in init["mcp_servers"] if server["status"] != "connected"}
    tools = {tool for tool in init["tools"] if not tool.startswith(tuple(lost))}
    return frozenset(tool.removeprefix(OURS) for tool in tools ^ set(BUILT_IN))


def _tokens(reported: dict[str, Any]) -> Usage:
    """Tokens of one report; what it says nothing about counts none."""
    fresh = (reported.get("input_tokens") or 0) + (reported.get("cache_creation_input_tokens") or 0)
    return Usage(fresh, reported.get("cache_read_input_tokens") or 0, reported.get("output_tokens") or 0)


def _beyond(now: Usage, known: Usage) -> Usage:
    """Tokens of `now` that `known` lacks, kind by kind."""
    return Usage(
        tokens_fresh=max(0, (now.tokens_fresh or 0) - (known.tokens_fresh or 0)),
        tokens_cached=max(0, (now.tokens_cached or 0) - (known.tokens_cached or 0)),
        tokens_output=max(0, (now.tokens_output or 0) - (known.tokens_output or 0)),
    )


def _larger(one: Usage, other: Usage) -> Usage:
    return other + _beyond(one, other)
