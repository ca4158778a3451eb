"""Checks of what one setup needs: its files, EDFs or images, model weights, exported keys; and agent clients."""

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

from agent.harnesses import installed_harnesses
from agent.harnesses.clients import installed_client
from bench.errors import ConfigError, EnvironmentFault, KernelcourtError
from bench.process import Limits, run
from bench.wording import counted, did_you_mean
from cluster.doctor.check import Check, State, Subject, halves, is_there
from cluster.doctor.machine import of_judges
from cluster.job.gpus import gpus_here
from cluster.study.settings import JobSettings
from cluster.study.systems import System

# The program that a harness starts; one that is not listed starts its own.
PROGRAMS = {"claude_code": "claude", "codex": "codex", "cursor": "cursor-agent", "geak": "geak", "mini_swe": "mini"}
IMAGE_ANSWER_S = 60.0


def client_check(subject: Subject) -> Check:
    """Whether the client of the setup's harness is here; without a setup, those of every installed harness."""
    name = "agent client"
    installed = sorted(installed_harnesses())
    if subject.setup and subject.setup.harness not in installed:
        hint = did_you_mean(subject.setup.harness, installed)
        advice = f"set HARNESS to an installed one, or install the package that brings it; {hint}"
        return Check(name, State.BLOCKS, f"no harness '{subject.setup.harness}' is installed", advice)
    asked = [subject.setup.harness] if subject.setup else installed
    programs = {PROGRAMS[harness]: harness for harness in asked if harness in PROGRAMS}
    if not programs:
        return Check(name, State.OK, f"not needed: {', '.join(asked)}")
    if subject.runtime != "none":
        return Check(name, State.OK, f"not checked: {', '.join(programs)} is in the container of the agents")
    found = {program: installed_client(program) for program in programs}
    if missing := [program for program, path in found.items() if path is None]:
        state = State.BLOCKS if subject.setup else State.WARNING
        advice = f"install it where agents run, on PATH; harness {programs[missing[0]]} starts it"
        return Check(name, state, f"not found: {', '.join(missing)}", advice)
    return Check(name, State.OK, ", ".join(map(str, found.values())))


def setup_checks(subject: Subject) -> Iterator[Check]:
    """What the setup itself needs; nothing without one."""
    setup = subject.setup
    if setup is None:
        return
    yield _files(setup)
    if setup.grades_on_gpu and subject.system:
        yield from _gpus(setup, subject, subject.system)
    if subject.runtime == "ce":
        yield from (_edf(key, name, subject) for key, name in _edfs(setup))
    elif subject.runtime != "none":
        yield from (_image(key, name, subject.runtime) for key, name in _images(setup))
    if setup.inference_nodes:
        yield _weights(setup)
    yield from (_exported(variable, what, subject) for variable, what in setup.needed_secrets.items())


def _files(setup: JobSettings) -> Check:
    """The setup's problems and, for the scripted harness, its plan."""
    from cluster.study.problems import problems_of

    name = "setup"
    try:
        problems = [] if setup.serves_only else problems_of(setup)
    except KernelcourtError as error:
        return Check(name, State.BLOCKS, *halves(error))
    if setup.agent_script and not is_there(setup.agent_script):
        advice = "`kcourt study plan STUDY` renders the setup again"
        return Check(name, State.BLOCKS, f"AGENT_SCRIPT={setup.agent_script} is not there", advice)
    return Check(name, State.OK, f"{setup.setup}: {len(problems)} problems, {setup.nodes} nodes")


def _gpus(setup: JobSettings, subject: Subject, system: System) -> Iterator[Check]:
    """The vendor's tool, GPUs and compiler where judges run, and a GPU for each judge slot."""
    from cluster.job.preview import Asked, node_of, plan_of  # which needs what grades

    try:
        found = f"{counted(gpus_here(setup.device, subject.environ), 'GPU')}, and a compiler"
        yield Check("GPUs", State.OK, found)
    except EnvironmentFault as fault:
        yield of_judges(Check("GPUs", State.BLOCKS, *halves(fault)), subject)
        if not subject.on_slurm:
            return
    asked = Asked(system, {}, subject.environ)
    try:
        plan = plan_of(asked, setup, node_of(asked, setup))
    except ConfigError as error:
        yield Check("judges", State.BLOCKS, *halves(error))
    else:
        yield Check("judges", State.OK, f"{counted(len(plan.judges), 'judge')}, each with a GPU of its own")


def _edfs(setup: JobSettings) -> Iterator[tuple[str, str]]:
    """KEY and name of each EDF that a role of the setup starts with."""
    if setup.inference_nodes:
        yield "INFERENCE_EDF", setup.inference_edf
    if setup.agent_nodes:
        yield "AGENT_EDF", setup.agent_edf
    if setup.judge_nodes:
        yield "JUDGE_EDF", setup.judge_edf


def _images(setup: JobSettings) -> Iterator[tuple[str, str]]:
    if setup.inference_nodes:
        yield "INFERENCE_IMAGE", setup.inference_image
    if setup.agent_nodes:
        yield "BENCH_IMAGE", setup.bench_image


def _edf(key: str, name: str, subject: Subject) -> Check:
    """An EDF is a TOML file: named by its path, or by its name in a folder of EDF_PATH."""
    label = f"EDF {key}"
    if not name:
        return Check(label, State.BLOCKS, f"{key} is not set", f"set {key} to the name of a registered EDF")
    folders = [Path(folder) for folder in subject.environ.get("EDF_PATH", "").split(":") if folder]
    folders.append(Path.home() / ".edf")
    tried = [Path(name)] if name.endswith(".toml") else [folder / f"{name}.toml" for folder in folders]
    path = next((path for path in tried if is_there(path)), None)
    if path is None:
        where = ", ".join(map(str, folders))
        advice = f"put it there (containers/ has templates), or set {key} to one that is"
        return Check(label, State.BLOCKS, f"no EDF '{name}' in {where}", advice)
    try:
        image = str(tomllib.loads(path.read_text(encoding="utf-8")).get("image", ""))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return Check(label, State.BLOCKS, f"{path}: {error}", "mend the file; it must be TOML that you may read")
    if image.startswith("/") and not is_there(Path(image)):
        return Check(label, State.BLOCKS, f"{path}: its image {image} is not there", "build it, or correct `image`")
    return Check(label, State.OK, str(path))


def _image(key: str, name: str, runtime: str) -> Check:
    """An image is a file for apptainer, and what the store of podman or docker has of it."""
    label = f"image {key}"
    if not name:
        return Check(label, State.BLOCKS, f"{key} is not set", f"set {key} to an image of {runtime}")
    if runtime == "apptainer" and "://" not in name:
        if is_there(Path(name)):
            return Check(label, State.OK, name)
        return Check(label, State.BLOCKS, f"{key}={name} is not there", "build it (containers/), or correct the path")
    if runtime == "apptainer" or shutil.which(runtime) is None:
        return Check(label, State.OK, f"{name}, not checked")
    if run([runtime, "image", "inspect", name], limits=Limits(wall_s=IMAGE_ANSWER_S)).ok:
        return Check(label, State.OK, name)
    advice = f"{runtime} pull {name}, or build it (containers/); nodes without a network cannot fetch it"
    return Check(label, State.WARNING, f"{runtime} has no image '{name}' here", advice)


def _weights(setup: JobSettings) -> Check:
    """The weights of the model that the setup serves: a folder, or a repository in HF_HOME."""
    name, model = "model weights", setup.inference_model
    if not model:
        return Check(name, State.BLOCKS, "INFERENCE_MODEL is not set", "set it to a hub's name or a folder")
    if model.startswith(("/", ".")):
        if is_there(Path(model) / "config.json"):
            return Check(name, State.OK, model)
        return Check(name, State.BLOCKS, f"{model} holds no config.json", "name the folder that the weights lie in")
    fetch = f"fetch it on a node with a network: huggingface-cli download {model}"
    if setup.hf_home is None:
        return Check(name, State.WARNING, "HF_HOME is not set", f"set it to a folder that all nodes see, and {fetch}")
    if not is_there(setup.hf_home):
        return Check(name, State.BLOCKS, f"HF_HOME={setup.hf_home} is not there", "make it, or correct the path")
    snapshots = setup.hf_home / "hub" / f"models--{model.replace('/', '--')}" / "snapshots"
    held = sorted(found.name for found in snapshots.glob("*"))
    if not held or (setup.inference_checkpoint and setup.inference_checkpoint not in held):
        wanted = f"{model} {setup.inference_checkpoint}".strip()
        return Check(name, State.WARNING, f"{wanted} is not in {setup.hf_home}", f"{fetch}; else the engine has to")
    return Check(name, State.OK, f"{model} in {setup.hf_home}")


def _exported(variable: str, what: str, subject: Subject) -> Check:
    """Whether a secret is exported; its value is shown to nobody."""
    name = f"key {variable}"
    if subject.environ.get(variable):
        return Check(name, State.OK, f"exported: {what}")
    return Check(name, State.BLOCKS, f"{what} is not exported", f"export {variable}=... where you submit")
