"""Harness `claude_code`: starts the Claude Code client, headless and quiet."""

import json
from collections.abc import Mapping

from agent.harnesses import Command, Event, Launch, WireFormat
from agent.harnesses.claude_stream import BUILT_IN, OURS, ClaudeStream
from agent.harnesses.clients import ClientHarness, find_client

# What the client does itself before it gives up on its model: pauses double from half a second, so about two minutes.
RETRIES = 8
# A tool waits for a judge that restarts, or behind a queue of other agents.
TOOL_TIMEOUT_MS = 4 * 3600 * 1000
START_TIMEOUT_MS = 60 * 1000
QUIET = {
    **{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1"},
    **{"DISABLE_AUTOUPDATER": "1", "DISABLE_UPDATES": "1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"},
    # Nothing but the prompt may instruct the agent; the folders above its own may hold pages for other work.
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    # Nobody collects what a command in the background has found once the client has said its last word.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    # Without these the first request may leave before the tools are there, or with their names alone.
    **{"MCP_CONNECTION_NONBLOCKING": "0", "ENABLE_TOOL_SEARCH": "0"},
    **{"MCP_TIMEOUT": str(START_TIMEOUT_MS), "MCP_CONNECT_TIMEOUT_MS": str(START_TIMEOUT_MS)},
    **{"MCP_TOOL_TIMEOUT": str(TOOL_TIMEOUT_MS)},
}
# Names by which the client asks for other models than the one that it works with.
MODEL_NAMES = (
    *("ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL"),
    *("ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL"),
)


class ClaudeCode(ClientHarness):
    """Takes no options."""

    name, log_name, program = "claude_code", "claude.log", "claude"
    wire_format: WireFormat = "messages"
    resumes = True
    efforts = ("low", "medium", "high", "xhigh", "max")

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._stream = ClaudeStream()

    def command(self, launch: Launch) -> Command:
        assert launch.endpoint is not None
        self._stream = ClaudeStream()
        allowed = (*BUILT_IN, *(f"{OURS}{tool}" for tool in launch.tools))
        argv = (
            *(str(find_client(self.program)), "--print", "--output-format", "stream-json", "--verbose"),
            # Whole messages leave out what they cost in output, which their pieces tell.
            "--include-partial-messages",
            *("--model", launch.endpoint.model),
            *("--mcp-config", str(launch.mcp_file), "--strict-mcp-config", "--setting-sources", "user"),
            # Root may not bypass permissions; this asks nobody and denies what is not on the list, as any user.
            *("--permission-mode", "dontAsk", "--tools", ",".join(BUILT_IN), "--allowedTools", ",".join(allowed)),
            *(("--effort", launch.effort) if launch.effort else ()),
            *(("--resume", launch.resume) if launch.resume else ()),
        )
        return Command(argv, self._environment(launch), stdin=launch.prompt_file)

    def _environment(self, launch: Launch) -> dict[str, str]:
        assert launch.endpoint is not None
        env = QUIET | dict.fromkeys(MODEL_NAMES, launch.endpoint.model)
        env |= {
            "CLAUDE_CONFIG_DIR": str(launch.home / ".claude"),
            "ANTHROPIC_BASE_URL": launch.endpoint.base_url,
            "ANTHROPIC_API_KEY": launch.endpoint.key,
            "CLAUDE_CODE_MAX_RETRIES": str(RETRIES),
        }
        if launch.effort:
            # The client knows which of the provider's own models take an effort, and no other name.
            env["CLAUDE_CODE_ALWAYS_ENABLE_EFFORT"] = "1"
        if launch.temperature is not None:
            env["CLAUDE_CODE_EXTRA_BODY"] = json.dumps({"temperature": launch.temperature})
        return env

    def read(self, line: bytes) -> Event:
        return self._stream.read(line)
