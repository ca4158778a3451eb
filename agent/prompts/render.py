"""Makes a prompt: sections in their order, filled with the facts of one problem; an unknown fact is an error."""

import functools
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, StrictUndefined, Template, TemplateError, TemplateSyntaxError

from agent.budget import Budget, BudgetMode
from agent.prompts.given import FILES, SKILL_PAGE, Brief
from bench.judge.schemas import SubmissionMode

# The shipped sections, in the order of a prompt; those that a treatment adds follow in its own order.
SECTIONS = ("role", "task", "build", "tools", "budget", "submission", "hints", "skills", "files")
_SECTION = re.compile(r"^\{# section (\S+) #\}\n", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True)
class Facts:
    """What a prompt is filled with.

    `text` is the problem's own, `contract` what the judge's `/task/<kernel>` answers, `start` the names of the
    files in the agent's folder, `given` the folder that holds its files, `skills` the one that holds its skills.
    """

    text: str
    contract: Mapping[str, Any]
    start: tuple[str, ...]
    mode: SubmissionMode
    budget: Budget
    brief: Brief
    given: Path
    skills: Path

    def context(self) -> dict[str, Any]:
        """Name → value, as sections use them."""
        skills = [
            {"name": skill.name, "trigger": skill.trigger, "path": self.skills / skill.name / SKILL_PAGE}
            for skill in self.brief.skills
        ]
        return {
            "text": self.text,
            "task": self.contract,
            "start": self.start,
            "mode": self.mode.value,
            "tools": [tool.value for tool in self.brief.tools],
            "seconds": int(self.budget.timeout_s),
            "tokens": self.budget.max_tokens,
            "versions": self.budget.versions,
            "resumed": self.budget.mode is BudgetMode.TIME,
            "hints": [hint.strip() for hint in self.brief.hints],
            "skills": skills,
            "files": [self.given / FILES / name for name in self.brief.files],
        }


class SectionFault(ValueError):
    """What is wrong with a section, and in which of its lines (from 1)."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@functools.cache
def shipped_sections() -> Mapping[str, str]:
    """Section name → its template, in the order of a prompt."""
    folder = Path(__file__).with_name("sections")
    return MappingProxyType({name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in SECTIONS})


def template_of(sections: Mapping[str, str]) -> str:
    """The template of a whole prompt, in which a comment heads each section."""
    return "\n".join(f"{{# section {name} #}}\n{text}" for name, text in sections.items())


def sections_of(template: str) -> dict[str, str]:
    """The sections that `template_of` put together, by name."""
    _, *parts = _SECTION.split(template)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def go_on(remaining_s: float, mode: SubmissionMode) -> str:
    """The prompt of a resumed session."""
    if mode is SubmissionMode.MULTI:
        how = "Submit again what is better than your last submission: that one counts."
    else:
        how = "Hand in the fastest version that is right before they are over."
    return f"You have {int(remaining_s)} seconds left. Go on and make the kernel faster still. {how}\n"


def render(template: str, facts: Facts) -> str:
    """The text of a section or of a whole prompt.

    Raises:
        SectionFault: the template is none, or uses a name that no fact has.
    """
    context = facts.context()
    try:
        text = _compiled(template).render(context)
    except TemplateSyntaxError as error:
        raise SectionFault(error.lineno, f"is no Jinja template: {error.message}") from error
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:  # its own expressions
        known = ", ".join(context)
        raise SectionFault(_line_of(error), f"{error}; a section may use {known}") from error
    return _BLANK_LINES.sub("\n\n", text).strip() + "\n"


@functools.cache
def _compiled(template: str) -> Template:
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    return environment.from_string(template)


def _line_of(error: Exception) -> int:
    """Jinja maps the lines of what it compiles back to the template's own."""
    lines = [frame.lineno or 1 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    return lines[-1] if lines else 1
