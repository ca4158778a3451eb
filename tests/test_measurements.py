"""docs/measurements/: the page of figures, and the quotes of it, are what the JSON files say."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from calibrations import calibration
from conftest import REPOSITORY, Ran, run_program

from bench.measure.calibration import Calibration, Share

MEASURING = REPOSITORY / "docs" / "measuring.md"
PAGE = "Credited: <!-- MEASURE credited -->not yet<!-- END -->, machine <!-- MEASURE machine -->?<!-- END -->.\n"
BENCH: dict[str, Any] = {
    "command": "python -m tests.benchmarks",
    "made_at": "2026-01-02T03:04:05+00:00",
    "machine": {"cpu_model": "A CPU", "cores": 2, "kernel": "6.1.0", "last_level_cache_bytes": 1 << 25},
    "cores": {"timing": [1], "clock": 0},
    "sandbox": "full",
    "versions": {"package": "0.1.0", "commit": "abc", "python": "3.11.2"},
    "seconds": 61.2,
    "quiet": [],
    "results": [
        {
            "name": "kcourt --help",
            "value": 0.21,
            "unit": "s",
            "goal": 0.3,
            "met": True,
            "min": 0.2,
            "max": 0.25,
            "n": 15,
        },
        {
            **{"name": "grades of axpy at XL (mw4x5)", "value": 1234.5, "unit": "an hour", "met": None, "n": 2},
            "stages_ms": {"build": 140.0, "kernel": 820.0},
        },
        {
            **{"name": "regrade, p90", "value": 6.0, "unit": "%", "goal": 5.0, "met": False, "n": 1},
            "each": [
                {
                    **{"kernel": "axpy", "file": "fast.c", "then": 1.5, "now": 1.59},
                    **{"apart_percent": 6.0, "verdict": "differs"},
                }
            ],
        },
    ],
}


# Two figures of a GPU, and a part that could not be measured.
GPU: dict[str, Any] = {
    "command": "python -m tests.gpu_figures --out gpu.json",
    "made_at": "2026-01-02T03:04:05+00:00",
    "device": "cuda",
    "versions": {"package": "0.1.0", "commit": None},
    "seconds": 500.4,
    "parts": {
        "facts": {
            **{"seconds": 3.0, "allotted_s": 30.0, "figures": [], "each": [], "missing": []},
            "facts": {"name": "A GPU", "driver": "1.2", "torch": None, "triton": "3.6", "before": {"mhz": 345.0}},
        },
        "ladder": {
            **{"seconds": 30.0, "allotted_s": 40.0, "each": [], "missing": ["grades: stopped after 3 of 20"]},
            "figures": [
                {
                    **{"name": "known ratio 2 at XL: median off by", "value": 3.5, "unit": "%", "goal": 3.0},
                    **{"met": False, "n": 5, "note": "4 of 5 intervals hold it"},
                },
                {
                    **{"name": "overhead of a grade", "value": 310.0, "unit": "ms", "goal": 400, "met": True, "n": 3},
                    **{"note": "", "low": 300.0, "high": 330.0, "stages_ms": {"build": 2500.0}},
                },
            ],
            "facts": {"before": {"mhz": 1980.0}, "after": {"mhz": 1755.0, "celsius": 41.0}},
        },
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of measurements, beside a page that quotes two figures and the program that renders both."""
    measurements = tmp_path / "docs" / "measurements"
    measurements.mkdir(parents=True)
    for program in ("figures.py", "pages.py"):
        shutil.copy(REPOSITORY / "docs" / program, measurements.parent)
    (measurements.parent / "measuring.md").write_text(PAGE)
    return measurements


def render(folder: Path, *arguments: str) -> Ran:
    return run_program(sys.executable, folder.parent / "figures.py", *arguments)


def add(folder: Path, day: str, found: Calibration) -> None:
    (folder / f"{day}-a-cpu-calibration.json").write_text(found.model_dump_json())


def figures(folder: Path) -> dict[str, list[str]]:
    """First cell → other cells of each line of the tables."""
    lines = (folder / "figures.md").read_text().splitlines()
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("| ")]
    return {first: rest for first, *rest in cells}


def test_the_projects_own_pages_are_what_the_files_say() -> None:
    ran = render(REPOSITORY / "docs" / "measurements", "--check")
    assert (ran.code, ran.out) == (0, "stale: none\n"), ran.err


def test_a_calibration_becomes_a_section(folder: Path) -> None:
    add(folder, "2026-01-02", calibration())
    assert render(folder).out == "written: figures.md, measuring.md\n"
    text, rows = (folder / "figures.md").read_text(), figures(folder)
    assert "## Calibration, 2026-01-02: A CPU" in text
    assert "`kcourt calibrate`" in text and "Not quiet meanwhile: load 9.0 on 2 cores" in text
    assert "[`2026-01-02-a-cpu-calibration.json`](2026-01-02-a-cpu-calibration.json)" in text
    assert rows["A/A: inputs credited"] == [
        "15.0 % (12.0 % to 19.0 %; 60 of 400), p = 0.50",
        "not significantly above 15.1 %",
        "yes",
    ]
    assert rows["A/A: \\|S - 1\\| in 95 of 100 grades at most"] == ["3.0 %", "at most 5.0 %", "yes"]
    assert rows["Known ratios at XL: a rung's median off by at most"] == ["4.8 %", "within 3.0 %", "**no**"]
    assert rows["1.05"] == ["1.000", "0.990 to 1.010", "2.0 %", "90 of 100"]
    assert rows["axpy"] == ["M", "100", "60 of 400", "3.0 %", "1.040"]
    assert rows["At most, memory"][0] == "copy 8.0 GB/s, read 10.0 GB/s"
    assert render(folder, "--check").out == "stale: none\n"


@pytest.mark.parametrize(("hits", "met"), [pytest.param(84, "yes", id="84"), pytest.param(83, "**no**", id="83")])
def test_the_intervals_are_to_hold_the_truth_in_84_grades_of_100(folder: Path, hits: int, met: str) -> None:
    add(folder, "2026-01-02", calibration(ladder_covered=Share(hits=hits, of=100, rate=hits / 100, low=0, high=1)))
    render(folder)
    assert figures(folder)["Known ratios at XL: intervals that hold the truth"][-1] == met


def test_a_quick_calibration_meets_no_goal_and_is_not_quoted(folder: Path) -> None:
    add(folder, "2026-01-02", calibration(quick=True))
    assert render(folder).out == "written: figures.md\n"
    assert figures(folder)["A/A: inputs credited"][-1] == ""
    assert "`kcourt calibrate --quick`" in (folder / "figures.md").read_text()


def test_the_last_whole_calibration_is_quoted(folder: Path) -> None:
    add(folder, "2026-01-02", calibration(cpu_model="An old CPU"))
    add(folder, "2026-01-03", calibration())
    add(folder, "2026-01-04", calibration(cpu_model="A rough CPU", quick=True))
    render(folder)
    quoting = (folder.parent / "measuring.md").read_text()
    assert re.sub("<!--.*?-->", "", quoting) == (
        "Credited: 15.0 % (12.0 % to 19.0 %; 60 of 400), p = 0.50, machine A CPU, 2 cores, 1 of them timing.\n"
    )
    found = (folder / "figures.md").read_text()
    assert found.index("A rough CPU") < found.index(": A CPU") < found.index("An old CPU")


def test_benchmarks_become_a_section(folder: Path) -> None:
    (folder / "2026-01-02-a-cpu-bench.json").write_text(json.dumps(BENCH))
    assert render(folder).out == "written: figures.md\n"
    rows = figures(folder)
    assert rows["kcourt --help"] == ["0.21 s", "at most 0.3 s", "yes", "0.2 to 0.25", "15"]
    assert rows["regrade, p90"] == ["6 %", "at most 5 %", "**no**", "", "1"]
    assert rows["Seconds of"] == ["build", "kernel"]
    assert rows["grades of axpy at XL (mw4x5)"] == ["0.14", "0.82"]
    assert rows["axpy"] == ["`fast.c`", "1.500", "1.590", "6.0 %", "differs"]
    assert "1,234 an hour" in (folder / "figures.md").read_text()


def test_figures_of_a_gpu_become_a_section(folder: Path) -> None:
    (folder / "gpu-2026-01-02-a-gpu.json").write_text(json.dumps(GPU))
    assert render(folder).out == "written: figures.md\n"
    text, rows = (folder / "figures.md").read_text(), figures(folder)
    assert "## GPU, 2026-01-02: A GPU" in text and "from `python -m tests.gpu_figures --out gpu.json`" in text
    assert "Kernelcourt 0.1.0, no commit; took 500 s" in text
    assert "* Device: driver 1.2\n" in text and "* Compiler and packages: triton 3.6\n" in text
    assert "* At first: mhz 345; at last: mhz 1755, celsius 41\n" in text
    assert "* Not measured (ladder): grades: stopped after 3 of 20\n" in text
    off = ["3.5 %", "at most 3 %", "**no**", "", "5", "4 of 5 intervals hold it"]
    assert rows["known ratio 2 at XL: median off by"] == off
    assert "| overhead of a grade | 310 ms | at most 400 ms | yes | 300 to 330 | 3 |" in text
    assert rows["overhead of a grade"] == ["2.50"]


def test_every_quote_of_the_documents_is_a_figure(folder: Path) -> None:
    shutil.copy(MEASURING, folder.parent)
    add(folder, "2026-01-02", calibration())
    assert render(folder).code == 0
    text = (folder.parent / "measuring.md").read_text()
    assert "not measured yet" not in text and text.count("MEASURE") == text.count("<!-- END -->") > 10


def test_what_is_stale_is_named(folder: Path) -> None:
    add(folder, "2026-01-02", calibration())
    ran = render(folder, "--check")
    assert ran.code == 1
    assert ran.out == "stale: figures.md, measuring.md; run `make docs`\n"
    assert not (folder / "figures.md").exists()


@pytest.mark.parametrize(
    ("page", "content", "message"),
    [
        pytest.param("<!-- MEASURE nosuch -->?<!-- END -->", None, "quotes 'nosuch', which is no figure", id="quote"),
        pytest.param(PAGE, "{}", "2026-01-02-a-cpu-calibration.json: is no calibration of this version", id="file"),
    ],
)
def test_what_cannot_be_rendered_is_named(folder: Path, page: str, content: str | None, message: str) -> None:
    (folder.parent / "measuring.md").write_text(page)
    (folder / "2026-01-02-a-cpu-calibration.json").write_text(content or calibration().model_dump_json())
    ran = render(folder)
    assert ran.code == 1 and message in ran.err and "Traceback" not in ran.err


def test_another_argument_is_refused(folder: Path) -> None:
    assert render(folder, "--chek").code == 2
