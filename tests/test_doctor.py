"""`kcourt doctor`: what it finds on this machine, on one that lacks things, and which errors name it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import sandbox
from cluster.doctor import examine
from cluster.doctor.check import Check, State
from cluster.doctor.machine import VARIABLES
from cluster.doctor.site import SLURM

ROOT = Path(__file__).resolve().parent.parent
SRUN = "#!/bin/sh\necho '  --environment=name  of the container'\n"


def found(environ: dict[str, str] | None = None, **about: Any) -> dict[str, Check]:
    return {check.name: check for check in examine(environ or {}, **about)}


@pytest.fixture
def bare_path(tmp_path, monkeypatch) -> Iterator[Path]:
    """PATH is one folder, which holds prlimit and `true` alone; what was found on the usual one is forgotten."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("prlimit", "true", "sh"):
        if path := shutil.which(program):
            (folder / program).symlink_to(path)
    monkeypatch.setenv("PATH", str(folder))
    sandbox._reached.cache_clear()
    yield folder
    sandbox._reached.cache_clear()


def program(folder: Path, name: str, text: str = "#!/bin/sh\n") -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def test_every_check_has_advice_where_it_is_not_ok():
    checks = examine(os.environ)
    assert [check.name for check in checks if check.state is not State.OK and not check.advice] == []
    assert {"python", "compiler c", "sandbox", "cores", "cache", "slurm", "variables", "ports"} <= {
        check.name for check in checks
    }


def test_the_command_prints_one_object_and_ends_by_what_blocks(kcourt):
    done = kcourt("doctor", "--json")
    assert done.json["ok"] == (not any(check["state"] == "blocks" for check in done.json["checks"]))
    assert done.code == (0 if done.json["ok"] else 64)


def test_a_system_of_slurm_without_slurm_blocks(bare_path):
    check = found({"KCOURT_SYSTEM": "beverin"})["slurm"]
    assert (check.state, check.found.startswith("missing: sbatch")) == (State.BLOCKS, True)
    assert "login node" in check.advice
    assert found()["slurm"].state is State.OK


def test_slurm_and_the_container_engine_are_found(bare_path):
    for name in SLURM:
        program(bare_path, name, SRUN)
    checks = found({"KCOURT_SYSTEM": "beverin"})
    assert checks["slurm"] == Check("slurm", State.OK, str(bare_path / "sbatch"))
    assert checks["container runtime"].found == "ce: srun takes --environment"


def test_an_srun_without_the_container_engine_is_a_warning(bare_path):
    program(bare_path, "srun")
    check = found({"KCOURT_SYSTEM": "beverin"})["container runtime"]
    assert (check.state, check.found) == (State.WARNING, "ce: no srun here that takes --environment")


def test_a_site_with_apptainer_wants_it(bare_path, tmp_path):
    (tmp_path / "site.yaml").write_text("ours: {container_runtime: apptainer}\n")
    environ = {"KCOURT_SYSTEMS_FILE": str(tmp_path / "site.yaml")}
    assert found(environ)["container runtime"].state is State.WARNING
    program(bare_path, "apptainer")
    assert found(environ)["container runtime"].state is State.OK


def test_a_missing_compiler_blocks_where_grading_happens(monkeypatch):
    from bench.build import toolchain

    monkeypatch.setattr(toolchain, "toolchains_text", lambda: b"c: {compiler: gcc-of-nobody, flags: [], libraries: []}")
    check = found()["compiler c"]
    assert (check.state, check.found) == (State.BLOCKS, "the compiler 'gcc-of-nobody' was not found")
    assert check.advice.startswith("on Debian: apt-get install")
    assert found({"KCOURT_SYSTEM": "beverin"})["compiler c"].state is State.WARNING


def test_one_core_blocks(monkeypatch):
    from bench.measure import cores

    monkeypatch.setattr(cores, "available_cores", lambda: (0,))
    assert found()["cores"].state is State.BLOCKS


def test_a_weak_sandbox_is_a_warning_that_says_why(monkeypatch):
    monkeypatch.setenv("KCOURT_SANDBOX", "limits")
    check = found()["sandbox"]
    assert (check.state, check.found) == (State.WARNING, "level limits by prlimit")
    assert "KCOURT_SANDBOX=limits is set" in check.advice and "--allow-sandbox limits" in check.advice


def test_no_prlimit_blocks(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    check = found()["sandbox"]
    assert (check.state, check.advice) == (
        State.BLOCKS,
        "install util-linux, the judge limits every build and run with it",
    )


def test_a_full_disk_blocks(monkeypatch):
    monkeypatch.setattr("cluster.doctor.machine.LEAST_BYTES", 1 << 60)
    assert found()["cache"].state is State.BLOCKS
    monkeypatch.setattr("cluster.doctor.machine.LEAST_BYTES", 0)
    monkeypatch.setattr("cluster.doctor.machine.ROOMY_BYTES", 1 << 60)
    checks = found()
    assert (checks["run directories"].state, checks["cache"].state) == (State.WARNING, State.OK)


def test_a_folder_that_nobody_may_write_to_blocks(monkeypatch):
    monkeypatch.setenv("KCOURT_CACHE", "/proc/1")
    assert found()["cache"].state is State.BLOCKS


@pytest.mark.parametrize(
    ("environ", "state", "expected"),
    [
        pytest.param({"KCOURT_TASK_DIR": "x"}, State.WARNING, "did you mean 'KCOURT_TASKS_DIR'?", id="unknown"),
        pytest.param({"KCOURT_TASKS_DIR": "/proc/none"}, State.BLOCKS, "correct the variable", id="not-there"),
        pytest.param({"KCOURT_TASKS_DIR": "/proc"}, State.OK, "", id="there"),
    ],
)
def test_variables_are_checked(environ, state, expected):
    check = found(environ)["variables"]
    assert check.state is state
    assert expected in check.advice


def test_an_unknown_system_blocks():
    check = found({"KCOURT_SYSTEM": "bevrin"})["system"]
    assert (check.state, "did you mean 'beverin'" in check.found + check.advice) == (State.BLOCKS, True)


def test_every_variable_of_ours_is_known():
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert set(VARIABLES) == set(re.findall(r"^\| `(KCOURT_[A-Z_]+)` \|", page.split("## Environment")[1], re.M))


def test_errors_that_the_machine_is_to_blame_for_name_the_doctor(kcourt, tmp_path, monkeypatch):
    monkeypatch.setenv("KCOURT_SANDBOX", "limits")
    done = kcourt("grade", "axpy", ROOT / "tasks" / "dense" / "axpy" / "baseline.c", "--json")
    assert done.code == 3
    assert done.err.endswith("hint: `kcourt doctor` says what this machine has and lacks\n")
    assert "doctor" not in done.json["error"]["message"]
    assert "doctor" not in kcourt("grade", "axpyy", tmp_path).err


def test_the_doctor_works_without_what_grades():
    heavy = ("numpy", "scipy", "sqlalchemy", "fastapi", "uvicorn", "prometheus_client")
    script = f"import sys; sys.modules.update(dict.fromkeys({heavy!r})); from bench.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script, "doctor"], capture_output=True, text=True, check=False)
    assert "missing: fastapi, numpy" in done.stdout, done.stderr
