"""Grades and episodes as a judge and a driver would record them, with what a test wants to differ."""

from pathlib import Path
from typing import Any

from bench.judge.schemas import (
    End,
    EpisodeLabel,
    EpisodeRecord,
    Kind,
    Language,
    Outcome,
    Preset,
    SetupRecord,
    SubmissionMode,
)
from bench.records import Cell, GradeReport, SourceFile
from bench.results.rows import GradeOrigin
from bench.results.shard import Shard
from bench.seeds import commitment, request_seed

ROOT = bytes(range(32))
SETUPS = {name: SetupRecord(setup=name, preset=Preset.M) for name in ("demo-gold-c", "demo-noop-c")}
LABEL = "demo-gold-c.n0.p0.w0"


def report(grade_id: str, label: str | None = LABEL, **changes: Any) -> GradeReport:
    """A solved grade with two sources and one cell, committed to the seed that ROOT gives it."""
    cell = Cell(
        index=0,
        sizes={"n": 1000},
        ratio=1.5,
        raw=1.5,
        p=0.03,
        credited=True,
        candidate_ns=(10, 11),
        denominator_ns=(15, 16),
        order="cddc",
    )
    facts: dict[str, Any] = {
        "outcome": Outcome.SOLVED,
        "score": 1.5,
        "raw_ratio": 1.5,
        "interval": (1.4, 1.6),
        "faster": True,
        "protocol": "mw4x5",
        "preset": Preset.M,
        "cells": (cell,),
        "seed_commitment": commitment(request_seed(ROOT, label or "adhoc", grade_id)),
        "sandbox": "limits",
        "sources": (
            SourceFile(role="submission", name="axpy.c", content=b"void axpy(); // " + grade_id.encode()),
            SourceFile(role="reference", name="reference.py", content=b"def reference(): ..."),
        ),
    }
    return GradeReport(grade_id=grade_id, **(facts | changes))


def origin(label: str | None = LABEL, kind: Kind = Kind.SUBMIT, **changes: Any) -> GradeOrigin:
    """A request of an episode, or an ad hoc one without a label."""
    parsed = EpisodeLabel.parse(label) if label else None
    facts: dict[str, Any] = {
        "kernel": "axpy",
        "language": Language.C,
        "answer": '{"grade_id": "as answered"}',
        "requested_at": "2026-01-01T00:00:00.000+00:00",
        "finished_at": "2026-01-01T00:00:01.000+00:00",
        "host": "node1",
        "package_version": "0.1.0",
        "setup": parsed.setup if parsed else None,
        "slot": parsed.slot if parsed else 0,
    }
    return GradeOrigin(label=label, kind=kind, **(facts | changes))


def episode(label: str = LABEL, **changes: Any) -> EpisodeRecord:
    """The record that a driver leaves of an episode which submitted."""
    parsed = EpisodeLabel.parse(label)
    facts: dict[str, Any] = {
        "setup": parsed.setup,
        "kernel": "axpy",
        "slot": parsed.slot,
        "node": parsed.node,
        "problem": parsed.problem,
        "worker": parsed.worker,
        "end": End.SUBMITTED,
        "attempts": 1,
        "wall_s": 12.5,
        "harness": "scripted",
        "harness_version": "1",
        "started_at": "2026-01-01T00:00:00+00:00",
        "ended_at": "2026-01-01T00:00:12+00:00",
    }
    return EpisodeRecord(label=label, **(facts | changes))


def submitted(path: Path, grades: list[dict[str, Any]], job_id: str = "7", mode: str = "single") -> Path:
    """A shard with one grade for each set of changes, a second apart, named g0, g1, …"""
    setup = SetupRecord(setup="demo-gold-c", submission_mode=SubmissionMode(mode))
    with Shard.open(path, job_id, 0, {setup.setup: setup}) as shard:
        for number, changes in enumerate(grades):
            asked = {"requested_at": f"2026-01-01T00:00:{number:02}.000+00:00"} | changes
            label, name = asked.pop("label", LABEL), asked.pop("name", f"g{number}")
            found = {fact: asked.pop(fact) for fact in ("outcome", "suspect", "protocol") if fact in asked}
            shard.record(origin(label, **asked), report(name, label, **found))
    return path
