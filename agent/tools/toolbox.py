"""The tools of one attempt as any client calls them: by name, with a JSON object, answered by a JSON object."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agent.tools import profile, score, search, submit, syntax_check
from agent.tools.offered import Tool
from agent.tools.settings import ToolSettings
from agent.tools.spec import FileInput, Spec
from bench.errors import KernelcourtError
from bench.wording import did_you_mean, first_fault

if TYPE_CHECKING:
    from agent.tools.judge_tools import JudgeTools

SPECS: dict[Tool, Spec] = {
    Tool.SCORE: score.SPEC,
    Tool.SUBMIT: submit.SPEC,
    Tool.PROFILE: profile.SPEC,
    Tool.SEARCH: search.SPEC,
    Tool.SYNTAX_CHECK: syntax_check.SPEC,
}
_LATER = "call the tool again in a minute; a call that was answered so counts as nothing"
CHANGE = "change what the message names, then call the tool again"
_WITHOUT = "go on without this tool"
# What to do after a judge's refusal that is neither passing nor the fault of what was sent.
_NEXT = {
    "no_answer_yet": _LATER,
    "search_failed": "go on without, or call the tool again in a minute",
    **dict.fromkeys(("not_provisioned", "searches_spent", "tool_withheld", "blind_mode"), _WITHOUT),
    "already_submitted": "nothing more is to be done: end your work",
    "submit_in_flight": "wait for the answer to your other submit",
}


@dataclass(frozen=True)
class Reply:
    """What a call is answered with: a result, or why there is none."""

    body: dict[str, Any]
    refused: bool = False

    @property
    def text(self) -> str:
        return json.dumps(self.body, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Listed:
    """A tool as a client announces it; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class Toolbox:
    """The tools that one attempt is offered. Safe to share between threads."""

    def __init__(self, settings: ToolSettings) -> None:
        self.settings = settings

    @cached_property
    def judge(self) -> "JudgeTools":
        # Dear to import, and a client waits for the tools to be listed before it begins.
        from agent.tools.judge_tools import JudgeTools

        return JudgeTools(self.settings)

    def file_of(self, given: FileInput) -> str:
        """The file that a call is about."""
        return given.file or self.settings.source_name

    def listed(self) -> Iterator[Listed]:
        """Exactly the tools of the settings, in their order."""
        for tool in self.settings.tools:
            spec, settings = SPECS[tool], self.settings
            schema = spec.schema(settings.source_name, settings.language)
            yield Listed(tool, spec.described(settings.mode), schema)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Call a tool. What a caller did wrong and what a judge refuses are replies, not exceptions."""
        from bench.judge.client import JudgeRefused

        if name not in self.settings.tools:
            known = ", ".join(self.settings.tools)
            return refusal(
                "unknown_tool",
                f"there is no tool '{name}'; the tools are {known}",
                did_you_mean(name, self.settings.tools),
            )
        spec = SPECS[Tool(name)]
        try:
            given = spec.takes.model_validate(arguments)
        except ValidationError as error:
            fault = first_fault(error, spec.takes)
            return refusal("bad_arguments", f"{name}: {fault}", CHANGE)
        try:
            return Reply(spec.does(self, given))
        except JudgeRefused as error:
            advice = _NEXT.get(error.code, _LATER if error.passing else CHANGE)
            return refusal(error.code, error.message, advice)
        except KernelcourtError as error:
            return refusal(error.exit_code.name.lower(), str(error), CHANGE)


def refusal(code: str, message: str, advice: str) -> Reply:
    """An error as a reply: a word for programs, what happened, and what to do next."""
    return Reply({"error": {"code": code, "message": message, "next": advice}}, refused=True)
