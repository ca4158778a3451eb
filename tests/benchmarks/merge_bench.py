"""How long a merge of 16 shards with 2,000 grades each takes (goal: 3 s), on synthetic shards."""

import json
import secrets
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from bench.judge.schemas import Kind, Language, Outcome, Preset, SetupRecord
from bench.records import Cell, GradeReport, SourceFile
from bench.results.database import engine
from bench.results.merge import merge
from bench.results.models import Grade, GradeCell, GradeSource, Source
from bench.results.rows import GradeOrigin, cell_rows, grade_row, grade_source_rows, source_rows
from bench.results.shard import Shard
from bench.seeds import commitment, request_seed

SHARDS, GRADES, CELLS, SOURCE_BYTES = 16, 2000, 4, 2048
SETUP = "bench-gold-c"
ROOT = bytes(range(32))


def synthetic(rank: int, number: int) -> tuple[GradeOrigin, GradeReport]:
    """One solved grade as a judge would record it, with a submission of its own and shared reference texts."""
    grade_id = f"{rank:04x}{number:04x}-{secrets.token_hex(12)}"
    label = f"{SETUP}.n0.p{number % 100}.w{rank}"
    text = f"/* {grade_id} */".encode().ljust(SOURCE_BYTES)
    times = tuple(1_000_000 + number * 7 + run for run in range(5))
    report = GradeReport(
        grade_id=grade_id,
        outcome=Outcome.SOLVED,
        score=1.5,
        raw_ratio=1.5,
        interval=(1.4, 1.6),
        faster=True,
        protocol="mw4x5",
        preset=Preset.M,
        cells=tuple(
            Cell(
                index=index,
                sizes={"n": 1000 + index},
                ratio=1.5,
                raw=1.5,
                p=0.03,
                credited=True,
                candidate_ns=times,
                denominator_ns=times,
                order="cddccddccd",
            )
            for index in range(CELLS)
        ),
        denominator="baseline.c",
        seed_commitment=commitment(request_seed(ROOT, label, grade_id)),
        sandbox="limits",
        provenance={"build": ["gcc", "-O3", "kernel.c"], "cores": [0, 1], "compiler": "gcc 12.2"},
        sources=(
            SourceFile(role="submission", name="axpy.c", content=text),
            SourceFile(role="reference", name="reference.py", content=b"def reference(): ..."),
        ),
        stages_ms={"build": 90.0, "verify": 30.0, "time": 200.0},
    )
    origin = GradeOrigin(
        kind=Kind.SCORE,
        kernel="axpy",
        language=Language.C,
        answer=report.model_dump_json(include={"grade_id", "outcome", "score", "interval", "faster"}),
        requested_at=f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}.000+00:00",
        finished_at=f"2026-01-01T01:{number // 60 % 60:02}:{number % 60:02}.000+00:00",
        host="bench",
        package_version="0",
        setup=SETUP,
        label=label,
        idempotency_key=grade_id,
    )
    return origin, report


def fill(path: Path, rank: int, grades: int) -> None:
    """Make a shard of synthetic grades, in one transaction because only its content matters here."""
    setup = SetupRecord(setup=SETUP, language=Language.C, preset=Preset.M)
    with Shard.open(path, "bench", rank, {SETUP: setup}) as shard:
        identity = shard.identity
    made = [synthetic(rank, number) for number in range(grades)]
    texts = {row["sha256"]: row for _, report in made for row in source_rows(report)}
    opened = engine(path, "rw", pragmas=("synchronous = OFF",))
    with opened.begin() as connection:
        connection.execute(insert(Source), list(texts.values()))
        connection.execute(insert(Grade), [grade_row(identity, origin, report) for origin, report in made])
        connection.execute(insert(GradeSource), [row for _, report in made for row in grade_source_rows(report)])
        connection.execute(insert(GradeCell), [row for _, report in made for row in cell_rows(report)])
    opened.dispose()


def measure(runs: int = 3) -> dict[str, Any]:
    """Median seconds of `runs` merges of the same shards into a new file each, the seeds revealed."""
    with tempfile.TemporaryDirectory() as folder:
        shards = [Path(folder) / f"rank-{rank}.db" for rank in range(SHARDS)]
        for rank, path in enumerate(shards):
            fill(path, rank, GRADES)
        seconds = []
        for run in range(runs):
            start = time.perf_counter()
            merge(Path(folder) / f"results-{run}.db", shards, root=ROOT)
            seconds.append(time.perf_counter() - start)
    name = f"merge of {SHARDS} shards x {GRADES} grades"
    return {"name": name, "median_s": statistics.median(seconds), "n": runs, "goal": 3.0}


if __name__ == "__main__":
    print(json.dumps(measure()))
