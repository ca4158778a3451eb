"""Harness `cursor`: starts the Cursor client, headless, which asks its vendor's service and no other.

The vendor's key is in the client's environment, where the agent can read it: it should open nothing else. The client
reports no tokens, so that only time limits what an episode uses.
"""

import json
import os
from typing import Any

from agent.harnesses import Command, Event, Launch, WireFormat
from agent.harnesses.clients import ClientHarness, find_client
from agent.harnesses.follow import Followed, follow
from agent.harnesses.stream import read_line, too_long
from agent.tools.settings import SERVER
from agent.usage import Usage
from bench.errors import ConfigError
from bench.judge.schemas import End, SetupRecord

KEY = "CURSOR_API_KEY"


class Cursor(ClientHarness):
    """Takes no options."""

    name, log_name, program = "cursor", "cursor.log", "cursor-agent"
    wire_format: WireFormat = "own"
    resumes = True
    takes_temperature = False

    def check(self, setup: SetupRecord) -> None:
        super().check(setup)
        if not os.environ.get(KEY):
            raise ConfigError(
                f"{KEY} is not set where agents run: the client asks Cursor's own service; export a key made for this, "
                "because agents can read it"
            )

    def command(self, launch: Launch) -> Command:
        client = str(find_client(self.program))
        own = launch.home / ".cursor"
        own.mkdir(parents=True, exist_ok=True)
        (own / "mcp.json").write_bytes(launch.mcp_file.read_bytes())
        argv = (
            *(client, "--print", "--output-format", "stream-json", "--force", "--approve-mcps", "--trust"),
            *("--workspace", str(launch.folder)),
            *(("--model", launch.model) if launch.model else ()),
            *(("--resume", launch.resume) if launch.resume else ()),
            launch.prompt_file.read_text(encoding="utf-8"),
        )
        # Its first event names no tools; another command of it does, and starts their server for that.
        ready = (client, "mcp", "list-tools", SERVER)
        followed = Followed(argv=argv, root=launch.home, ready=ready, tools=launch.tools)
        return follow(followed, launch, {KEY: os.environ[KEY]})

    def read(self, line: bytes) -> Event:
        try:
            return _event(line, json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            return Event()


def _event(line: bytes, facts: dict[str, Any]) -> Event:
    match facts["type"], facts.get("subtype"):
        case "system", "init":
            return Event(model=facts["model"], session=facts["session_id"])
        case "assistant", _:
            return Event(usage=Usage(turns=1))
        case "tool_call", "started":
            return Event(usage=Usage(tool_calls=1))
        case "result", _:
            failed = End.CONTEXT if too_long(facts.get("result")) else End.API
            end = End.FINISHED if facts["is_error"] is False else failed
            return Event(usage=Usage(api_s=facts["duration_api_ms"] / 1000), end=end)
    return read_line(line)
