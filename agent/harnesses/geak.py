"""Harness `geak`: starts GEAK (3.x, the one with a command line), which works as mini-SWE-agent does.

What it leaves as a patch in its output counts as nothing: a kernel is handed in by a tool, or harvested in its place.
"""

import json
from collections.abc import Mapping

from agent.harnesses import Command, Event, Launch, WireFormat
from agent.harnesses.by_command import READY, prompt_with_commands
from agent.harnesses.checks import known_effort, no_options
from agent.harnesses.clients import client_version, find_client
from agent.harnesses.follow import Followed, follow
from agent.harnesses.mini_swe import COMMAND_TIMEOUT_S, EFFORTS, QUIET
from agent.harnesses.trajectory import TrajectoryReader
from agent.tools.offered import Tool
from bench.judge.schemas import SetupRecord

# It starts further agents as it sees fit; each keeps a trajectory of its own.
TRAJECTORIES = "geak/**/*.traj.json"


class Geak:
    """Takes no options."""

    name, log_name = "geak", "geak.log"
    wire_format: WireFormat = "chat"
    resumes = False

    def __init__(self, options: Mapping[str, str]) -> None:
        no_options(self.name, options)
        self._reader = TrajectoryReader(several=True)

    @property
    def version(self) -> str:
        return client_version(find_client("geak"), "--help")

    def announces(self, tool: Tool) -> str:
        return tool.value

    def check(self, setup: SetupRecord) -> None:
        known_effort(self.name, setup, EFFORTS)
        client_version(find_client("geak"), "--help")

    def command(self, launch: Launch) -> Command:
        assert launch.endpoint is not None
        self._reader = TrajectoryReader(several=True)
        launch.home.mkdir(parents=True, exist_ok=True)
        # It takes a task that names such a file for the file's text.
        task, config = launch.home / "task.md", launch.home / "geak.yaml"
        task.write_text(prompt_with_commands(launch), encoding="utf-8")
        config.write_text(config_text(launch), encoding="utf-8")
        argv = (
            *(str(find_client("geak")), "--config", str(config), "--yolo", "--exit-immediately"),
            *("--task", str(task), "--output", str(launch.home / "geak")),
        )
        tools = tuple(map(self.announces, launch.tools))
        followed = Followed(argv=argv, root=launch.home, ready=READY, tools=tools, trajectories=TRAJECTORIES)
        own = {"OPENAI_API_KEY": launch.endpoint.key, "MSWEA_GLOBAL_CONFIG_DIR": str(launch.home / "mini")}
        return follow(followed, launch, QUIET | own)

    def read(self, line: bytes) -> Event:
        return self._reader.read(line)


def config_text(launch: Launch) -> str:
    """The client's configuration for one attempt; what is JSON is YAML as well."""
    assert launch.endpoint is not None
    asked = {"temperature": launch.temperature, "reasoning_effort": launch.effort}
    given = {name: value for name, value in asked.items() if value is not None}
    return json.dumps(
        {
            "agent": {"step_limit": 0, "cost_limit": 0, "mode": "yolo"},
            "env": {"timeout": COMMAND_TIMEOUT_S},
            "model": {
                "model_class": "litellm",
                "model_name": f"openai/{launch.endpoint.model}",
                "model_kwargs": {"api_base": f"{launch.endpoint.base_url}/v1"} | given,
            },
        },
        indent=2,
    )
