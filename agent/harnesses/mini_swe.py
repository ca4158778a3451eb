"""Harness `mini_swe`: starts mini-SWE-agent (2.x), whose model has a shell alone; tools are commands in it."""

from collections.abc import Mapping

from agent.harnesses import Command, Event, Launch, WireFormat
from agent.harnesses.by_command import READY, prompt_with_commands
from agent.harnesses.checks import CHAT_EFFORTS
from agent.harnesses.clients import ClientHarness, find_client
from agent.harnesses.follow import Followed, follow
from agent.harnesses.trajectory import TrajectoryReader

# A command may wait for a judge that restarts, or behind a queue of other agents.
COMMAND_TIMEOUT_S = 4 * 3600
RETRIES = 8
QUIET = {
    **{"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    # Tokens are priced by us, and a model of ours has no price there.
    **{"MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": str(RETRIES)},
}


class MiniSwe(ClientHarness):
    """Takes no options. `trajectories` are the files, below the client's home, that it writes while it works."""

    name, log_name, program = "mini_swe", "mini_swe.log", "mini"
    wire_format: WireFormat = "chat"
    resumes = False
    efforts = CHAT_EFFORTS
    # The client has no option that tells its version alone.
    version_option = "--help"
    trajectories = "mini.traj.json"
    several_trajectories = False

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._reader = TrajectoryReader(self.several_trajectories)

    def command(self, launch: Launch) -> Command:
        assert launch.endpoint is not None
        self._reader = TrajectoryReader(self.several_trajectories)
        launch.home.mkdir(parents=True, exist_ok=True)
        argv = self.argv(launch, launch.endpoint.model, f"{launch.endpoint.base_url}/v1")
        followed = Followed(
            argv=argv, root=launch.home, ready=READY, tools=launch.tools, trajectories=self.trajectories
        )
        env = QUIET | {"OPENAI_API_KEY": launch.endpoint.key, "MSWEA_GLOBAL_CONFIG_DIR": str(launch.home / "mini")}
        return follow(followed, launch, env)

    def argv(self, launch: Launch, model: str, url: str) -> tuple[str, ...]:
        """The client's command line for one attempt."""
        asked = {
            "model.model_kwargs.api_base": url,
            "environment.timeout": COMMAND_TIMEOUT_S,
            "model.model_kwargs.temperature": launch.temperature,
            "model.model_kwargs.reasoning_effort": launch.effort,
        }
        return (
            *(str(find_client(self.program)), "--yolo", "--exit-immediately", "--cost-limit", "0"),
            *("--output", str(launch.home / self.trajectories), "--model", f"openai/{model}", "--config", "mini.yaml"),
            *(word for key, value in asked.items() if value is not None for word in ("--config", f"{key}={value}")),
            *("--task", prompt_with_commands(launch)),
        )

    def read(self, line: bytes) -> Event:
        return self._reader.read(line)
