"""`tools.json` of an attempt: everything that its tools need and a model must not choose."""

from pathlib import Path

from pydantic import ValidationError

from agent.tools.offered import Tool
from bench.errors import ConfigError
from bench.judge.schemas import Closed, Language, SubmissionMode
from bench.wording import first_fault

# The server of the tools as clients know it.
SERVER = "kcourt"
# Names the file to whoever calls a tool by the command line.
VARIABLE = "KCOURT_TOOLS"


class ToolSettings(Closed):
    """What the tools of one attempt are told."""

    kernel: str
    language: Language
    mode: SubmissionMode
    tools: tuple[Tool, ...]
    folder: Path
    evidence: Path
    judge_urls: tuple[str, ...]
    home_rank: int
    failover: bool = True
    token: str | None = None
    attempt: int
    tokens_file: Path

    @property
    def source_name(self) -> str:
        """The file that a submission is in unless a call names another."""
        return f"{self.kernel}{self.language.suffix}"

    @property
    def answers_file(self) -> Path:
        return self.evidence / "answers.jsonl"

    @property
    def pending_file(self) -> Path:
        return self.evidence / "pending.json"

    def scored_source(self, grade_id: str) -> Path:
        """Copy of a source that a preview found correct: what a promotion sends.

        It lies in the evidence itself and the id is a name alone, so that an agent, who writes there, cannot lead the
        driver to another folder.
        """
        return self.evidence / f"scored-{Path(grade_id).name}{self.language.suffix}"

    @classmethod
    def read(cls, path: Path) -> "ToolSettings":
        """Raises ConfigError naming the file and its first fault."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise ConfigError(f"{path}: no settings of tools there ({error.strerror})") from error
        except ValidationError as error:
            raise ConfigError(f"{path}: no settings of tools there: {first_fault(error, cls.model_fields)}") from error
