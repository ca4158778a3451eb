"""Three wire formats of a scripted model: what a request says, and how one step of a script answers it."""

import base64
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

DONE = "Done."
# How the clients name the tool that runs a command, and what it takes.
SHELLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "Bash": lambda command: {"command": command, "description": "scripted"},
    "bash": lambda command: {"command": command},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
}
_FOLDER = re.compile(r"working directory: (?P<path>/\S+)", re.IGNORECASE)


class Step(BaseModel):
    """One turn of the model: `text`, and at most one of `call`, `write` and `shell`; without any of them it ends.

    A tool goes by its short name. A step with `error` or `stall` fails instead, `times` times (always when not said).
    `model` is the name that the answer carries, when not the one asked for.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = ""
    call: str | None = None
    input: dict[str, Any] = {}
    write: str | None = None
    source: str = ""
    shell: str | None = None
    error: int | None = None
    message: str = "scripted failure"
    stall: Literal["silent", "pings"] | None = None
    times: int | None = None
    delay_s: float = 0
    model: str | None = None
    fresh: int = 100
    cached: int = 20
    output: int = 10

    @property
    def fails(self) -> bool:
        return self.error is not None or self.stall is not None


@dataclass(frozen=True)
class Asked:
    """What one request says, whatever its wire format. `turn` counts the model's own turns so far."""

    wire: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    prompt: str
    turn: int
    tools: tuple[str, ...]
    results: tuple[str, ...]

    @property
    def folder(self) -> str | None:
        """The client's working directory, when its own instructions tell."""
        found = _FOLDER.search(json.dumps(self.body.get("system", "")).replace("\\n", "\n"))
        return found["path"] if found else None

    def record(self) -> dict[str, Any]:
        """The line that the log keeps."""
        facts = {name: getattr(self, name) for name in ("wire", "path", "turn", "tools", "results")}
        return {"at": time.time(), "model": self.body.get("model")} | facts


@dataclass(frozen=True)
class Reply:
    """What the model says: text, or a call of one tool."""

    text: str
    tool: str | None
    input: dict[str, Any]
    step: Step

    @property
    def tokens(self) -> tuple[int, int, int]:
        return self.step.fresh, self.step.cached, self.step.output


def reply_to(asked: Asked, step: Step) -> Reply:
    """A step in terms of the tools that this client has; a call of one that it lacks becomes text."""
    wanted, given = step.call, step.input
    if step.write and "Write" in asked.tools and asked.folder:
        wanted, given = "Write", {"file_path": f"{asked.folder}/{step.write}", "content": step.source}
    elif command := _command(step):
        wanted = next((name for name in SHELLS if name in asked.tools), "a shell")
        given = SHELLS[wanted](command) if wanted in SHELLS else {}
    if wanted is None:
        return Reply(step.text or DONE, None, {}, step)
    named = (name for name in asked.tools if name == wanted or re.search(rf"(__|\.){re.escape(wanted)}$", name))
    tool = next(named, None)
    return Reply(step.text if tool else f"{wanted} is not among my tools.", tool, given, step)


def _command(step: Step) -> str | None:
    if step.write is None:
        return step.shell
    return f"echo {base64.b64encode(step.source.encode()).decode()} | base64 -d > {step.write}"


def parse(path: str, body: dict[str, Any], headers: dict[str, str]) -> Asked:
    """Read a request of any of the three wire formats."""
    wire = path.partition("?")[0].rsplit("/", 1)[-1]
    items = body.get("input", []) if wire == "responses" else body.get("messages", [])
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    said = [item for item in items if item.get("role") == "user"]
    prompt = "\n".join(text for item in said for text in _texts(item.get("content")))
    turn = sum(item.get("role") == "assistant" or item.get("type", "").endswith("_call") for item in items)
    tools = tuple(name for tool in body.get("tools", []) for name in _names(tool))
    return Asked(wire, path, body, headers, prompt, turn, tools, tuple(_results(items)))


def _names(tool: Mapping[str, Any]) -> list[str]:
    function = tool.get("function", tool)
    within = [f"{tool.get('name')}.{name}" for inner in tool.get("tools", []) for name in _names(inner)]
    return within or [function.get("name", function.get("type", ""))]


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or [] if isinstance(block.get("text"), str)]


def _results(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What tools answered, oldest first."""
    for item in items:
        if item.get("role") == "tool":
            yield "\n".join(_texts(item.get("content")))
        elif item.get("type", "").endswith("_call_output"):
            output = item.get("output")
            yield output if isinstance(output, str) else json.dumps(output)
        elif isinstance(item.get("content"), list):
            blocks = [block for block in item["content"] if block.get("type") == "tool_result"]
            yield from ("\n".join(_texts(block.get("content"))) for block in blocks)


Events = Iterator[tuple[str | None, dict[str, Any]]]


def messages_events(asked: Asked, reply: Reply) -> Events:
    """The Messages API's stream; the first two events come before a stall."""
    fresh, cached, output = reply.tokens
    usage = {"input_tokens": fresh, "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached}
    message = _message(asked, reply) | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield _event("message_start", message=message)
    if reply.text:
        yield from _block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text})
    if reply.tool:
        call = {"type": "tool_use", "id": _new("toolu"), "name": reply.tool, "input": {}}
        yield from _block(
            int(bool(reply.text)), call, {"type": "input_json_delta", "partial_json": json.dumps(reply.input)}
        )
    stop = {"stop_reason": "tool_use" if reply.tool else "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": output})
    yield _event("message_stop")


def _block(index: int, start: dict[str, Any], delta: dict[str, Any]) -> Events:
    yield _event("content_block_start", index=index, content_block=start)
    yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(kind: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return kind, {"type": kind, **fields}


def _message(asked: Asked, reply: Reply) -> dict[str, Any]:
    """A whole answer of the Messages API."""
    fresh, cached, output = reply.tokens
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    if reply.tool:
        blocks.append({"type": "tool_use", "id": _new("toolu"), "name": reply.tool, "input": reply.input})
    return {
        **{"id": _new("msg"), "type": "message", "role": "assistant", "model": _model(asked, reply)},
        **{"content": blocks, "stop_reason": "tool_use" if reply.tool else "end_turn", "stop_sequence": None},
        "usage": {
            **{"input_tokens": fresh, "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached},
            "output_tokens": output,
        },
    }


def responses_events(asked: Asked, reply: Reply) -> Events:
    """The Responses API's stream."""
    fresh, cached, output = reply.tokens
    base = {"id": _new("resp"), "object": "response", "created_at": int(time.time()), "model": _model(asked, reply)}
    yield _event("response.created", response=base | {"status": "in_progress", "output": []})
    item = _item(reply)
    yield _event("response.output_item.added", output_index=0, item=item)
    yield _event("response.output_item.done", output_index=0, item=item)
    usage = {
        **{"input_tokens": fresh + cached, "input_tokens_details": {"cached_tokens": cached}},
        **{"output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0}},
        "total_tokens": fresh + cached + output,
    }
    yield _event("response.completed", response=base | {"status": "completed", "output": [item], "usage": usage})


def _item(reply: Reply) -> dict[str, Any]:
    if reply.tool is None:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        return {**_head("message"), "role": "assistant", "content": content}
    namespace, _, name = reply.tool.rpartition(".")
    within = {"namespace": namespace} if namespace else {}
    call = {"call_id": _new("call"), "name": name, "arguments": json.dumps(reply.input)}
    return _head("function_call") | within | call


def _head(kind: str) -> dict[str, Any]:
    return {"type": kind, "id": _new(kind[:2]), "status": "completed"}


def chat_events(asked: Asked, reply: Reply) -> Events:
    """Chunks of a streamed chat completion."""
    whole = _completion(asked, reply)
    message = whole["choices"][0]["message"]
    calls = [call | {"index": number} for number, call in enumerate(message.get("tool_calls", []))]
    chunk = whole | {"object": "chat.completion.chunk"}
    deltas: list[tuple[dict[str, Any], str | None]] = [
        ({"role": "assistant", "content": message["content"]}, None),
        *[({"tool_calls": [call]}, None) for call in calls],
        ({}, whole["choices"][0]["finish_reason"]),
    ]
    for delta, finish in deltas:
        yield None, chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}
    yield None, chunk | {"choices": []}


def _completion(asked: Asked, reply: Reply) -> dict[str, Any]:
    """A whole chat completion."""
    fresh, cached, output = reply.tokens
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool:
        function = {"name": reply.tool, "arguments": json.dumps(reply.input)}
        message["tool_calls"] = [{"id": _new("call"), "type": "function", "function": function}]
    finish = "tool_calls" if reply.tool else "stop"
    return {
        **{"id": _new("chatcmpl"), "object": "chat.completion", "created": int(time.time())},
        **{"model": _model(asked, reply), "choices": [{"index": 0, "message": message, "finish_reason": finish}]},
        "usage": {
            **{"prompt_tokens": fresh + cached, "prompt_tokens_details": {"cached_tokens": cached}},
            **{"completion_tokens": output, "total_tokens": fresh + cached + output},
        },
    }


def _model(asked: Asked, reply: Reply) -> str:
    return reply.step.model or str(asked.body.get("model"))


def _new(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"


STREAMS: dict[str, Callable[[Asked, Reply], Events]] = {
    "messages": messages_events,
    "responses": responses_events,
    "completions": chat_events,
}
WHOLES: dict[str, Callable[[Asked, Reply], dict[str, Any]]] = {"messages": _message, "completions": _completion}
