"""Plans that play recorded episodes again: what each of them sent to the judge, in its order, as files."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from bench.judge.schemas import Kind, Outcome
from bench.results.stored import stored_grade
from bench.results.trajectories import Trajectory, trajectories

# What an episode asked itself, by the tool that asked; its driver's own requests belong to no plan.
TOOLS = {Kind.SCORE: "score", Kind.SUBMIT: "submit"}


@dataclass(frozen=True)
class Sent:
    """One request of an episode: the tool, and the text that was graded with the suffix of its file."""

    tool: str
    suffix: str
    content: bytes


def recorded(db: Connection, setup: str, slot: int) -> dict[str, list[Sent]]:
    """Kernel → what the setup's latest episode in that repeat slot sent in its last attempt."""
    of_setup = [one for one in trajectories(db) if (one.assignment.setup, one.assignment.slot) == (setup, slot)]
    latest = {one.assignment.kernel: one for one in sorted(of_setup, key=lambda one: one.points[-1].requested_at)}
    return {kernel: [*_sent(db, one)] for kernel, one in sorted(latest.items())}


def _sent(db: Connection, episode: Trajectory) -> Iterator[Sent]:
    last = episode.points[-1].attempt
    for point in episode.points:
        if point.attempt != last or point.kind not in TOOLS or point.outcome is Outcome.JUDGE_FAULT:
            continue
        grade = stored_grade(db, point.grade_id)
        text = grade.texts.get("submission") if grade else None
        if text is not None:
            yield Sent(TOOLS[point.kind], text.name.removeprefix(episode.assignment.kernel), text.content)


def write_plan(episodes: dict[str, list[Sent]], folder: Path) -> Path:
    """Write the candidates and `plan.json`, the plan of the scripted harness; returns its path.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan: dict[str, list[dict[str, str]]] = {}
    for kernel, sent in episodes.items():
        for number, one in enumerate(sent, start=1):
            file = folder.resolve() / f"{kernel}-{number}{one.suffix}"
            file.write_bytes(one.content)
            plan.setdefault(kernel, []).append({"tool": one.tool, "file": str(file)})
    path = folder / "plan.json"
    path.write_text(json.dumps(plan, indent=2) + "\n", encoding="utf-8")
    return path
