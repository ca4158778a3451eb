"""What all agents of one setup are given beside their kernels: where it lies, and how it is read."""

import json
from pathlib import Path
from typing import Any

from agent.tools.offered import Tool
from bench.judge.schemas import Closed
from bench.wording import read_model

# Names inside the folder of a setup.
PROMPT, BRIEF, CONTRACTS, SKILLS, FILES = "prompt.md", "brief.json", "contracts", "skills", "files"
SKILL_PAGE = "SKILL.md"


class Skill(Closed):
    """A page of know-how: the prompt names it with its trigger, the agent reads it when that applies."""

    name: str
    trigger: str


class Brief(Closed):
    """`brief.json`: the tools that clients must announce, and what fills the prompt beside the kernel."""

    tools: tuple[Tool, ...]
    hints: tuple[str, ...] = ()
    skills: tuple[Skill, ...] = ()
    files: tuple[str, ...] = ()


def contract_file(folder: Path, kernel: str) -> Path:
    """What the judge's `/task/<kernel>` answers to this setup."""
    return folder / CONTRACTS / f"{kernel}.json"


def read_brief(folder: Path) -> Brief:
    """The brief of a setup; raises ConfigError naming the file and its first fault."""
    return read_model(folder / BRIEF, Brief, "stage what the setup's agents are given, or render the setup again")


def read_contract(folder: Path, kernel: str) -> dict[str, Any]:
    """The staged contract of a kernel, whose presence the driver has checked."""
    found: dict[str, Any] = json.loads(contract_file(folder, kernel).read_bytes())
    return found
