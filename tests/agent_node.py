"""A node of agents for tests: its files under a folder, its driver as a real process, its records read back.

Run as a program it is a driver whose every harness is `Rogue`: a client that is any command line.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from agent.config import GIVEN, AgentConfig
from agent.driver import LoadHarness, run_node
from agent.harnesses import Command, Event, Launch, WireFormat
from agent.prompts.given import BRIEF, CONTRACTS, PROMPT, contract_file
from agent.tools.offered import offered
from agent.usage import Usage
from bench.judge.schemas import End, EpisodeRecord, SetupRecord

SECRET = bytes(range(32))
KCOURT = [sys.executable, "-P", "-c", "from bench.cli import main; main()"]
READY = '{"tools": ["score", "submit", "syntax_check"]}'
DONE = '{"end": "finished"}'


class Rogue:
    """A harness for whatever a client may do; option `script` is a Python program, `shell` a shell one.

    With `wire` it says that it asks a model, which a test's client never does.

    The client finds the number of its attempt in ATTEMPT, and in RESUME the session that is to go on.
    """

    name, version, log_name = "rogue", "1", "rogue.log"
    wire_format: WireFormat = "none"
    resumes = True

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options
        if options.get("wire") == "messages":
            self.wire_format = "messages"

    def check(self, setup: SetupRecord) -> None:
        pass

    def command(self, launch: Launch) -> Command:
        if program := self.options.get("program"):
            return Command((program,))
        env = {"ATTEMPT": str(launch.attempt), "RESUME": launch.resume or ""}
        if shell := self.options.get("shell"):
            return Command(("sh", "-c", shell), env)
        return Command((sys.executable, "-S", "-c", self.options["script"]), env)

    def read(self, line: bytes) -> Event:
        try:
            event = json.loads(line)
            tools = frozenset(event["tools"]) if "tools" in event else None
            usage = Usage(event.get("fresh"), event.get("cached"), event.get("tokens"), tool_calls=event.get("calls"))
            end = End(event["end"]) if "end" in event else None
            return Event(tools=tools, usage=usage, end=end, session=event.get("session"))
        except (ValueError, TypeError):
            return Event()


class NodeFiles:
    """One node under `root`; setups and problems are added, then `start` or `run` the driver.

    `program` is a driver of a test's own, as this module is one.
    """

    program: Path | None = None

    def __init__(self, root: Path, urls: list[str], secret: bytes = SECRET, **settings: Any) -> None:
        self.root, self.urls, self.settings = root, urls, settings
        self.setups: dict[str, SetupRecord] = {}
        self.options: dict[str, dict[str, str]] = {}
        self.problems: list[dict[str, Any]] = []
        (root / "shared" / "tasks").mkdir(parents=True)
        self.secret_file = root / "root.secret"
        self.secret_file.write_text(secret.hex())

    def add(
        self,
        setup: str,
        kernels: list[str],
        options: dict[str, str],
        mode: str = "single",
        harness: str = "scripted",
        **problem: Any,
    ) -> None:
        self.setups[setup] = SetupRecord(setup=setup, harness=harness, submission_mode=mode)
        self.options[setup] = options
        self.give(setup, kernels)
        for kernel in kernels:
            material = self.root / "shared" / "tasks" / kernel
            material.mkdir(exist_ok=True)
            (material / "baseline.c").write_text("/* solved */ start\n")
            line = {"setup": setup, "kernel": kernel, "language": "c", "text": f"Make {kernel} fast."}
            self.problems.append(line | problem)

    def give(self, setup: str, kernels: list[str], template: str = "{{ text }}", **brief: Any) -> None:
        """Stage what the setup's agents are given: a prompt template, a brief, and contracts of few words."""
        given = self.root / "shared" / GIVEN / setup
        (given / CONTRACTS).mkdir(parents=True, exist_ok=True)
        (given / PROMPT).write_text(template)
        tools = offered(self.setups[setup].submission_mode, self.setups[setup].language)
        (given / BRIEF).write_text(json.dumps({"tools": tools} | brief))
        for kernel in kernels:
            contract_file(given, kernel).write_text(json.dumps({"kernel": kernel}))

    def script(self, setup: str, steps: list[dict[str, Any]], kernels: list[str], **more: Any) -> None:
        """Add a setup whose scripted agent plays `steps`; a step's `source` becomes its candidate file."""
        plan = self.root / f"plan-{setup}.json"
        played = [self._step(setup, number, step) for number, step in enumerate(steps)]
        plan.write_text(json.dumps(dict.fromkeys(kernels, played)))
        self.add(setup, kernels, {"plan": str(plan)}, **more)

    def rogue(self, setup: str, kernels: list[str], **options: str) -> None:
        self.add(setup, kernels, options, harness="rogue")

    def _step(self, setup: str, number: int, step: dict[str, Any]) -> dict[str, Any]:
        if "source" not in step:
            return step
        file = self.root / f"candidate-{setup}-{number}.c"
        file.write_text(step["source"])
        return {key: value for key, value in step.items() if key != "source"} | {"file": str(file)}

    def _harnesses(self) -> set[str]:
        return {record.harness for record in self.setups.values()}

    @property
    def run_dir(self) -> Path:
        return self.root / "agents" / "node-0"

    def config(self) -> AgentConfig:
        lines = [json.dumps(problem) for problem in self.problems]
        (self.root / "problems.jsonl").write_text("\n".join(lines) + "\n")
        defaults: dict[str, Any] = {
            "run_dir": self.run_dir,
            "shared_dir": self.root / "shared",
            "folders_file": self.root / "agent-folders.jsonl",
            "problems_file": self.root / "problems.jsonl",
            "judge_urls": self.urls,
            "secret_file": self.secret_file,
            "setups": self.setups,
            "harness_options": self.options,
            "workers": 2,
            "timeout_s": 240,
        }
        return AgentConfig.model_validate(defaults | self.settings)

    def start(self) -> "subprocess.Popen[str]":
        """The driver as a process; a node with rogue setups runs this module, others the command itself."""
        path = self.root / "agent.json"
        path.write_text(self.config().model_dump_json())
        argv = [*KCOURT, "agent", "run", "--json", "--config", str(path)]
        if program := self.program or (__file__ if "rogue" in self._harnesses() else None):
            argv = [sys.executable, str(program), str(path)]
        env = os.environ | {"KCOURT_TEST_KEY": "must-not-be-inherited"}
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        )

    def run(self, expect: int = 0) -> dict[str, Any]:
        """Run the driver to its end; the JSON object that it printed."""
        return finished(self.start(), expect)

    def events(self, kind: str) -> list[dict[str, Any]]:
        path = self.run_dir / "events.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def until(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until `count` events of a kind are there."""
        deadline = time.monotonic() + 120
        while len(found := self.events(kind)) < count:
            assert time.monotonic() < deadline, f"no {count} events {kind}"
            time.sleep(0.02)
        return found

    def episode(self, setup: str, kernel: str) -> Path:
        """The only folder of that setup's episode on that kernel."""
        index = next(n for n, p in enumerate(self.problems) if (p["setup"], p["kernel"]) == (setup, kernel))
        return next(self.run_dir.glob(f"problem-{index}-worker-*"))

    def record(self, setup: str, kernel: str) -> EpisodeRecord:
        return EpisodeRecord.model_validate_json((self.episode(setup, kernel) / "tokens.json").read_bytes())


def finished(driver: "subprocess.Popen[str]", expect: int = 0) -> dict[str, Any]:
    """Wait for a driver; its exit code must be `expect`."""
    out, err = driver.communicate(timeout=240)
    assert driver.returncode == expect, err
    return json.loads(out) if out else {}


def main(config: str, load: LoadHarness) -> None:
    """Drive with harnesses of a test's own; prints the report with the driver's resident memory in KiB."""
    report = run_node(AgentConfig.read(Path(config)), load)
    kib = psutil.Process().memory_info().rss >> 10
    print(json.dumps({"ends": report.ends, "planned": report.planned, "gave_up": report.gave_up, "kib": kib}))
    sys.exit(report.exit_code)


if __name__ == "__main__":
    main(sys.argv[1], lambda name, options: Rogue(options))
