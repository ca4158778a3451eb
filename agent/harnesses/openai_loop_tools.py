"""What the loop lets a model do in its folder: read and write files, run commands; and how it calls any tool."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import Field, ValidationError

from agent.tools.shown import capped
from agent.tools.spec import Spec
from agent.tools.toolbox import CHANGE, Reply, Toolbox, refusal
from bench import process
from bench.judge.schemas import Closed
from bench.wording import first_fault

COMMAND_S, COMMAND_CAP_S = 120, 3600
READ_CAP_BYTES = 256 << 10


class Reading(Closed):
    """Arguments of `read_file`."""

    path: str = Field(description="Relative to your folder, or absolute.")


class Writing(Closed):
    """Arguments of `write_file`."""

    path: str = Field(description="Relative to your folder.")
    content: str = Field(description="The whole new content.")


class Running(Closed):
    """Arguments of `bash`."""

    command: str = Field(description="Runs in your folder; its standard input is closed.")
    timeout_s: float = Field(COMMAND_S, gt=0, le=COMMAND_CAP_S, description="It is killed after so many seconds.")


def _read_file(box: Toolbox, given: Reading) -> dict[str, Any]:
    path = box.settings.folder / given.path
    with path.open("rb") as file:
        return {"content": capped(file.read(READ_CAP_BYTES).decode(errors="replace")), "bytes": path.stat().st_size}


def _write_file(box: Toolbox, given: Writing) -> dict[str, Any]:
    path = box.settings.folder / given.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(given.content, encoding="utf-8", newline="")
    return {"written": str(path), "bytes": path.stat().st_size}


def _bash(box: Toolbox, given: Running) -> dict[str, Any]:
    limits = process.Limits(wall_s=given.timeout_s)
    done = process.run(["bash", "-c", given.command], limits=limits, cwd=box.settings.folder)
    late = {"timed_out_after_s": given.timeout_s} if done.timed_out else {}
    return {"exit_code": done.returncode, "output": capped(done.output)} | late


OWN = {
    "read_file": Spec("Read a file.", Reading, _read_file),
    "write_file": Spec("Write a file whole; folders are made.", Writing, _write_file),
    "bash": Spec("Run a command; nothing of it goes on afterwards.", Running, _bash),
}


def functions(box: Toolbox) -> list[dict[str, Any]]:
    """All tools as a chat completion takes them: those of the attempt, then the loop's own."""
    return [{"type": "function", "function": function} for function in _functions(box)]


def _functions(box: Toolbox) -> Iterator[dict[str, Any]]:
    for tool in box.listed():
        yield {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    for name, spec in OWN.items():
        yield {"name": name, "description": spec.description, "parameters": spec.schema("", box.settings.language)}


def call(box: Toolbox, name: str, arguments: str) -> Reply:
    """Call a tool with a JSON text of arguments; whatever is wrong with it is a reply."""
    try:
        given = json.loads(arguments or "{}")
    except ValueError as error:
        return refusal("bad_arguments", f"{name}: the arguments are no JSON: {error}", "send one JSON object")
    if name not in OWN:
        return box.call(name, given)
    spec = OWN[name]
    try:
        return Reply(spec.does(box, spec.takes.model_validate(given)))
    except ValidationError as error:
        fault = first_fault(error, spec.takes)
        return refusal("bad_arguments", f"{name}: {fault}", CHANGE)
    except (OSError, ValueError) as error:
        return refusal("failed", f"{name}: {error}", CHANGE)
