"""`tools.json` of an attempt: everything that its tools need and a model must not choose."""

from pathlib import Path

from agent.tools.offered import Tool
from bench.judge.schemas import Closed, Language, SubmissionMode
from bench.wording import read_model

# The server of the tools as clients know it.
SERVER = "kcourt"
# The variable that names the file to `kcourt tool`.
VARIABLE = "KCOURT_TOOLS"


class ToolSettings(Closed):
    """The settings of one attempt's tools."""

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
        """Load from a JSON file; raises ConfigError naming the file and its first fault."""
        return read_model(path, cls, "name the tools.json that the driver wrote into the attempt's folder")
