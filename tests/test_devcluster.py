"""The development cluster: nodes of their own, lost and mended, several clusters at once, and nothing left behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import test_docs
import yaml
from conftest import Ran
from living import gone, new_nap
from slurm import JobEnd, Slurm

from bench import cli
from bench.errors import ConfigError, EnvironmentFault
from cluster import devcluster
from cluster.devcluster_files import STATE, folder_of
from cluster.devcluster_nodes import bridge_exists, interfaces_of, namespaces_of, on_node

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm")]

PORT = 18123
LISTENS = f"""
import socket
server = socket.create_server(("", {PORT}))
print("listens", flush=True)
server.accept()
"""


@pytest.fixture
def second(slurm: Slurm) -> Iterator[str]:
    """Name of a second cluster, which a test starts; ends with the test."""
    name = f"u{os.getpid()}"
    yield name
    devcluster.end(name)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code and output of `kcourt devcluster`, run in this process."""
    code = cli.run(["devcluster", *words])
    return code, capsys.readouterr().out


def left_of(name: str) -> list[str]:
    """What is left of a cluster: processes, namespaces, interfaces, folder."""
    folder = folder_of(name)
    found = [*namespaces_of(name), *interfaces_of(name), *filter(bridge_exists, [f"kc-{name}"])]
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        words = [*(process.info["cmdline"] or []), *(process.info["environ"] or {}).values()]
        if any(f"{folder}/" in word for word in words) and process.pid != os.getpid():
            found.append(f"{process.pid}: {process.info['cmdline']}")
    return [*found, *([str(folder)] if folder.exists() else [])]


def test_every_node_is_idle_and_has_an_address_and_a_name_of_its_own(
    slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(said(capsys, "status", "--name", slurm.cluster.name, "--json")[1])
    assert (found["whole"], found["munged"], found["slurmctld"]) == (True, True, True)
    assert [node["state"] for node in found["nodes"]] == ["idle"] * 6
    assert len({node["address"] for node in found["nodes"]}) == 6
    for node in found["nodes"]:
        assert slurm.exec(node["name"], ["uname", "-n"]).stdout.strip() == node["name"]
        assert node["address"] in slurm.exec(node["name"], ["ip", "-4", "addr", "show", "eth0"]).stdout


def test_two_nodes_listen_at_the_same_port_and_reach_each_other(slurm: Slurm) -> None:
    servers = []
    for name in ("n1", "n2"):
        argv = on_node(devcluster.node_of(slurm.cluster, name), [sys.executable, "-c", LISTENS])
        servers.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
    try:
        assert [server.stdout and server.stdout.readline() for server in servers] == ["listens\n"] * 2
        for client, server in (("n3", "n1"), ("n1", "n2")):
            connect = f"import socket; socket.create_connection(({slurm.address(server)!r}, {PORT}), 60)"
            assert slurm.exec(client, [sys.executable, "-c", connect]).stderr == ""
        assert [server.wait(60) for server in servers] == [0, 0]
    finally:
        for server in servers:
            server.kill()
            server.communicate()


def test_exec_runs_a_command_there_and_ends_as_it_does(
    slurm: Slurm, kcourt_process: Callable[..., Ran], capsys: pytest.CaptureFixture[str]
) -> None:
    here = ("--name", slurm.cluster.name, "n4", "--")
    done = kcourt_process("devcluster", "exec", *here, "sh", "-c", "uname -n; exit 7")
    assert (done.code, done.out) == (7, "n4\n")
    code, printed = said(capsys, "exec", "--json", *here, "sh", "-c", "echo $KCOURT_SYSTEM; exit 8")
    assert (code, json.loads(printed)["output"]) == (8, f"{slurm.cluster.name}\n")


def test_what_env_prints_makes_slurm_and_kernelcourt_use_it(slurm: Slurm, capsys: pytest.CaptureFixture[str]) -> None:
    exports = said(capsys, "env", "--name", slurm.cluster.name)[1]
    script = f"{exports}\nsinfo --noheader --format=%R,%D; {Path(sys.executable).with_name('kcourt')} doctor --json"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[:2] == ["batch,6", "shared,6"], done.stderr
    assert f"{slurm.cluster.name}: Development cluster on this machine" in done.stdout
    facts = yaml.safe_load(slurm.cluster.site.read_text())[slurm.cluster.name]
    assert (facts["partition"], facts["nodes"]["gpus"], facts["container_runtime"]) == ("batch", 4, "none")


def test_a_job_runs_with_its_gpus_and_jobs_share_a_node_in_the_partition_for_it(slurm: Slurm, tmp_path: Path) -> None:
    together = tmp_path / "together"
    together.mkdir()
    # Each of the two waits for the other one.
    meets = f"touch {together}/$SLURM_JOB_ID; until [ $(ls {together} | wc -l) = 2 ]; do sleep 0.1; done"
    job = ("-o", f"{tmp_path}/%j.out")
    shared = [
        slurm.sbatch(*job, "--partition=shared", "--nodelist=n5", "-n1", "-t2", "--wrap", meets) for _ in range(2)
    ]
    script = "srun --input=none sh -c 'echo $ROCR_VISIBLE_DEVICES on $(uname -n)'; exit 3"
    whole = slurm.sbatch(*job, "--nodelist=n6", "-N1", "-n1", "--gpus-per-node=2", "--wrap", script)
    assert slurm.wait(whole) == JobEnd("FAILED", 3, 0)
    assert (tmp_path / f"{whole}.out").read_text() == "0,1 on n6\n"
    assert [slurm.wait(job_id) for job_id in shared] == [JobEnd("COMPLETED", 0, 0)] * 2


def test_a_step_that_takes_more_memory_than_it_has_is_killed(slurm: Slurm, tmp_path: Path) -> None:
    grows = "import time; kept = [bytearray(b'x' * 300_000_000)]; time.sleep(60)"
    script = f'srun --overlap --mem=100 --input=none {sys.executable} -c "{grows}"; echo srun: $?'
    job = slurm.sbatch("-N1", "-n1", "-o", f"{tmp_path}/out", "--wrap", script)
    assert slurm.wait(job) == JobEnd("COMPLETED", 0, 0)
    printed = (tmp_path / "out").read_text()  # by the script and by Slurm, in no order
    assert "exceeded memory limit" in printed and "srun: 137" in printed.splitlines()


def test_a_node_that_is_cut_off_or_killed_is_missed_and_comes_back(slurm: Slurm) -> None:
    nap = new_nap()
    shell = ["sh", "-c", f"unshare --net sh -c 'echo began; sleep {nap}' & wait"]  # as a sandbox has it
    process = subprocess.Popen(
        on_node(devcluster.node_of(slurm.cluster, "n3"), shell), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "began\n"
    slurm.cut("n2")
    slurm.kill("n3")
    process.communicate(timeout=60)
    assert process.returncode == -9 and gone(nap)
    reach = [sys.executable, "-c", f"import socket; socket.create_connection(({slurm.address('n2')!r}, 6818), 2)"]
    assert slurm.exec("n1", reach).returncode != 0
    began = time.monotonic()
    for node in ("n2", "n3"):
        slurm.wait_for_node(node, "down*")
    assert time.monotonic() - began < 60
    for node in ("n2", "n3"):
        slurm.heal(node)
    assert set(slurm.node_states().values()) == {"idle"}
    assert slurm.exec("n1", reach).returncode == 0


def test_a_second_cluster_lives_beside_the_first_and_leaves_nothing(
    slurm: Slurm, second: str, kcourt_process: Callable[..., Ran], capsys: pytest.CaptureFixture[str]
) -> None:
    named = ("--name", second)
    done = kcourt_process("devcluster", "up", "--nodes", "2", "--gpus", "0", *named)
    assert done.out.startswith(f"cluster {second} is up: 2 nodes; to use it:\n"), done.err
    assert said(capsys, "up", *named)[1].startswith(f"cluster {second} is up already: 2 nodes")
    other = json.loads(said(capsys, "status", "--json", *named)[1])
    assert other["controller"].partition(":")[0] != slurm.cluster.address
    assert set(slurm.node_states().values()) == {"idle"}

    assert said(capsys, "kill", "n1", *named)[0] == 0
    with pytest.raises(EnvironmentFault, match="not whole: n1 "):
        said(capsys, "up", *named)
    code, printed = said(capsys, "status", *named)
    assert (code, re.findall(r"n[12] .*(?:lives|is gone)", printed)[0][-7:]) == (1, "is gone")
    assert said(capsys, "heal", "n1", *named) == (0, "n1 takes work again\n")

    assert said(capsys, "down", *named) == (0, f"cluster {second} is gone\n")
    assert left_of(second) == []
    assert said(capsys, "down", *named) == (0, f"there is no cluster {second}\n")
    assert devcluster.status(slurm.cluster).lacking == ()


def test_the_page_prints_what_it_shows(slurm: Slurm, second: str, tmp_path: Path) -> None:
    page = test_docs.ROOT / "docs" / "devcluster.md"
    named = re.sub(
        r"(kcourt devcluster \w+)", rf"\1 --name {second}", "".join(body for _, body in test_docs.steps(page))
    )
    environ = devcluster.environment(slurm.cluster)
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    printed = test_docs.run_script(f"exec 2>&1\n{named}", tmp_path, environ)
    said = test_docs.plain_lines(printed.replace(f" --name {second}", "").replace(second, "dev"), tmp_path)
    shown = [match["body"] for match in test_docs.FENCE.finditer(page.read_text()) if match["info"] == "text printed"]
    assert said == [line for body in shown for line in test_docs.plain_lines(body, tmp_path)]


def test_what_half_a_start_left_is_cleared(slurm: Slurm, second: str, capsys: pytest.CaptureFixture[str]) -> None:
    cluster, _ = devcluster.start(second, devcluster.Shape(nodes=2))
    os.kill(int(cluster.pid_file("slurmctld").read_text()), signal.SIGKILL)
    cluster.pid_file("n1").unlink()
    (cluster.folder / STATE).write_text("{")
    with pytest.raises(ConfigError, match="damaged; `kcourt devcluster down"):
        said(capsys, "status", "--name", second)
    assert said(capsys, "down", "--name", second)[0] == 0
    assert left_of(second) == []


def test_after_a_restart_of_the_machine_it_starts_anew(slurm: Slurm, second: str) -> None:
    before, _ = devcluster.start(second, devcluster.Shape(nodes=2))
    devcluster.end(second)
    before.folder.mkdir()
    (before.folder / STATE).write_text(before.model_dump_json())
    cluster, was_up = devcluster.start(second, devcluster.Shape(nodes=1))
    assert (was_up, cluster.nodes, devcluster.status(cluster).lacking) == (False, 1, ())


def test_networks_that_nobody_knows_of_are_not_taken_over(
    slurm: Slurm, second: str, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["ip", "netns", "add", f"kc-{second}-n1"], check=True)
    with pytest.raises(EnvironmentFault, match=f"networks of a cluster '{second}'"):
        said(capsys, "up", "--nodes", "2", "--name", second)
    assert said(capsys, "down", "--name", second)[0] == 0
    assert left_of(second) == []
