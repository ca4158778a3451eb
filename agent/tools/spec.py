"""What a tool is to a client: what it says of itself, what it takes, what it does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import Field

from bench.judge.schemas import Closed, Language, SubmissionMode

if TYPE_CHECKING:
    from agent.tools.toolbox import Toolbox


class FileInput(Closed):
    """A file of the agent's folder; empty for the kernel's own."""

    file: str = Field("", description="A file in your folder.")


@dataclass(frozen=True)
class Spec:
    """One tool. `does` gets the attempt's tools and a `takes`; its result becomes one JSON object.

    `in_mode` adds to the description what holds in one submission mode, `in_language` changes the schemas of arguments.
    """

    description: str
    takes: type[Closed]
    does: Callable[["Toolbox", Any], dict[str, Any]]
    in_mode: Mapping[SubmissionMode, str] = field(default_factory=dict)
    in_language: Callable[[Language], Mapping[str, Mapping[str, Any]]] = lambda _: {}

    def described(self, mode: SubmissionMode) -> str:
        return " ".join(filter(None, (self.description, self.in_mode.get(mode))))

    def schema(self, source_name: str, language: Language) -> dict[str, Any]:
        """JSON schema of the arguments; the default of `file` is the kernel's own file."""
        schema, changed = self.takes.model_json_schema(), self.in_language(language)
        for name, described in schema["properties"].items():
            described.pop("title", None)
            described.update(changed.get(name, {}))
            if name == "file":
                described["default"] = source_name
        return {key: schema[key] for key in ("type", "properties", "required", "additionalProperties") if key in schema}
