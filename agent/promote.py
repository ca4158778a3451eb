"""An answer for an episode that handed none in: its last correct preview, or (blind) the file it left."""

from pathlib import Path

from agent.answers import SOURCE_CAP_BYTES
from agent.journal import read_left
from agent.judges import Judges
from bench.judge.client import Envelope
from bench.judge.schemas import Answer, GradeRequest, Kind, Language


def promote(
    judges: Judges, episode: str, attempt: int, tokens: int, scored: Answer, source: Path, language: Language
) -> Answer | None:
    """Have the preview `scored` graded as the episode's answer; None when `source`, its text, is gone.

    Raises:
        JudgeRefused: the judge did not take it.
    """
    text = _source(source)
    if text is None:
        return None
    envelope = Envelope(
        key=f"promoted-{scored.grade_id}",
        attempt=attempt,
        tokens=tokens,
        kind=Kind.PROMOTED,
        of_grade=scored.grade_id,
        episode=episode,
    )
    return judges.ask("submit", GradeRequest(kernel=scored.kernel, language=language, source=text), envelope)


def harvest(
    judges: Judges, episode: str, attempt: int, tokens: int, kernel: str, language: Language, folder: Path
) -> Answer | None:
    """Have the kernel's file in `folder` graded as the episode's answer; None when there is no such text.

    Raises:
        JudgeRefused: the judge did not take it.
    """
    text = _source(folder / f"{kernel}{language.suffix}")
    if text is None:
        return None
    envelope = Envelope(
        key=f"harvested-{episode}", attempt=attempt, tokens=tokens, kind=Kind.HARVESTED, episode=episode
    )
    return judges.ask("submit", GradeRequest(kernel=kernel, language=language, source=text), envelope)


def _source(path: Path) -> str | None:
    """The text of a file that an agent left; None unless there is one of a sane size."""
    left = read_left(path, SOURCE_CAP_BYTES)
    try:
        return None if left is None else left.decode()
    except UnicodeDecodeError:
        return None
