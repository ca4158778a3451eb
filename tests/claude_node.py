"""A driver whose clients are real ones with something wrong around them: `claude_node.py <agent.json>`."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from agent_node import main

from agent.harnesses import Command, Harness, Launch, claude_code
from agent.harnesses.claude_code import ClaudeCode
from agent.tools.settings import SERVER


class Lingers(ClaudeCode):
    """Stays after its result."""

    def command(self, launch: Launch) -> Command:
        command = super().command(launch)
        client = Path(command.argv[0]).resolve()
        argv = ("sh", "-c", '"$@"; sleep 300', "sh", str(client), *command.argv[1:])
        return replace(command, argv=argv, needs=(client,))


class OtherModel(ClaudeCode):
    """Works with a model that nobody asked for."""

    def command(self, launch: Launch) -> Command:
        command = super().command(launch)
        argv = ["other-model" if word == "served-model" else word for word in command.argv]
        return replace(command, argv=tuple(argv))


class WrappedTools(ClaudeCode):
    """Has its tool server started by a shell."""

    script = ""

    def command(self, launch: Launch) -> Command:
        told = json.loads(launch.mcp_file.read_text())
        server = told["mcpServers"][SERVER]
        server["args"] = ["-c", self.script, "sh", server["command"], *server["args"]]
        server["command"] = "sh"
        launch.mcp_file.write_text(json.dumps(told))
        return super().command(launch)


class SlowTools(WrappedTools):
    # Longer than the client waits by itself.
    script = 'sleep 7; exec "$@"'


class MortalTools(WrappedTools):
    script = 'echo $$ > server.pid; exec "$@"'


class NoTools(WrappedTools):
    script = "exit 1"


MADE: Mapping[str, Callable[[Mapping[str, str]], Harness]] = {
    "claude_code": ClaudeCode,
    "lingers": Lingers,
    "other_model": OtherModel,
    "slow_tools": SlowTools,
    "mortal_tools": MortalTools,
    "no_tools": NoTools,
}

if __name__ == "__main__":
    claude_code.RETRIES = 1
    main(sys.argv[1], lambda name, options: MADE[name](options))
