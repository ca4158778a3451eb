"""What `kcourt devcluster` says where it cannot work, and the files that it writes; needs no Slurm."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import cli
from bench.errors import ConfigError, EnvironmentFault, UsageError
from cluster import devcluster
from cluster.devcluster_files import DevCluster, folder_of, gres_conf, slurm_conf
from cluster.devcluster_nodes import free_subnet
from cluster.study.systems import choose_system


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder whose own path leaves room for those of sockets."""
    with tempfile.TemporaryDirectory(prefix="kc-", dir="/tmp") as folder:
        yield Path(folder)


def cluster_in(folder: Path, gpus: int = 4) -> DevCluster:
    return DevCluster(name="dev", folder=folder, subnet=7, port=16824, nodes=2, cpus=2, gpus=gpus, memory_mb=3000)


@pytest.mark.parametrize(
    "name",
    ["", "Dev", "9dev", "dev-1", "developer", "../dev"],
    ids=["empty", "capital", "digit", "dash", "long", "path"],
)
def test_a_name_that_no_cluster_can_have_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"--name {name}: 1 to 8 small letters and digits, a letter first"):
        cli.run(["devcluster", "status", "--name", name])


def test_a_folder_that_is_too_deep_for_sockets_is_refused(base: Path) -> None:
    with pytest.raises(UsageError, match=r"bytes too long for the sockets below it.*--base"):
        folder_of("dev", base / ("x" * 100))
    assert folder_of("dev", Path("/tmp/short")) == Path("/tmp/short/dev")


@pytest.mark.parametrize(
    "words",
    [("status",), ("env",), ("cut", "n1"), ("kill", "n1"), ("heal", "n1")],
    ids=lambda words: words[0],
)
def test_a_cluster_that_does_not_exist(base: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        cli.run(["devcluster", *words, "--base", str(base)])
    assert str(caught.value) == f"no cluster 'dev' in {base}; `kcourt devcluster up` starts one"


def test_a_cluster_of_another_name_is_named(base: Path) -> None:
    (base / "two").mkdir(parents=True)
    (base / "two" / devcluster.STATE).write_text("{}")
    with pytest.raises(UsageError, match=r"starts one, and --name takes one of those there: two$"):
        devcluster.require_cluster("dev", base)


def test_a_node_that_does_not_exist(base: Path) -> None:
    with pytest.raises(UsageError, match=r"has no node 'n3'; it has n1 to n2"):
        devcluster.node_of(cluster_in(base), "n3")


def test_an_ordinary_user_is_told_to_be_root(monkeypatch: pytest.MonkeyPatch, base: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    node = cluster_in(base).members[0]
    for attempt in (
        lambda: devcluster.start("dev", devcluster.Shape(), base),
        lambda: devcluster.cut(node),
        lambda: devcluster.kill(node),
        lambda: devcluster.heal(cluster_in(base), node),
    ):
        with pytest.raises(EnvironmentFault, match=r"only root .*; run it as root"):
            attempt()
    assert list(base.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devcluster, "require_means", lambda: None)
    with pytest.raises(ConfigError, match=r"/proc/none/zz: .*; name another place with --base"):
        devcluster.start("zz", devcluster.Shape(), Path("/proc/none"))


def test_a_folder_that_holds_something_else_is_kept(monkeypatch: pytest.MonkeyPatch, base: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    kept = base / "zz" / "kept"
    kept.parent.mkdir()
    kept.touch()
    with pytest.raises(UsageError, match=r"zz is no cluster's: it holds no devcluster.json; .*--base"):
        devcluster.end("zz", base)
    assert kept.exists()


@pytest.mark.parametrize(
    ("there", "packages"),
    [
        pytest.param((), "iproute2 munge slurm-wlm util-linux", id="nothing"),
        pytest.param(("ip", "nsenter", "unshare", "munged"), "slurm-wlm", id="no-slurm"),
        pytest.param(("nsenter", "unshare", "slurmctld", "slurmd", "sinfo"), "iproute2 munge", id="no-munge-no-ip"),
    ],
)
def test_missing_programs_are_named_by_their_packages(
    monkeypatch: pytest.MonkeyPatch, base: Path, there: tuple[str, ...], packages: str
) -> None:
    for name in there:
        (base / name).touch(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(base))
    monkeypatch.setattr(devcluster, "SYSTEM_PATH", str(base))
    with pytest.raises(EnvironmentFault) as caught:
        devcluster.require_means()
    assert str(caught.value) == f"{packages} not installed; on Debian: apt-get install {packages}"


def test_the_first_subnet_that_nobody_has_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    used = psutil.net_if_addrs()["lo"][0]._replace(address="10.99.0.254")
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {"kc-dev": [used, used._replace(address="10.99.2.254")]})
    assert free_subnet() == 1


def test_slurm_is_told_of_every_node_and_of_no_gpus_where_there_are_none(base: Path) -> None:
    text = slurm_conf(cluster_in(base))
    assert "NodeName=n2 NodeHostname=n2 NodeAddr=10.99.7.2 Sockets=1 CoresPerSocket=2 " in text
    assert "PartitionName=batch Nodes=n1,n2 " in text and "OverSubscribe=EXCLUSIVE" in text
    assert gres_conf(cluster_in(base)).count("/dev/gpu[0-3] Flags=amd_gpu_env\n") == 2
    assert "gpu" not in gres_conf(cluster_in(base, gpus=0))
    assert "Gres=" not in slurm_conf(cluster_in(base, gpus=0))


def test_the_site_file_describes_the_cluster(base: Path) -> None:
    from cluster.devcluster_files import write_files

    cluster = cluster_in(base / "dev")
    write_files(cluster, b"key")
    facts = choose_system(cluster.variables).facts
    assert (facts.clusters, facts.partition, facts.hardware, facts.nodes.gpus) == (("dev",), "batch", "cpu", 4)
    assert choose_system({**cluster.variables, "KCOURT_SYSTEM": "", "SLURM_CLUSTER_NAME": "dev"}).name == "dev"
    assert DevCluster.model_validate_json((cluster.folder / "devcluster.json").read_bytes()) == cluster
    assert cluster.key.stat().st_mode & 0o777 == 0o600
