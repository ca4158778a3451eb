"""What the trajectory of mini-SWE-agent and its kin says, message by message as `agent.harnesses.follow` prints it."""

import json
from typing import Any

from agent.harnesses import Event
from agent.harnesses.stream import chat_tokens, read_line, too_long
from agent.usage import Usage
from bench.judge.schemas import End

# Ends by the agent's own rules: it is done, or it has not kept to the form of an answer.
_ORDERLY = frozenset({"Submitted", "LimitsExceeded", "TimeExceeded", "RepeatedFormatError"})
# Ends by an error of the model's server, as the library that asks it names them.
_OF_THE_SERVER = frozenset(
    {
        *("APIConnectionError", "APIError", "AuthenticationError", "BadGatewayError", "BadRequestError"),
        *("InternalServerError", "NotFoundError", "PermissionDeniedError", "RateLimitError", "RetryError"),
        *("ServiceUnavailableError", "Timeout", "UnprocessableEntityError", "UnsupportedParamsError"),
    }
)


class TrajectoryReader:
    """Reads one attempt's lines. With `several` trajectories the client's exit is the end, else its only one's."""

    def __init__(self, several: bool = False) -> None:
        self._several = several
        self._end: End | None = None

    def read(self, line: bytes) -> Event:
        """The meaning of one line; nothing, for what the client prints for people."""
        try:
            return self._read(line, json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            return Event()

    def _read(self, line: bytes, facts: dict[str, Any]) -> Event:
        match facts["type"]:
            case "message":
                return _of_message(facts["message"])
            case "exit":
                self._end = end_of(facts["status"], facts["said"])
                return Event() if self._several else Event(end=self._end)
            case "exited":
                return Event(end=self._end)
        return read_line(line)


def end_of(status: str, said: object) -> End:
    """How a trajectory ended, by the name of what ended it and what that said."""
    if status in _ORDERLY:
        return End.FINISHED
    if too_long(status) or (status in _OF_THE_SERVER and too_long(said)):
        return End.CONTEXT
    return End.API if status in _OF_THE_SERVER else End.CRASH


def _of_message(message: dict[str, Any]) -> Event:
    """A message that holds an answer of the model; one that was not of the right form was paid for as well."""
    extra = message.get("extra") or {}
    response = extra.get("response")
    if not isinstance(response, dict):
        return Event()
    calls = len(extra.get("actions") or [])
    usage = chat_tokens(response.get("usage") or {}) + Usage(turns=1, tool_calls=calls)
    return Event(usage=usage, model=response["model"])
