"""The monitor of a node: what it writes, that it ends at once, and what a report makes of it."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cli import run
from bench.errors import EnvironmentFault, UsageError
from cluster.job.documents import write_json
from cluster.job.layout import RunLayout
from cluster.job.monitor import NODE_COLUMNS, Counters, GpuUse, Sampler, gpu_reader, moved, parse_nvidia, read_amd
from cluster.job.node_use import nodes_of
from cluster.job.records import begin_record

HEADER = ",".join(NODE_COLUMNS) + "\n"
NVIDIA = """\
0, 97, 71234
1, 0, 4
2, [N/A], [N/A]
"""


def row(second: int, cpu: float) -> str:
    return f"2026-01-01T00:00:{second:02d}.000+00:00,{cpu},1.5,2000000000,8000000000,100,200\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(NVIDIA, [GpuUse(0, 97, 71234 << 20), GpuUse(1, 0, 4 << 20), GpuUse(2, None, None)], id="three"),
        pytest.param("No devices were found\n", [], id="none"),
        pytest.param("", [], id="empty"),
        pytest.param("Failed to initialize NVML: Driver/library version mismatch\n", [], id="mismatch"),
        pytest.param("0, 97\n1, 3, 5, 7\n", [], id="other-columns"),
    ],
)
def test_what_nvidia_smi_prints_is_read(text: str, expected: list[GpuUse]) -> None:
    assert parse_nvidia(text) == expected


@given(st.text(alphabet="0123456789,.[N/A] \nxé-", max_size=60))
def test_whatever_it_prints_ends_in_numbers_or_in_nothing(text: str) -> None:
    assert all(isinstance(use.index, int) for use in parse_nvidia(text))


def amd_card(drm: Path, number: int, busy: str, memory: str | None) -> None:
    device = drm / f"card{number}" / "device"
    device.mkdir(parents=True)
    (device / "gpu_busy_percent").write_text(busy)
    if memory is not None:
        (device / "mem_info_vram_used").write_text(memory)


def test_amd_cards_are_read_in_their_order_from_sysfs(tmp_path: Path) -> None:
    amd_card(tmp_path, 10, "7\n", "4096\n")
    amd_card(tmp_path, 2, "99\n", None)
    (tmp_path / "card0" / "device").mkdir(parents=True)
    assert read_amd(tmp_path) == [GpuUse(0, 99, None), GpuUse(1, 7, 4096)]


def test_a_row_has_a_value_for_each_column_also_when_a_gpu_falls_silent(tmp_path: Path) -> None:
    amd_card(tmp_path, 0, "7\n", "4096\n")
    sampler = Sampler(gpu_reader(tmp_path))
    assert sampler.columns == [*NODE_COLUMNS, "gpu_0_busy_percent", "gpu_0_memory_used_bytes"]
    assert sampler.row()[-2:] == [7, 4096]
    (tmp_path / "card0" / "device" / "gpu_busy_percent").unlink()
    assert sampler.row()[-2:] == [None, None]
    assert len(sampler.row()) == len(sampler.columns)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param({"eth0": (5, 7)}, {"eth0": (15, 8)}, (10, 1), id="one-card"),
        pytest.param({"eth0": (5, 7), "veth": (99, 99)}, {"eth0": (5, 8)}, (0, 1), id="a-card-went"),
        pytest.param({}, {"veth": (9, 3)}, (9, 3), id="a-card-came"),
        pytest.param({"eth0": (5, 7)}, {"eth0": (1, 8)}, (0, 1), id="a-counter-began-again"),
    ],
)
def test_network_bytes_of_an_interval(before: Counters, now: Counters, expected: tuple[int, int]) -> None:
    assert moved(before, now) == expected


def test_a_node_without_gpus_has_no_columns_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Sampler(gpu_reader(tmp_path)).columns == [*NODE_COLUMNS]


def test_nvidia_smi_is_asked_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "nvidia-smi"
    fake.write_text("#!/bin/sh\necho '0, 12, 34'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert list(gpu_reader(tmp_path / "no-drm")()) == [GpuUse(0, 12, 34 << 20)]


def test_the_monitor_writes_whole_rows_at_low_priority_and_ends_at_once(tmp_path: Path) -> None:
    path = tmp_path / "monitor" / "n1.csv"
    argv = [Path(sys.executable).with_name("kcourt"), "monitor", "sample", "--csv", path, "--every", "0.1", "--json"]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    while not path.exists() or path.read_text().count("\n") < 3:
        assert child.poll() is None
        time.sleep(0.05)
    assert psutil.Process(child.pid).nice() == 19
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=60)
    lines = path.read_text().splitlines(keepends=True)
    assert (child.returncode, lines[0]) == (0, HEADER)
    assert json.loads(out) == {"csv": str(path), "samples": len(lines) - 1}
    assert all(line.endswith("\n") and line.count(",") == HEADER.count(",") for line in lines)


def test_a_file_of_another_node_is_not_written_on(tmp_path: Path) -> None:
    path = tmp_path / "n1.csv"
    path.write_text("time,gpu_0_busy_percent\n")
    with pytest.raises(UsageError, match=f"^{path}: its columns are not those"):
        run(["monitor", "sample", "--csv", str(path)])
    assert path.read_text() == "time,gpu_0_busy_percent\n"


def test_a_file_that_cannot_be_written_is_named() -> None:
    with pytest.raises(EnvironmentFault, match=r"^/proc/none/n1\.csv: cannot be written"):
        run(["monitor", "sample", "--csv", "/proc/none/n1.csv"])


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    """A run with two nodes, of which one has two roles; the last row of the other is torn."""
    layout = RunLayout(tmp_path / "4711")
    layout.create()
    layout.monitor.mkdir()
    for name, role, host in (("judge-0", "judge", "n1"), ("judge-1", "judge", "n1"), ("agent-0", "agent", "n1")):
        write_json(begin_record(layout.steps, name), {"name": name, "role": role, "host": host})
    write_json(begin_record(layout.steps, "monitor-n2"), {"name": "monitor-n2", "role": "monitor", "host": "n2"})
    layout.monitor_csv("n1").write_text(HEADER + row(0, 10) + row(5, 20) + row(15, 90))
    layout.monitor_csv("n2").write_text(HEADER + row(0, 10) + "\0\0\n" + row(5, 30) + row(10, 99)[:-5])
    return layout


def test_a_report_sums_each_node_up_with_its_roles(layout: RunLayout) -> None:
    n1, n2 = nodes_of(layout)
    assert (n1.node, n1.roles, n1.samples, n1.damaged, n1.sampled_s) == ("n1", ("agent", "judge"), 3, 0, 15)
    cpu = n1.columns["cpu_percent"]
    assert (cpu.mean, cpu.median, cpu.max) == (40, 20, 90)
    assert (n2.node, n2.samples, n2.damaged, n2.sampled_s) == ("n2", 2, 2, 5)
    assert n2.columns["cpu_percent"].max == 30


@pytest.mark.parametrize("text", ["", "\n", HEADER, HEADER[:20], "\0", HEADER + ",,,,,,\n"])
def test_a_file_without_rows_reports_nothing(layout: RunLayout, text: str) -> None:
    layout.monitor_csv("n1").write_text(text)
    n1, _ = nodes_of(layout)
    assert (n1.samples, n1.sampled_s, dict(n1.columns)) == (0, 0, {})


def test_an_empty_cell_is_no_zero(layout: RunLayout) -> None:
    layout.monitor_csv("n1").write_text(HEADER + row(0, 10) + row(5, 20).replace(",1.5,", ",,"))
    assert nodes_of(layout)[0].columns["load1"].mean == 1.5


def test_the_report_is_printed_and_in_json(kcourt: Callable[..., Any], layout: RunLayout) -> None:
    ran = kcourt("monitor", "report", str(layout.root))
    assert ran.code == 0, ran.err
    assert "n1 (agent, judge): 3 samples over 15 s" in ran.out
    assert "2 damaged rows left out" in ran.out
    assert "memory_used_bytes 2.0 GB 2.0 GB 2.0 GB" in " ".join(ran.out.split())
    found = kcourt("monitor", "report", "4711", "--run-root", str(layout.root.parent), "--json").json
    assert [node["node"] for node in found["nodes"]] == ["n1", "n2"]
    assert found["nodes"][0]["columns"]["cpu_percent"] == {"mean": 40, "median": 20, "max": 90}


def test_a_run_that_was_not_sampled_says_so(kcourt: Callable[..., Any], layout: RunLayout) -> None:
    for path in layout.monitor.iterdir():
        path.unlink()
    assert "no node of this run was sampled" in kcourt("monitor", "report", str(layout.root)).out
