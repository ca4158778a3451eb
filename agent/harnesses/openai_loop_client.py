"""The loop's own process: asks a model by chat completions, does what it calls, and prints one event a line.

`python -P -m agent.harnesses.openai_loop_client FILE` reads `LoopSettings` from FILE and the prompt from stdin.
"""

import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import stamina
from pydantic import Field

from agent.harnesses.openai_loop_tools import call, functions
from agent.harnesses.stream import chat_tokens, emit, too_long
from agent.tools.settings import ToolSettings
from agent.tools.toolbox import Toolbox
from agent.usage import Usage
from bench.judge.schemas import Closed, End

# A model may think for long before its first byte; a request that fails is asked again for about two minutes.
TIMEOUT = httpx.Timeout(1800.0, connect=30.0)
ATTEMPTS, FIRST_PAUSE_S, LONGEST_PAUSE_S = 8, 0.5, 32.0
_PASSING = frozenset({408, 409, 425, 429})
_SERVER_ERROR = 500
_SHOWN_CHARS = 2000


class LoopSettings(Closed):
    """The settings of one session. `url` is that of chat completions, `key` the run's own."""

    url: str
    key: str = Field(repr=False)
    model: str
    effort: str | None = None
    temperature: float | None = None
    tools_file: Path


class Refused(Exception):
    """The server of the model refused a request, or was not there; `end` is how the session ends."""

    def __init__(self, end: End, why: str) -> None:
        super().__init__(why)
        self.end = end


@dataclass(frozen=True)
class Turn:
    """One answer: the message to keep, the calls in it, whether it was cut, and what it used."""

    message: dict[str, Any]
    calls: list[dict[str, Any]]
    cut: bool
    model: str
    usage: Usage


class Model:
    """The model of one session; `tools` as a chat completion takes them."""

    def __init__(self, settings: LoopSettings, tools: list[dict[str, Any]], client: httpx.Client) -> None:
        self._settings, self._client = settings, client
        asked = {"temperature": settings.temperature, "reasoning_effort": settings.effort}
        self._body = {"model": settings.model, "tools": tools} | {k: v for k, v in asked.items() if v is not None}

    def ask(self, messages: list[dict[str, Any]]) -> Turn:
        """The model's next turn. Raises Refused."""
        began = time.monotonic()
        try:
            found = self._answer(messages)
            return turn_of(found, self._settings.model, time.monotonic() - began)
        except httpx.HTTPStatusError as error:
            text = error.response.text[:_SHOWN_CHARS]
            end = End.CONTEXT if too_long(text) else End.API
            raise Refused(end, f"status {error.response.status_code}: {text}") from error
        except httpx.TransportError as error:
            raise Refused(End.API, f"{type(error).__name__}: {error}") from error
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise Refused(End.API, f"the answer is no chat completion: {error!r}") from error

    @stamina.retry(
        on=lambda error: _passes(error), attempts=ATTEMPTS, timeout=None, wait_initial=FIRST_PAUSE_S,
        wait_max=LONGEST_PAUSE_S,
    )  # fmt: skip
    def _answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._settings.key}"}
        answer = self._client.post(self._settings.url, json=self._body | {"messages": messages}, headers=headers)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found


def _passes(error: Exception) -> bool:
    """Whether the same request may be answered in a while."""
    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        return (status in _PASSING or status >= _SERVER_ERROR) and not too_long(error.response.text)
    return isinstance(error, httpx.TransportError)


def turn_of(answer: dict[str, Any], asked: str, api_s: float) -> Turn:
    """What a chat completion says; a server may add a version to the name of the model that was asked for."""
    choice = answer["choices"][0]
    calls = choice["message"].get("tool_calls") or []
    told = {"content": choice["message"].get("content"), "tool_calls": calls or None}
    model = str(answer.get("model") or asked)
    return Turn(
        message={"role": "assistant"} | {name: value for name, value in told.items() if value is not None},
        calls=calls,
        cut=choice.get("finish_reason") == "length",
        model=asked if model.startswith(asked) else model,
        usage=chat_tokens(answer.get("usage") or {}) + Usage(turns=1, tool_calls=len(calls), api_s=api_s),
    )


def converse(model: Model, box: Toolbox, prompt: str) -> End:
    """Ask and act until the model calls no tool any more. Raises Refused."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    while True:
        turn = model.ask(messages)
        emit("turn", message=turn.message, model=turn.model, usage=asdict(turn.usage))
        messages.append(turn.message)
        if not turn.calls:
            return End.CONTEXT if turn.cut else End.FINISHED
        for asked in turn.calls:
            name = asked["function"]["name"]
            reply = call(box, name, asked["function"]["arguments"])
            emit("tool_result", tool=name, refused=reply.refused, text=reply.text)
            messages.append({"role": "tool", "tool_call_id": asked["id"], "content": reply.text})


def main(told: str) -> int:
    """Work until the model has finished or does not answer; the exit code."""
    settings = LoopSettings.model_validate_json(Path(told).read_bytes())
    box = Toolbox(ToolSettings.read(settings.tools_file))
    emit("init", tools=[tool.name for tool in box.listed()], model=settings.model)
    with httpx.Client(timeout=TIMEOUT) as client:
        try:
            end = converse(Model(settings, functions(box), client), box, sys.stdin.read())
        except Refused as refused:
            emit("error", why=str(refused))
            end = refused.end
    emit("result", end=end)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
