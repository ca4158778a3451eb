"""`kcourt doctor` about a site and a setup: by what Slurm's commands print, and by the files that a setup names."""

import os
import sys
from pathlib import Path

import pytest
from test_doctor import found, program

from bench.places import checkout
from cluster.doctor.check import State, Subject
from cluster.doctor.machine import ports
from cluster.doctor.nodes import NAME, parse_sights, srun_argv
from cluster.doctor.site import SLURM, parse_partitions
from cluster.doctor.storage import file_system, is_shared, type_of
from cluster.study.systems import choose_system

SINFO = """batch*|up|2/3/1/6|1:00:00
small|up|0/0/2/2|10:00
old|down|0/2/0/2|infinite
"""
ACCOUNTS = "proj1\nproj2\nproj1\n"
NO_ACCOUNTS = "You are not running a supported accounting_storage plugin\n"
BY_SLURM = {"KCOURT_SYSTEM": "site"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system named `site` that submits through Slurm, whose commands are fakes in the folder that is given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    facts = tmp_path / "site.yaml"
    facts.write_text("site: {container_runtime: none, nodes: {gpus: 0, sockets: 2}}\n")
    monkeypatch.setitem(BY_SLURM, "KCOURT_SYSTEMS_FILE", str(facts))
    for name in SLURM:
        program(folder, name)
    says(folder, "sinfo", SINFO)
    says(folder, "sacctmgr", ACCOUNTS)
    return folder


def says(folder: Path, name: str, text: str, code: int = 0) -> None:
    """Make a program that prints a text and ends with a code."""
    (folder / f"{name}.txt").write_text(text)
    program(folder, name, f"#!/bin/sh\ncat {folder / name}.txt\nexit {code}\n")


PARTITIONS = {
    "default": ({}, State.OK, "batch is up, 3 of 6 nodes idle, wall clock up to 1:00:00", ""),
    "named": ({"SBATCH_PARTITION": "small"}, State.OK, "small is up, 0 of 2 nodes idle", ""),
    "unknown": ({"SBATCH_PARTITION": "bach"}, State.BLOCKS, "there is no partition 'bach'", "did you mean 'batch'?"),
    "down": ({"SBATCH_PARTITION": "old"}, State.BLOCKS, "old is down", "name another with SBATCH_PARTITION"),
}


@pytest.mark.parametrize(("environ", "state", "says_", "advice"), PARTITIONS.values(), ids=PARTITIONS)
def test_a_partition_is_there_and_up(site, environ, state, says_, advice):
    check = found(BY_SLURM | environ)["partition"]
    assert (check.state, says_ in check.found, advice in check.advice) == (state, True, True)


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        pytest.param("slurm_load_partitions: Unable to contact slurm controller\n", 1, "Unable to contact", id="dead"),
        pytest.param("", 0, "it printed nothing", id="silent"),
        pytest.param("small|up|0/0/2/2|10:00\n", 0, "the cluster has no default", id="no-default"),
    ],
)
def test_no_partition_blocks(site, text, code, expected):
    says(site, "sinfo", text, code)
    check = found(BY_SLURM)["partition"]
    assert (check.state, expected in check.found) == (State.BLOCKS, True)


ASKED = {
    "yours": ({"SBATCH_ACCOUNT": "Proj2"}, (ACCOUNTS, 0), State.OK, "Proj2; yours are proj1, proj2"),
    "default": ({}, (ACCOUNTS, 0), State.OK, "the cluster's default; yours are proj1, proj2"),
    "foreign": ({"SBATCH_ACCOUNT": "proj3"}, (ACCOUNTS, 0), State.BLOCKS, "'proj3' is no account of yours"),
    "no-accounting": ({"SBATCH_ACCOUNT": "p"}, (NO_ACCOUNTS, 1), State.OK, "p, not checked: You are not running"),
    "none": ({}, ("", 0), State.OK, "the cluster's default, not checked: sacctmgr lists none of yours"),
}


@pytest.mark.parametrize(("environ", "answer", "state", "says_"), ASKED.values(), ids=ASKED)
def test_an_account_is_checked_where_there_are_accounts(site, environ, answer, state, says_):
    says(site, "sacctmgr", *answer)
    check = found(BY_SLURM | environ)["account"]
    assert (check.state, says_ in check.found) == (state, True), check


def test_lines_of_another_form_are_no_partitions():
    assert parse_partitions("sinfo: warning: x\nbatch*|up|1/2/3\n\n") == {}


# Looks on this machine as if it were two nodes; a test makes one of them differ.
SRUN = """#!/bin/sh
echo "$*" >> {log}
echo "srun: job 7 queued and waiting for resources"
while [ "$1" != sh ]; do shift; done
shift
for node in n1 n2; do for path; do
  inode=$(stat -Lc %i "$path"); {change}
  echo "seen $node $inode $path"
done; done
exit {code}
"""
SIGHTS = {
    "all": ("", 0, State.OK, "all 2 idle nodes see"),
    "missing": ("[ $node = n2 ] && inode=-", 0, State.BLOCKS, "not there: "),
    "another": ("[ $node = n2 ] && inode=1", 0, State.WARNING, "not the same as here: "),
    "one-is-silent": ("[ $node = n2 ] && continue", 1, State.WARNING, "1 of 2 idle nodes answered"),
    "none": ("exit 1", 1, State.BLOCKS, "srun failed: srun: job 7 queued"),
}


@pytest.mark.parametrize(("change", "code", "state", "says_"), SIGHTS.values(), ids=SIGHTS)
def test_every_idle_node_is_asked_for_the_paths(site, tmp_path, change, code, state, says_):
    says(site, "sinfo", "batch*|up|0/2/0/2|1:00:00\n")
    program(site, "srun", SRUN.format(log=tmp_path / "log", change=change, code=code))
    check = found(BY_SLURM | {"SBATCH_ACCOUNT": "proj1"}, nodes=True)[NAME]
    assert (check.state, says_ in check.found) == (state, True), check
    asked = (tmp_path / "log").read_text()
    assert "--nodes=2 --ntasks-per-node=1 --account=proj1 " in asked and "--input=none" in asked
    assert all(str(path) in asked for path in (checkout(), sys.executable))


def test_no_node_is_asked_unless_told(site):
    program(site, "srun", "#!/bin/sh\nexit 9\n")
    assert found(BY_SLURM)[NAME].found.startswith("not checked: `kcourt doctor --nodes`")
    says(site, "sinfo", "batch*|up|2/0/0/2|1:00:00\n")
    assert found(BY_SLURM, nodes=True)[NAME].found == "no node of batch is idle"
    assert found({}, nodes=True)[NAME].found.startswith("not needed")


def test_a_path_with_blanks_is_one_path():
    argv = srun_argv(3, {"qos": "debug"}, [Path("/a b")])
    assert (argv[1], argv[-1], "--qos=debug" in argv) == ("--nodes=3", "/a b", True)
    (sight,) = parse_sights("srun: info\nseen n1 12 /a b\n")
    assert (sight.node, sight.inode, sight.path) == ("n1", 12, "/a b")


MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /data rw - nfs4 server:/data rw
31 30 0:41 / /data/fast\040disk rw shared:7 master:2 - lustre mgs:/fast rw
32 22 0:42 / /shm rw - tmpfs tmpfs rw
33 30 0:43 / /data/old rw - ext4 /dev/sdb rw
34 30 0:44 / /data/old rw - fuse.sshfs host:/ rw
"""
KINDS = {
    "/": ("ext4", False),
    "/database/x": ("ext4", False),
    "/data/x": ("nfs4", True),
    "/data/fast disk/runs": ("lustre", True),
    "/shm": ("tmpfs", False),
    "/data/old/x": ("fuse.sshfs", True),
}


@pytest.mark.parametrize(("path", "kind"), KINDS.items(), ids=KINDS)
def test_the_type_of_a_file_system_is_that_of_the_nearest_mount(path, kind):
    found_kind = type_of(Path(path), MOUNTS)
    assert (found_kind, is_shared(found_kind)) == kind


@pytest.mark.parametrize(
    ("kind", "environ", "state", "says_"),
    [
        pytest.param("lustre", {}, State.OK, "lustre: several machines may have it", id="shared"),
        pytest.param("ext4", {}, State.OK, "ext4: shards use no WAL", id="local"),
        pytest.param("ext4", {"KCOURT_SYSTEM": "beverin"}, State.WARNING, "this machine's own", id="local-for-slurm"),
        pytest.param("tmpfs", {}, State.WARNING, "tmpfs at", id="memory"),
    ],
)
def test_the_file_system_of_shards(tmp_path, kind, environ, state, says_):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"22 1 8:1 / / rw - {kind} device rw\n")
    check = file_system(Subject(environ, choose_system(environ)), mounts)
    assert (check.state, says_ in check.found) == (state, True)


@pytest.mark.parametrize(("floor", "state"), [(32768, State.OK), (8801, State.WARNING)], ids=["below", "within"])
def test_ports_lie_below_what_connections_get(tmp_path, monkeypatch, floor, state):
    monkeypatch.setattr("cluster.doctor.machine._taken", lambda port: False)
    limits = tmp_path / "range"
    limits.write_text(f"{floor}\t60999\n")
    assert ports(Subject({}), limits).state is state
    assert ports(Subject({}, choose_system({"KCOURT_SYSTEM": "beverin"})), limits).found.startswith("8800-8807")


def env_file(folder: Path, **keys: object) -> str:
    """The env file of a setup that does nothing unusual but for `keys`."""
    values = {
        "SETUP": "one", "HARNESS": "scripted", "AGENT_SCRIPT_RULE": "gold", "KERNELS": "axpy",
        "INFERENCE_NODES": 0, "CONTAINER_RUNTIME": "none", "RUN_ROOT": folder,
    }  # fmt: skip
    path = folder / "one.env"
    given = {key: value for key, value in (values | keys).items() if value is not None}
    path.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    return str(path)


SERVED = {"INFERENCE_NODES": 1}
SERVICE = {
    "INFERENCE_SOURCE": "service", "INFERENCE_SERVICE_BASE_URL": "https://h/v1", "INFERENCE_SERVICE_MODEL": "m",
    "INFERENCE_SERVICE_KEY_ENV": "A_KEY",
}  # fmt: skip
CE = {"CONTAINER_RUNTIME": "ce", "AGENT_EDF": "agent", "JUDGE_EDF": "judge"}
APPTAINER = {"CONTAINER_RUNTIME": "apptainer"}
NEEDS = {
    "whole": ({}, "setup", State.OK, "one: 1 problems, 2 nodes"),
    "unknown-kernel": ({"KERNELS": "axpyy"}, "setup", State.BLOCKS, "axpyy"),
    "unknown-key": ({"KERNEL": "axpy"}, "setup", State.BLOCKS, "unknown key KERNEL"),
    "client": ({}, "agent client", State.OK, "not needed: scripted"),
    "no-harness": (
        {"HARNESS": "nobody", "AGENT_SCRIPT_RULE": None}, "agent client", State.BLOCKS,
        "no harness 'nobody' is installed",
    ),
    "edf": (CE, "EDF AGENT_EDF", State.OK, "agent.toml"),
    "edf-without-image": (CE, "EDF JUDGE_EDF", State.BLOCKS, "its image /nowhere.sqsh is not there"),
    "no-edf": (CE | {"AGENT_EDF": "agnt"}, "EDF AGENT_EDF", State.BLOCKS, "no EDF 'agnt' in"),
    "edf-damaged": (CE | {"AGENT_EDF": "damaged"}, "EDF AGENT_EDF", State.BLOCKS, "damaged.toml: "),
    "edf-unset": (CE | {"AGENT_EDF": ""}, "EDF AGENT_EDF", State.BLOCKS, "AGENT_EDF is not set"),
    "image": (APPTAINER | {"BENCH_IMAGE": "/bin/sh"}, "image BENCH_IMAGE", State.OK, "/bin/sh"),
    "no-image": (APPTAINER | {"BENCH_IMAGE": "/no.sif"}, "image BENCH_IMAGE", State.BLOCKS, "/no.sif is not there"),
    "image-unset": (APPTAINER, "image BENCH_IMAGE", State.BLOCKS, "BENCH_IMAGE is not set"),
    "model-unset": (SERVED, "model weights", State.BLOCKS, "INFERENCE_MODEL is not set"),
    "model-folder": (SERVED | {"INFERENCE_MODEL": "/proc"}, "model weights", State.BLOCKS, "holds no config.json"),
    "model-here": (SERVED | {"INFERENCE_MODEL": "org/small"}, "model weights", State.OK, "org/small in"),
    "model-not-here": (SERVED | {"INFERENCE_MODEL": "org/large"}, "model weights", State.WARNING, "org/large is not"),
    "other-revision": (
        SERVED | {"INFERENCE_MODEL": "org/small", "INFERENCE_CHECKPOINT": "r2"}, "model weights", State.WARNING, "r2",
    ),
    "no-hf-home": (
        SERVED | {"INFERENCE_MODEL": "org/small", "HF_HOME": "/nowhere"}, "model weights", State.BLOCKS, "/nowhere",
    ),
    "key": (SERVICE, "key A_KEY", State.OK, "exported: the key of the hosted model"),
    "no-key": (SERVICE | {"INFERENCE_SERVICE_KEY_ENV": "NO_KEY"}, "key NO_KEY", State.BLOCKS, "is not exported"),
    "search": ({"AGENT_TOOLS_ON": "search"}, "key SERPAPI_API_KEY", State.BLOCKS, "the key of the tool 'search'"),
}  # fmt: skip


@pytest.mark.parametrize(("keys", "name", "state", "says_"), NEEDS.values(), ids=NEEDS)
def test_a_setup_has_what_it_needs(tmp_path, monkeypatch, keys, name, state, says_):
    edfs = tmp_path / ".edf"
    edfs.mkdir()
    (edfs / "agent.toml").write_text('image = "registry.org/agent:1"\n')
    (edfs / "judge.toml").write_text('image = "/nowhere.sqsh"\n')
    (edfs / "damaged.toml").write_text("image =\n")
    (tmp_path / "hub" / "models--org--small" / "snapshots" / "r1").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    checks = found({"A_KEY": "very-secret"}, setup=env_file(tmp_path, **{"HF_HOME": tmp_path, **keys}))
    assert (checks[name].state, says_ in checks[name].found) == (state, True), checks[name]
    assert checks[name].state is State.OK or checks[name].advice
    assert "very-secret" not in str(checks)


def test_a_setup_that_nobody_rendered_blocks():
    check = found(setup="nobody")["setup"]
    assert (check.state, "`kcourt study plan STUDY`" in check.advice) == (State.BLOCKS, True)


def test_a_setup_larger_than_its_partition_blocks(site, tmp_path):
    check = found(BY_SLURM, setup=env_file(tmp_path, AGENT_NODES=9))["partition"]
    assert (check.state, "the setup needs 10" in check.found) == (State.BLOCKS, True)
