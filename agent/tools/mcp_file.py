"""`mcp.json` of an attempt: how a client starts the server of its tools."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from agent.tools.settings import SERVER


def mcp_text(tools_file: Path, env: Mapping[str, str]) -> str:
    """The file's text, in the form that most clients read; `env` is all that the server gets of an environment."""
    # -P: the agent's folder, where the server starts, must not shadow a module.
    argv = (sys.executable, "-P", "-m", "agent.tools.server", str(tools_file))
    server = {"command": argv[0], "args": argv[1:], "env": dict(env)}
    return json.dumps({"mcpServers": {SERVER: server}}, indent=2) + "\n"
