"""The scripted client: a real process that replays a plan's steps and prints one event a line."""

import os
import shutil
import sys
import time
from pathlib import Path

from agent.harnesses.scripted import CallStep, ExitStep, SleepStep, read_plan
from agent.harnesses.stream import emit
from agent.tools.judge_tools import JudgeTools
from agent.tools.settings import ToolSettings
from bench.errors import KernelcourtError
from bench.judge.client import JudgeRefused

# What a step pretends to have used, so that budgets and records have something to count.
STEP_USAGE = {"tokens_fresh": 1000, "tokens_cached": 0, "tokens_output": 100, "turns": 1, "tool_calls": 1}
_SERVER_ERROR = 500


def main(plan_file: str, tools_file: str) -> int:
    """Play the plan's steps for the kernel in `tools_file`; returns the process's exit code."""
    settings = ToolSettings.read(Path(tools_file))
    steps = read_plan(Path(plan_file)).get(settings.kernel)
    emit("init", tools=settings.tools, model="scripted")
    if steps is None:
        emit("error", message=f"{plan_file}: no steps for kernel '{settings.kernel}'; add them")
        return 1
    tools = JudgeTools(settings)
    for step in steps:
        if step.attempt is not None and step.attempt != settings.attempt:
            continue
        code = _play(step, tools)
        if code is not None:
            return code
    emit("result", end="finished")
    return 0


def _play(step: CallStep | ExitStep | SleepStep, tools: JudgeTools) -> int | None:
    """Do one step; an exit code when it is the last one."""
    match step:
        case ExitStep():
            return step.code
        case SleepStep():
            time.sleep(step.seconds)
            return None
        case CallStep():
            return _call(step, tools)


def _call(step: CallStep, tools: JudgeTools) -> int | None:
    """Call a tool; a refusal is an answer to the agent, a judge that is gone ends the client."""
    name = tools.settings.source_name
    shutil.copyfile(step.file, tools.settings.folder / name)
    emit("tool_call", tool=step.tool, file=str(step.file), usage=STEP_USAGE)
    try:
        answer = tools.ask(step.tool, name)
    except JudgeRefused as error:
        emit("tool_error", tool=step.tool, code=error.code, message=error.message)
        return 1 if error.status is None or error.status >= _SERVER_ERROR else None
    except KernelcourtError as error:
        emit("tool_error", tool=step.tool, code="usage", message=str(error))
        return None
    emit("tool_result", tool=step.tool, answer=answer.model_dump(mode="json"))
    return None


if __name__ == "__main__":
    # Nothing is left to tidy up, and an interpreter's own way out costs a third of a short play.
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
