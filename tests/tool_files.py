"""What the tools of one attempt are told, with their folders under a test's own."""

from pathlib import Path
from typing import Any

from agent.tools.offered import offered
from agent.tools.settings import ToolSettings
from bench.judge.schemas import Language, SubmissionMode, token_for

SECRET = bytes(range(32))


def tool_settings(root: Path, urls: list[str], label: str = "s.n0.p0.w0", **more: Any) -> ToolSettings:
    """Settings of an attempt of `label` on axpy in C, mode single; `more` says what differs."""
    for name in ("folder", "evidence"):
        (root / name).mkdir(parents=True)
    (root / "tokens").write_text("7")
    fields: dict[str, Any] = {
        "kernel": "axpy",
        "language": "c",
        "mode": "single",
        "tools": offered(SubmissionMode.SINGLE, Language.C),
        "folder": root / "folder",
        "evidence": root / "evidence",
        "judge_urls": urls,
        "home_rank": 0,
        "token": token_for(SECRET, label),
        "attempt": 1,
        "tokens_file": root / "tokens",
    }
    return ToolSettings.model_validate(fields | more)


def write_settings(root: Path, urls: list[str], label: str = "s.n0.p0.w0", **more: Any) -> Path:
    """The same as the file `tools.json`."""
    path = root / "tools.json"
    path.write_text(tool_settings(root, urls, label, **more).model_dump_json())
    return path
