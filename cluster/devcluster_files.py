"""What a development cluster is made of: names, addresses, paths, and the files that its daemons and its users read."""

import re
import socket
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from bench.errors import ConfigError, UsageError
from bench.places import checkout
from cluster.study.systems import SITE_VARIABLE

STATE = "devcluster.json"
MOST_NODES = 99
SLURMD_PORT = 6818
# Bridge and links are named `kc-<name>` and `kc-<name>-<k>`, and Linux takes 15 characters.
_NAME = re.compile(r"[a-z][a-z0-9]{0,7}")
_LONGEST_SOCKET_BYTES = 107
_NETWORK = "10.99"


class DevNode(BaseModel):
    """One node: its name, where it answers, its network namespace, the outer end of its link."""

    model_config = ConfigDict(frozen=True)

    name: str
    address: str
    namespace: str
    link: str


class DevCluster(BaseModel):
    """One cluster as asked for, and what was chosen for it: K of 10.99.K.0/24 (`subnet`), the controller's `port`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    folder: Path
    subnet: int
    port: int
    nodes: int
    cpus: int
    gpus: int
    memory_mb: int

    @property
    def bridge(self) -> str:
        return bridge_of(self.name)

    @property
    def address(self) -> str:
        """Where the controller answers: this machine, as the nodes see it."""
        return address(self.subnet, 254)

    @property
    def members(self) -> tuple[DevNode, ...]:
        return tuple(
            DevNode(
                name=f"n{number}",
                address=address(self.subnet, number),
                namespace=f"{prefix_of(self.name)}n{number}",
                link=f"{prefix_of(self.name)}{number}",
            )
            for number in range(1, self.nodes + 1)
        )

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def site(self) -> Path:
        """The systems file that describes this cluster."""
        return self.folder / "systems.yaml"

    @property
    def key(self) -> Path:
        """The munge key that all daemons share."""
        return self.folder / "munge" / "key"

    @property
    def socket(self) -> Path:
        return self.folder / "munge" / "socket"

    def log(self, daemon: str) -> Path:
        """Log of `munged`, `slurmctld`, or the slurmd of a node by the node's name."""
        return self.folder / "log" / f"{daemon}.log"

    def output(self, daemon: str) -> Path:
        """What a daemon prints; also what it says before it has a log, as of a configuration that it refuses."""
        return self.folder / "log" / f"{daemon}.out"

    def pid_file(self, daemon: str) -> Path:
        """Process id of a daemon, named as for `log`."""
        return self.folder / "run" / f"{daemon}.pid"

    @property
    def variables(self) -> dict[str, str]:
        """What Slurm's commands and Kernelcourt's need to know to use this cluster."""
        return {"SLURM_CONF": str(self.conf), SITE_VARIABLE: str(self.site), "KCOURT_SYSTEM": self.name}


def bridge_of(name: str) -> str:
    return f"kc-{name}"


def prefix_of(name: str) -> str:
    """What the names of a cluster's namespaces and links begin with, and no other cluster's."""
    return f"kc-{name}-"


def address(subnet: int, number: int) -> str:
    return f"{_NETWORK}.{subnet}.{number}"


def folder_of(name: str, base: Path | None = None) -> Path:
    """The state folder of a cluster: below `base`, else below the checkout's `.scratch/devcluster`.

    Raises:
        UsageError: no cluster can have that name, or the sockets below that folder would have paths too long for Linux.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"--name {name}: 1 to 8 small letters and digits, a letter first; such as dev")
    folder = (base or checkout() / ".scratch" / "devcluster").absolute() / name
    # slurmstepd listens at the longest one: node, node again, job and step.
    longest = f"{folder}/spool/n{MOST_NODES}/n{MOST_NODES}_9999999.4294967291"
    excess = len(longest.encode()) - _LONGEST_SOCKET_BYTES
    if excess > 0:
        raise UsageError(
            f"{folder}: {excess} bytes too long for the sockets below it, whose paths Linux limits to "
            f"{_LONGEST_SOCKET_BYTES} bytes; name a shorter folder with --base"
        )
    return folder


def read_cluster(name: str, base: Path | None = None) -> DevCluster | None:
    """The cluster of that name as its state file says; None when there is none.

    Raises:
        ConfigError: the state file is damaged.
        UsageError: see `folder_of`.
    """
    path = folder_of(name, base) / STATE
    if not path.is_file():
        return None
    try:
        return DevCluster.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ConfigError(
            f"{path}: damaged; `kcourt devcluster down --name {name}` clears what is left of the cluster"
        ) from error


def write_files(cluster: DevCluster, key: bytes) -> None:
    """Make the state folder: the state file first, so that `down` knows what to clear after half a start."""
    cluster.folder.mkdir(parents=True)
    (cluster.folder / STATE).write_text(cluster.model_dump_json(indent=1) + "\n", encoding="utf-8")
    for folder in ("munge", "run", "log", "state", "dev", *(f"spool/{node.name}" for node in cluster.members)):
        (cluster.folder / folder).mkdir(parents=True)
        (cluster.folder / folder).chmod(0o755)
    cluster.key.touch(0o600)
    cluster.key.write_bytes(key)
    for gpu in range(cluster.gpus):
        # Slurm wants a character device, and gives no variable for a plain file.
        (cluster.folder / "dev" / f"gpu{gpu}").symlink_to("/dev/null")
    cluster.conf.write_text(slurm_conf(cluster), encoding="utf-8")
    cluster.conf.with_name("gres.conf").write_text(gres_conf(cluster), encoding="utf-8")
    cluster.conf.with_name("cgroup.conf").write_text(_lines(_CGROUP), encoding="utf-8")
    cluster.site.write_text(site_text(cluster), encoding="utf-8")


# Nothing of the machine's cgroups is touched: where a cluster of processes is tried, they may not be ours.
_CGROUP = {"CgroupAutomount": "no", "ConstrainCores": "no", "ConstrainRAMSpace": "no"}
# Times in seconds, short enough to watch a node being lost.
_TIMES = {
    "SlurmctldTimeout": 10,
    "SlurmdTimeout": 8,
    "MessageTimeout": 5,
    "TCPTimeout": 1,
    "KillWait": 10,
    "UnkillableStepTimeout": 20,
    "CompleteWait": 0,
    "InactiveLimit": 0,
    "WaitTime": 0,
    "MinJobAge": 3600,
    "OverTimeLimit": 0,
}
_WAYS = {
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "AuthType": "auth/munge",
    "CredType": "cred/munge",
    "SlurmdPort": SLURMD_PORT,
    "SlurmctldDebug": "info",
    "SlurmdDebug": "info",
    "SlurmdParameters": "config_overrides",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/linux",
    "JobAcctGatherFrequency": 1,
    "JobAcctGatherParams": "OverMemoryKill",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU_Memory",
    "GresTypes": "gpu",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=100000",
    "MpiDefault": "none",
    "ReturnToService": 2,
    "JobRequeue": 0,
    "PropagateResourceLimits": "NONE",
    "AccountingStorageType": "accounting_storage/none",
    "JobCompType": "jobcomp/none",
}


def slurm_conf(cluster: DevCluster) -> str:
    """slurm.conf: two partitions over all nodes, `batch` with whole nodes and `shared` with CPUs of nodes."""
    here = {
        "ClusterName": cluster.name,
        "SlurmctldHost": f"{socket.gethostname().partition('.')[0]}({cluster.address})",
        "SlurmctldPort": cluster.port,
        "AuthInfo": f"socket={cluster.socket}",
        "SlurmctldPidFile": cluster.pid_file("slurmctld"),
        "SlurmdPidFile": cluster.pid_file("%n"),
        "SlurmctldLogFile": cluster.log("slurmctld"),
        "SlurmdLogFile": cluster.log("%n"),
        "StateSaveLocation": cluster.folder / "state",
        "SlurmdSpoolDir": cluster.folder / "spool" / "%n",
    }
    every = f"Nodes={','.join(node.name for node in cluster.members)} MaxTime=INFINITE DefaultTime=10 State=UP"
    memory_of_a_cpu = max(1, cluster.memory_mb // cluster.cpus)
    partitions = (
        f"PartitionName=batch {every} Default=YES OverSubscribe=EXCLUSIVE\n"
        f"PartitionName=shared {every} OverSubscribe=NO DefMemPerCPU={memory_of_a_cpu}\n"
    )
    return _lines(here | _WAYS | _TIMES) + "".join(_node_line(cluster, node) for node in cluster.members) + partitions


def _node_line(cluster: DevCluster, node: DevNode) -> str:
    gres = f" Gres=gpu:{cluster.gpus}" if cluster.gpus else ""
    return (
        f"NodeName={node.name} NodeHostname={node.name} NodeAddr={node.address} Sockets=1 "
        f"CoresPerSocket={cluster.cpus} ThreadsPerCore=1 RealMemory={cluster.memory_mb}{gres} State=UNKNOWN\n"
    )


def gres_conf(cluster: DevCluster) -> str:
    """gres.conf: devices that do nothing, and the variable by which AMD's runtime is told which of them to use."""
    devices = cluster.folder / "dev"
    lines = [
        f"NodeName={node.name} Name=gpu File={devices}/gpu[0-{cluster.gpus - 1}] Flags=amd_gpu_env\n"
        for node in cluster.members
        if cluster.gpus
    ]
    return "AutoDetect=off\n" + "".join(lines)


def site_text(cluster: DevCluster) -> str:
    """A systems file of one system, this cluster."""
    facts = {
        "summary": "Development cluster on this machine",
        "clusters": [cluster.name],
        "launcher": "slurm",
        "hardware": "cpu",
        "container_runtime": "none",
        "partition": "batch",
        "nodes": {"cpus": cluster.cpus, "sockets": 1, "gpus": cluster.gpus},
    }
    return yaml.safe_dump({cluster.name: facts}, sort_keys=False)


def _lines(settings: Mapping[str, object]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())
