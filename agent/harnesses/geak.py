"""Harness `geak`: starts GEAK (3.x, the one with a command line), which works as mini-SWE-agent does.

What it leaves as a patch in its output counts as nothing: a kernel is handed in by a tool, or harvested in its place.
"""

import json

from agent.harnesses import Launch
from agent.harnesses.by_command import prompt_with_commands
from agent.harnesses.clients import find_client
from agent.harnesses.mini_swe import COMMAND_TIMEOUT_S, MiniSwe


class Geak(MiniSwe):
    """Takes no options."""

    name, log_name, program = "geak", "geak.log", "geak"
    # It starts further agents as it sees fit; each keeps a trajectory of its own.
    trajectories = "geak/**/*.traj.json"
    several_trajectories = True

    def argv(self, launch: Launch, model: str, url: str) -> tuple[str, ...]:
        # The client takes a task that names such a file for the file's text.
        task, config = launch.home / "task.md", launch.home / "geak.yaml"
        task.write_text(prompt_with_commands(launch), encoding="utf-8")
        config.write_text(config_text(launch, model, url), encoding="utf-8")
        return (
            *(str(find_client(self.program)), "--config", str(config), "--yolo", "--exit-immediately"),
            *("--task", str(task), "--output", str(launch.home / "geak")),
        )


def config_text(launch: Launch, model: str, url: str) -> str:
    """The client's configuration for one attempt; what is JSON is YAML as well."""
    asked = {"api_base": url, "temperature": launch.temperature, "reasoning_effort": launch.effort}
    model_kwargs = {name: value for name, value in asked.items() if value is not None}
    return json.dumps(
        {
            "agent": {"step_limit": 0, "cost_limit": 0, "mode": "yolo"},
            "env": {"timeout": COMMAND_TIMEOUT_S},
            "model": {"model_class": "litellm", "model_name": f"openai/{model}", "model_kwargs": model_kwargs},
        },
        indent=2,
    )
