"""Hosts of a job, from what Slurm prints: host lists, nodes of several versions, the job's variables, ports."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import ConfigError, EnvironmentFault, UsageError
from cluster.job.allocation import Host
from cluster.job.hosts import allocated_hosts, cpus_per_node, expand, gpu_count, port_block, read_nodes

ONE_LINE_22 = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=4  CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=1.10 "
    "AvailableFeatures=(null) ActiveFeatures=(null) Gres=gpu:4 NodeAddr=10.99.0.1 NodeHostName=n1 Port=27001 "
    "Version=22.05.8 OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1  RealMemory=3000 AllocMem=0 FreeMem=22579 "
    "Sockets=2 Boards=1 State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A "
    "Partitions=batch,small  BootTime=2026-01-01T00:00:00 SlurmdStartTime=2026-01-01T00:00:10 "
    "LastBusyTime=2026-01-01T00:00:10 CfgTRES=cpu=8,mem=3000M,billing=8 AllocTRES= CapWatts=n/a CurrentWatts=0 "
    "AveWatts=0 ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s\n"
)
SEVERAL_LINES_23 = """NodeName=nid002 Arch=x86_64 CoresPerSocket=2
   CPUAlloc=16 CPUEfctv=14 CPUTot=16 CPULoad=3.02
   AvailableFeatures=apu,amd
   ActiveFeatures=apu,amd
   Gres=gpu:mi300:4(S:0-3),nic:2
   NodeAddr=nid002-hsn NodeHostName=nid002 Version=23.11.10
   OS=Linux 5.14.21 #1 SMP Thu Feb 1 00:00:00 UTC 2024
   RealMemory=512000 AllocMem=0 FreeMem=480000 Sockets=4 Boards=1
   CoreSpecCount=1 CPUSpecList=14-15
   State=ALLOCATED ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=mi300
   BootTime=2026-01-01T00:00:00 SlurmdStartTime=2026-01-01T00:00:10
   LastBusyTime=2026-01-01T00:00:10 ResumeAfterTime=None
   CfgTRES=cpu=14,mem=500G,billing=14,gres/gpu=4
   AllocTRES=cpu=14,mem=500G
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/a ExtSensorsWatts=0 ExtSensorsTemp=n/a
   Reason=ECC errors, CPUTot=1 was seen [root@2026-01-01T00:00:00]

NodeName=nid001 Arch=x86_64 CoresPerSocket=2
   CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=0.00
   AvailableFeatures=cpu
   ActiveFeatures=cpu
   Gres=(null)
   NodeAddr=nid001-hsn NodeHostName=nid001 Version=23.11.10
   RealMemory=256000 AllocMem=0 FreeMem=250000 Sockets=2 Boards=1
   State=IDLE ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=cpu

"""
ONE_LINE_24 = (
    "NodeName=gh1 Arch=aarch64 CoresPerSocket=72  CPUAlloc=0 CPUEfctv=288 CPUTot=288 CPULoad=0.05 "
    "AvailableFeatures=gh ActiveFeatures=gh Gres=gpu:gh200:3,gpu:h100:1 GresDrain=N/A NodeAddr=172.28.1.9 "
    "NodeHostName=gh1 Version=24.05.4 OS=Linux 6.4.0 #1 SMP 64kb RealMemory=870000 AllocMem=0 FreeMem=800000 Sockets=4 "
    "Boards=1 State=IDLE+RESERVED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=normal "
    "LastBusyTime=Unknown ResumeAfterTime=None CfgTRES=cpu=288,mem=870000M,billing=288,gres/gpu=4 AllocTRES= "
    "CurrentWatts=0 AveWatts=0 Reason=none Comment=Gres=gpu:99 kept Sockets=9\n"
)
ADDRESSES = {"nid001-hsn": "10.1.0.1", "nid002-hsn": "10.1.0.2"}


def resolve(address):
    """IPv4 addresses as they are, and names of ADDRESSES; nothing else has one."""
    if re.fullmatch(r"[\d.]+", address):
        return address
    if address not in ADDRESSES:
        raise OSError(-2, "Name or service not known")
    return ADDRESSES[address]


def job(count, cpus, **more):
    """Variables of a job."""
    return {"SLURM_JOB_NUM_NODES": str(count), "SLURM_JOB_CPUS_PER_NODE": cpus, **more}


# Host lists


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("n3,n1,n2", ["n3", "n1", "n2"], id="order-kept"),
        pytest.param("gpu-07.site.example", ["gpu-07.site.example"], id="one"),
        pytest.param(" n1, n2,", ["n1", "n2"], id="spaces"),
        pytest.param("", [], id="none"),
    ],
)
def test_a_plain_list_is_split_at_its_commas(text, expected):
    assert expand(text) == expected


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    """Writes a program that stands for scontrol on PATH."""

    def write(script):
        program = tmp_path / "scontrol"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return write


def test_brackets_are_read_by_slurm_in_its_order(scontrol):
    scontrol('echo "scontrol: warning: of another kind" >&2; [ "$3" = "n[3,1-2],m7" ] && printf "n3\\nn1\\nn2\\nm7\\n"')
    assert expand("n[3,1-2],m7") == ["n3", "n1", "n2", "m7"]


def test_brackets_without_slurm_are_refused_with_what_to_write(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentFault, match=r"'n\[1-4\]'.*'scontrol' was not found.*write the names out: n1,n2"):
        expand("n[1-4]")


def test_slurms_own_words_are_in_a_refusal(scontrol):
    scontrol("echo 'scontrol: error: a first word'; echo 'scontrol: fatal: no configuration' >&2; exit 1")
    with pytest.raises(EnvironmentFault, match=r"scontrol: fatal: no configuration; run this where Slurm is installed"):
        expand("n[1-4]")


@pytest.mark.parametrize("text", ["n[1-4", "n1-4]", "a[1],n[3"])
def test_an_open_bracket_is_no_name(text):
    with pytest.raises(UsageError, match="a bracket is open"):
        expand(text)


# Nodes


@pytest.mark.parametrize(
    ("names", "nodes", "environ", "expected"),
    [
        pytest.param(
            ["n1"],
            ONE_LINE_22,
            job(1, "8", SLURM_GPUS_PER_NODE="4"),
            [Host("n1", (0, 1, 2, 3, 4, 5, 6, 7), 2, "10.99.0.1", 4)],
            id="22.05-one-line",
        ),
        pytest.param(
            ["n1"],
            ONE_LINE_22,
            job(1, "3", SLURM_GPUS_ON_NODE="1"),
            [Host("n1", (), 1, "10.99.0.1", 1, granted=3)],
            id="22.05-a-part-of-a-node",
        ),
        pytest.param(
            ["n1"], ONE_LINE_22, job(1, "8"), [Host("n1", tuple(range(8)), 2, "10.99.0.1", 0)], id="22.05-no-gpus-asked"
        ),
        pytest.param(
            ["nid001", "nid002"],
            SEVERAL_LINES_23,
            job(2, "8,14", SLURM_GPUS_PER_NODE="mi300:4"),
            [
                Host("nid001", (0, 4, 1, 5, 2, 6, 3, 7), 2, "10.1.0.1", 0),
                Host("nid002", (0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14), 4, "10.1.0.2", 4),
            ],
            id="23.11-several-lines-threads-reserved-core",
        ),
        pytest.param(
            ["gh1"],
            ONE_LINE_24,
            job(1, "288", SLURM_GPUS_PER_NODE="4"),
            [Host("gh1", tuple(range(288)), 4, "172.28.1.9", 4)],
            id="24.05-comment-after-the-facts",
        ),
    ],
)
def test_hosts_are_what_slurm_prints(names, nodes, environ, expected):
    assert allocated_hosts(names, nodes, environ, resolve) == expected


def test_hosts_keep_the_order_of_the_allocation_whatever_the_text_has():
    environ = job(2, "14,8")
    found = allocated_hosts(["nid002", "nid001"], SEVERAL_LINES_23, environ, resolve)
    assert [host.name for host in found] == ["nid002", "nid001"]
    assert [len(host.cpus) for host in found] == [14, 8]


@pytest.mark.parametrize(
    ("cpus", "whole"), [pytest.param("8,14", True, id="whole"), pytest.param("8,7", False, id="one-is-shared")]
)
def test_a_job_that_has_less_than_a_node_shares_it(cpus, whole):
    found = allocated_hosts(["nid001", "nid002"], SEVERAL_LINES_23, job(2, cpus), resolve)
    assert all(host.cpus for host in found) is whole
    assert [host.cpu_count for host in found] == [int(number) for number in cpus.split(",")]


@pytest.mark.parametrize(
    ("gres", "expected"),
    [
        pytest.param("(null)", 0, id="none"),
        pytest.param("", 0, id="empty"),
        pytest.param("gpu:4", 4, id="plain"),
        pytest.param("gpu:mi300:4", 4, id="typed"),
        pytest.param("gpu:a100:2(S:0,2),gpu:v100:1(S:1)", 3, id="two-types-with-sockets"),
        pytest.param("nic:2,craynetwork:4", 0, id="other-things"),
        pytest.param("gpu:tesla:no_consume:2", 2, id="flag-before-the-number"),
    ],
)
def test_gpus_are_counted_over_all_types(gres, expected):
    assert gpu_count(gres) == expected


def test_lines_that_describe_no_node_are_left_out():
    assert [*read_nodes(f"Node gone not found\n{ONE_LINE_22}")] == ["n1"]
    assert read_nodes("") == {}


@pytest.mark.parametrize(
    ("names", "environ", "kind", "expected"),
    [
        pytest.param(
            ["n1"], job(2, "8(x2)"), ConfigError, r"names 1 nodes \(n1\), and SLURM_JOB_NUM_NODES=2", id="few"
        ),
        pytest.param(["n1"], {}, ConfigError, "SLURM_JOB_NUM_NODES is not set", id="no-job"),
        pytest.param(["n1"], job(1, "8(x2)"), ConfigError, "describes 2 nodes, and the job has 1", id="cpus-of-others"),
        pytest.param(["n1"], job(1, "many"), ConfigError, "SLURM_JOB_CPUS_PER_NODE=many: 'many'", id="no-number"),
        pytest.param(["n1"], job(1, "8", SLURM_GPUS_PER_NODE="a:b"), ConfigError, "--gpus-per-node=N", id="gpus"),
        pytest.param(["m1"], job(1, "8"), EnvironmentFault, "Slurm does not describe node m1", id="unknown-node"),
        pytest.param(
            ["lost"], job(1, "8"), EnvironmentFault, "node lost: its address 'lost-hsn' has no IPv4", id="no-address"
        ),
        pytest.param(["odd"], job(1, "8"), EnvironmentFault, "show node odd` says CPUTot=, which", id="no-cpus"),
    ],
)
def test_what_does_not_fit_names_the_node_and_the_variable(names, environ, kind, expected):
    nodes = ONE_LINE_22 + ONE_LINE_22.replace("=n1 ", "=lost ").replace("10.99.0.1", "lost-hsn")
    nodes += "NodeName=odd NodeAddr=10.0.0.1\n"
    with pytest.raises(kind, match=expected):
        allocated_hosts(names, nodes, environ, resolve)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("8", [8], id="one"),
        pytest.param("2(x3),4", [2, 2, 2, 4], id="groups"),
        pytest.param("3,1(x2)", [3, 1, 1], id="single-first"),
    ],
)
def test_cpus_of_each_node(text, expected):
    assert cpus_per_node(text) == expected


# Ports


@given(job_id=st.integers(1, 10**8), count=st.integers(1, 400), below=st.integers(10000, 61000))
def test_a_block_lies_below_the_ports_of_connections(job_id, count, below, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "range"
    path.write_text(f"{below}\t60999\n")
    first = port_block(str(job_id), count, path)
    assert first >= 8800 and first + count <= below


@given(
    job_id=st.integers(1, 10**8), later=st.integers(1, 300), counts=st.tuples(st.integers(1, 64), st.integers(1, 64))
)
def test_jobs_with_ids_in_a_row_never_share_a_port(job_id, later, counts, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "range"
    path.write_text("32768\t60999\n")
    blocks = [
        (port_block(str(job_id + more), count, path), count) for more, count in zip((0, later), counts, strict=True)
    ]
    (low, count), (high, _) = sorted(blocks)
    assert low + count <= high


def test_no_room_below_the_ports_of_connections_is_said(tmp_path):
    path = tmp_path / "range"
    path.write_text("1024\t65535\n")
    with pytest.raises(ConfigError, match="set JUDGE_PORT"):
        port_block("7", 4, path)
