"""How far a regrade lies from its grade: 30 stored grades of right submissions at XL, each made again.

Goal: raw ratios within 5 % at the 90th percentile.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.adhoc import adhoc_database, grade_file
from bench.audit import Agreement
from bench.court import Court, open_court
from bench.errors import JudgeFault
from bench.judge.schemas import Language, Outcome, Preset
from bench.regrade import Regrade, regrade
from bench.task import select

GRADES, PRESET, PROTOCOL = 30, Preset.XL, "mw4x5"
GOALS = {50: None, 90: 5.0, 100: None}


def submissions(count: int = GRADES) -> list[tuple[str, Path]]:
    """Kernel and file of right C controls: the fast one of each kernel first, then the honest ones."""
    tasks = [task for task in select("core") if Language.C in task.manifest.languages]
    files = [(task.name, path) for kind in ("fast", "honest") for task in tasks for path in task.controls(kind)]
    return [(kernel, path) for kernel, path in files if path.suffix == Language.C.suffix][:count]


def measure(count: int = GRADES, preset: Preset = PRESET) -> list[dict[str, Any]]:
    """Percentiles of |new / old - 1| of the raw ratio, in percent."""
    court = open_court("limits")
    chosen = submissions(count)
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, RUN_ROOT=folder):
        ids = [_stored(court, kernel, path, preset) for kernel, path in chosen]
        made = [regrade(adhoc_database(), grade_id, court) for grade_id in ids]
    each = [_row(path, found) for (_, path), found in zip(chosen, made, strict=True)]
    reproduced = sum(found.agreement is Agreement.REPRODUCED for found in made)
    return [
        {
            "name": f"regrade against its grade at {preset}, raw ratio, p{percent}",
            "value": float(np.percentile([row["apart_percent"] for row in each], percent)),
            "unit": "%",
            "goal": goal,
            "n": len(each),
            **({"reproduced": reproduced, "each": each} if goal else {}),
        }
        for percent, goal in GOALS.items()
    ]


def _stored(court: Court, kernel: str, path: Path, preset: Preset) -> str:
    """Id of a grade that is now in the database."""
    graded = grade_file(court, kernel, path, Language.C, preset, PROTOCOL)
    if graded.lost or graded.report.outcome is not Outcome.SOLVED:
        found = graded.lost or f"{graded.report.outcome}: {graded.report.provenance.get('finding')}"
        raise JudgeFault(f"{path}: a right submission was not solved and stored, but {found}")
    return graded.report.grade_id


def _row(path: Path, found: Regrade) -> dict[str, Any]:
    then, now = found.then.raw_ratio, found.now.raw_ratio
    if then is None or now is None:
        raise JudgeFault(f"{path}: solved when it was graded, but the regrade is {found.now.outcome}")
    return {
        "kernel": found.then.kernel,
        "file": path.name,
        "then": then,
        "now": now,
        "apart_percent": abs(now / then - 1) * 100,
        "verdict": str(found.agreement),
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
