"""Harness `mini_swe`: starts mini-SWE-agent (2.x), whose model has a shell alone; tools are commands in it."""

from collections.abc import Mapping

from agent.harnesses import Command, Event, Launch, WireFormat
from agent.harnesses.by_command import READY, prompt_with_commands
from agent.harnesses.checks import known_effort, no_options
from agent.harnesses.clients import client_version, find_client
from agent.harnesses.follow import Followed, follow
from agent.harnesses.trajectory import TrajectoryReader
from agent.tools.offered import Tool
from bench.judge.schemas import SetupRecord

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
TRAJECTORY = "mini.traj.json"
# A command may wait for a judge that restarts, or behind a queue of other agents.
COMMAND_TIMEOUT_S = 4 * 3600
RETRIES = 8
QUIET = {
    **{"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    # Tokens are priced by us, and a model of ours has no price there.
    **{"MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": str(RETRIES)},
}


class MiniSwe:
    """Takes no options."""

    name, log_name = "mini_swe", "mini_swe.log"
    wire_format: WireFormat = "chat"
    resumes = False

    def __init__(self, options: Mapping[str, str]) -> None:
        no_options(self.name, options)
        self._reader = TrajectoryReader()

    @property
    def version(self) -> str:
        # The client's own options have none that tells it.
        return client_version(find_client("mini"), "--help")

    def announces(self, tool: Tool) -> str:
        return tool.value

    def check(self, setup: SetupRecord) -> None:
        known_effort(self.name, setup, EFFORTS)
        find_client("mini")

    def command(self, launch: Launch) -> Command:
        assert launch.endpoint is not None
        self._reader = TrajectoryReader()
        output = launch.home / TRAJECTORY
        asked = {
            "model.model_kwargs.api_base": f"{launch.endpoint.base_url}/v1",
            "environment.timeout": COMMAND_TIMEOUT_S,
            "model.model_kwargs.temperature": launch.temperature,
            "model.model_kwargs.reasoning_effort": launch.effort,
        }
        argv = (
            *(str(find_client("mini")), "--yolo", "--exit-immediately", "--cost-limit", "0", "--output", str(output)),
            *("--model", f"openai/{launch.endpoint.model}", "--config", "mini.yaml"),
            *(word for key, value in asked.items() if value is not None for word in ("--config", f"{key}={value}")),
            *("--task", prompt_with_commands(launch)),
        )
        tools = tuple(map(self.announces, launch.tools))
        followed = Followed(argv=argv, root=launch.home, ready=READY, tools=tools, trajectories=TRAJECTORY)
        env = QUIET | {"OPENAI_API_KEY": launch.endpoint.key, "MSWEA_GLOBAL_CONFIG_DIR": str(launch.home / "mini")}
        return follow(followed, launch, env)

    def read(self, line: bytes) -> Event:
        return self._reader.read(line)
