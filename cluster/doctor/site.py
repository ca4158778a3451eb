"""Checks of the site: the system, Slurm's commands, partition and account, the container runtime."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from getpass import getuser

from bench.process import Limits, run
from bench.wording import did_you_mean
from cluster.doctor.check import Check, State, Subject
from cluster.slurm import asked

SLURM = ("sbatch", "squeue", "srun", "scontrol", "scancel", "sinfo")
ANSWER_S = 30.0


def site_checks(subject: Subject) -> Iterator[Check]:
    """What launching needs of the site."""
    lacking = [name for name in SLURM if shutil.which(name) is None]
    yield _slurm(subject, lacking)
    if subject.on_slurm and not lacking:
        yield partition(subject)
        yield account(subject)
    yield _runtime(subject)


def _slurm(subject: Subject, lacking: list[str]) -> Check:
    """Slurm is missed only where the system says that jobs go through it."""
    if not lacking:
        return Check("slurm", State.OK, shutil.which(SLURM[0]) or "")
    if subject.on_slurm and subject.system:
        advice = f"system '{subject.system.name}' submits through Slurm; call from a login node, or load its module"
        return Check("slurm", State.BLOCKS, f"missing: {', '.join(lacking)}", advice)
    return Check("slurm", State.OK, "not here, and not needed: jobs run on this machine")


@dataclass(frozen=True)
class Partition:
    """One line of sinfo: availability in Slurm's word, how many of its nodes are idle, longest wall clock."""

    name: str
    is_default: bool
    availability: str
    idle: int
    nodes: int
    longest: str


def parse_partitions(listing: str) -> dict[str, Partition]:
    """The lines `<name>[*]|<up>|<allocated/idle/other/total>|<limit>` of sinfo; one of another form is left out."""
    found = {}
    for line in listing.splitlines():
        match line.split("|"):
            case [name, availability, counts, longest] if counts.count("/") == 3:
                _, idle, _, total = map(int, counts.split("/"))
                bare = name.removesuffix("*")
                found[bare] = Partition(bare, name != bare, availability, idle, total, longest)
    return found


def partitions() -> tuple[dict[str, Partition], str]:
    """Every partition by name, and what sinfo said where it told of none."""
    answer = asked(["sinfo", "--noheader", "--format=%P|%a|%F|%l"], ANSWER_S)
    return (parse_partitions(answer.output) if answer.ok else {}), answer.said


def partition(subject: Subject) -> Check:
    """Whether the partition that jobs go to is there and takes them."""
    known, said = partitions()
    if not known:
        return Check("partition", State.BLOCKS, f"sinfo shows none: {said}", "ask your site whether Slurm is up")
    wanted = subject.options.get("partition") or default_of(known)
    if wanted is None:
        advice = f"name one with SBATCH_PARTITION or --partition: {', '.join(known)}"
        return Check("partition", State.BLOCKS, "none is named, and the cluster has no default", advice)
    if wanted not in known:
        advice = did_you_mean(wanted, known)
        return Check("partition", State.BLOCKS, f"there is no partition '{wanted}'", advice)
    found = known[wanted]
    if found.availability != "up":
        advice = "jobs would wait there; name another with SBATCH_PARTITION, or ask your site when it comes back"
        return Check("partition", State.BLOCKS, f"{wanted} is {found.availability}", advice)
    shown = f"{wanted} is up, {found.idle} of {found.nodes} nodes idle, wall clock up to {found.longest}"
    if subject.setup and subject.setup.nodes > found.nodes:
        advice = "lower INFERENCE_NODES, AGENT_NODES or JUDGE_NODES, or name a larger partition"
        return Check("partition", State.BLOCKS, f"{shown}; the setup needs {subject.setup.nodes}", advice)
    return Check("partition", State.OK, shown)


def default_of(known: Mapping[str, Partition]) -> str | None:
    return next((one.name for one in known.values() if one.is_default), None)


def account(subject: Subject) -> Check:
    """Whether the account is one of the caller's, where the cluster keeps accounts."""
    wanted = subject.options.get("account")
    shown = wanted or "the cluster's default"
    if shutil.which("sacctmgr") is None:
        return Check("account", State.OK, f"{shown}, not checked: sacctmgr was not found")
    words = ["sacctmgr", "--noheader", "--parsable2", "show", "associations", f"user={getuser()}", "format=account"]
    answer = asked(words, ANSWER_S)
    own = list(dict.fromkeys(answer.output.split())) if answer.ok else []
    if not own:
        why = "sacctmgr lists none of yours" if answer.ok else answer.said.splitlines()[0]
        return Check("account", State.OK, f"{shown}, not checked: {why}")
    # Slurm keeps the names of accounts in small letters.
    if wanted and wanted.lower() not in own:
        advice = f"SBATCH_ACCOUNT names one; {did_you_mean(wanted.lower(), own)}"
        return Check("account", State.BLOCKS, f"'{wanted}' is no account of yours", advice)
    return Check("account", State.OK, f"{shown}; yours are {', '.join(own)}")


def _runtime(subject: Subject) -> Check:
    runtime = subject.runtime
    if runtime == "none":
        return Check("container runtime", State.OK, "none: roles run on the host")
    if runtime == "ce":
        return _container_engine()
    if path := shutil.which(runtime):
        return Check("container runtime", State.OK, f"{runtime} ({path})")
    advice = f"install it, or set CONTAINER_RUNTIME; where compute nodes alone have it: srun which {runtime}"
    return Check("container runtime", State.WARNING, f"'{runtime}' was not found", advice)


def _container_engine() -> Check:
    """The Container Engine is no program: it adds an option to srun."""
    if shutil.which("srun") and "--environment" in run(["srun", "--help"], limits=Limits(wall_s=ANSWER_S)).output:
        return Check("container runtime", State.OK, "ce: srun takes --environment")
    advice = "call from a login node of a system that has it, or set CONTAINER_RUNTIME to another"
    return Check("container runtime", State.WARNING, "ce: no srun here that takes --environment", advice)
