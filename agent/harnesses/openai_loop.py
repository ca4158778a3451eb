"""Harness `openai_loop`: a small tool loop of our own over chat completions, for models that no client drives."""

import sys
from collections.abc import Mapping

from agent.harnesses import Command, Event, Launch, WireFormat
from agent.harnesses.checks import CHAT_EFFORTS, known_effort, no_options
from agent.harnesses.openai_loop_client import LoopSettings
from agent.harnesses.stream import read_line
from agent.journal import write_private
from bench.judge.schemas import SetupRecord


class OpenAILoop:
    """Takes no options."""

    name, log_name = "openai_loop", "openai_loop.log"
    wire_format: WireFormat = "chat"
    resumes = False

    def __init__(self, options: Mapping[str, str]) -> None:
        no_options(self.name, options)
        from importlib.metadata import version

        self.version = version("kernelcourt")

    def check(self, setup: SetupRecord) -> None:
        known_effort(self.name, setup, CHAT_EFFORTS)

    def command(self, launch: Launch) -> Command:
        assert launch.endpoint is not None
        settings = LoopSettings(
            url=f"{launch.endpoint.base_url}/v1/chat/completions",
            key=launch.endpoint.key,
            model=launch.endpoint.model,
            effort=launch.effort,
            temperature=launch.temperature,
            tools_file=launch.tools_file,
        )
        launch.home.mkdir(parents=True, exist_ok=True)
        told = launch.home / "openai_loop.json"
        write_private(told, settings.model_dump_json())
        argv = (sys.executable, "-P", "-m", "agent.harnesses.openai_loop_client", str(told))
        return Command(argv, stdin=launch.prompt_file)

    def read(self, line: bytes) -> Event:
        return read_line(line)
