"""Harness `codex`: starts the Codex client, headless, and reads its events and the session file that it keeps.

Its events tell what a session cost only at the end; the session file tells it request by request. It announces no
tools either, but begins no session without a server of tools that it requires: the session's start is the evidence.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent.harnesses import Command, Event, Launch, WireFormat
from agent.harnesses.clients import ClientHarness, find_client
from agent.harnesses.follow import Followed, follow
from agent.harnesses.stream import too_long
from agent.tools.settings import SERVER
from agent.usage import Usage
from bench.judge.schemas import End

PROVIDER, KEY = "kcourt", "KCOURT_MODEL_KEY"
SESSIONS = "sessions/**/rollout-*.jsonl"
# A tool waits for a judge that restarts, or behind a queue of other agents.
TOOL_TIMEOUT_S, START_TIMEOUT_S = 4 * 3600, 60
# What the client asks again before it gives up: a request, and a stream that broke off.
RETRIES = 4
# What an agent has no use for: other agents, the client's own services, pages of know-how that no treatment gave.
_OFF = ("apps", "goals", "image_generation", "plugins", "skill_search", "shell_snapshot", "tool_suggest")
_CALLS = frozenset({"command_execution", "mcp_tool_call", "file_change"})


class Codex(ClientHarness):
    """Takes no options."""

    name, log_name, program = "codex", "codex.log", "codex"
    wire_format: WireFormat = "responses"
    resumes = True
    efforts = ("minimal", "low", "medium", "high", "xhigh")
    takes_temperature = False

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._stream = CodexStream(frozenset())

    def command(self, launch: Launch) -> Command:
        assert launch.endpoint is not None
        self._stream = CodexStream(frozenset(launch.tools))
        own = launch.home / ".codex"
        own.mkdir(parents=True, exist_ok=True)
        (own / "config.toml").write_text(config_text(launch), encoding="utf-8")
        argv = (
            *(str(find_client(self.program)), "exec", "--json", "--skip-git-repo-check"),
            # Nobody can be asked, and what keeps the agent in its place is the seal around the client.
            *("--dangerously-bypass-approvals-and-sandbox", "--cd", str(launch.folder)),
            *(("resume", launch.resume) if launch.resume else ()),
            "-",
        )
        followed = Followed(argv=argv, root=own, lines=SESSIONS)
        return follow(followed, launch, {"CODEX_HOME": str(own), KEY: launch.endpoint.key}, launch.prompt_file)

    def read(self, line: bytes) -> Event:
        return self._stream.read(line)


def config_text(launch: Launch) -> str:
    """The client's `config.toml` for one attempt: its model, our server of tools, and nothing that it need not do."""
    assert launch.endpoint is not None
    server = json.loads(launch.mcp_file.read_text(encoding="utf-8"))["mcpServers"][SERVER]
    top: dict[str, Any] = {
        "model": launch.endpoint.model,
        "model_provider": PROVIDER,
        "check_for_update_on_startup": False,
        "web_search": "disabled",
        # Nothing but the prompt may instruct the agent; the folders above its own may hold pages for other work.
        "project_doc_max_bytes": 0,
    }
    if launch.effort:
        top |= {"model_reasoning_effort": launch.effort}
    tables: dict[str, dict[str, Any]] = {
        "analytics": {"enabled": False},
        "history": {"persistence": "none"},
        "agents": {"enabled": False},
        "features": dict.fromkeys(_OFF, False),
        "skills.bundled": {"enabled": False},
        f"model_providers.{PROVIDER}": {
            **{"name": PROVIDER, "base_url": f"{launch.endpoint.base_url}/v1", "env_key": KEY, "wire_api": "responses"},
            **{"request_max_retries": RETRIES, "stream_max_retries": RETRIES},
        },
        f"mcp_servers.{SERVER}": {
            **{"command": server["command"], "args": server["args"], "required": True},
            **{"enabled_tools": [tool.value for tool in launch.tools]},
            **{"startup_timeout_sec": START_TIMEOUT_S, "tool_timeout_sec": TOOL_TIMEOUT_S},
        },
        f"mcp_servers.{SERVER}.env": server["env"],
    }
    return _toml(top) + "".join(f"\n[{name}]\n{_toml(table)}" for name, table in tables.items())


def _toml(table: Mapping[str, Any]) -> str:
    """One table. JSON's texts, lists, numbers and truth values are TOML's, as long as characters stay as they are."""
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items())


class CodexStream:
    """Reads one attempt's events and the lines of its session file; `tools` are those that its start stands for."""

    def __init__(self, tools: frozenset[str]) -> None:
        self._tools = tools
        self._counted: set[str] = set()

    def read(self, line: bytes) -> Event:
        """The meaning of one line; nothing, for whatever is no line of this client."""
        try:
            facts = json.loads(line)
            return self._kept(facts["type"], facts["payload"]) if "payload" in facts else self._told(facts)
        except (ValueError, TypeError, KeyError, AttributeError):
            return Event()

    def _told(self, event: dict[str, Any]) -> Event:
        """An event that the client prints."""
        match event["type"]:
            case "thread.started":
                return Event(tools=self._tools, session=event["thread_id"])
            case "item.completed" if event["item"]["type"] in _CALLS:
                return Event(usage=Usage(tool_calls=1))
            case "turn.completed":
                # A session in which no model ever answered is none that finished. Its totals are of all its requests,
                # also of those before it was resumed.
                return Event(end=End.FINISHED if _tokens(event["usage"]).tokens else End.CRASH)
            case "turn.failed":
                return Event(end=End.CONTEXT if too_long(event["error"]["message"]) else End.API)
        return Event()

    def _kept(self, kind: str, payload: dict[str, Any]) -> Event:
        """A line of the session file."""
        match kind:
            case "turn_context":
                return Event(model=payload["model"])
            case "token_usage_record" if payload["response_id"] not in self._counted:
                self._counted.add(payload["response_id"])
                return Event(usage=replace(_tokens(payload["usage"]), turns=1))
        return Event()


def _tokens(reported: Mapping[str, int]) -> Usage:
    """Tokens of a report; input counts what was cached as well."""
    cached = reported.get("cached_input_tokens", 0)
    return Usage(reported["input_tokens"] - cached, cached, reported["output_tokens"])
