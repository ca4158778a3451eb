"""Snapshots: read-only copies of a rendered setup for a job that waits or runs, where a later render cannot reach."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.errors import ConfigError, EnvironmentFault
from cluster.study.briefing import kept_beside, launch_material
from cluster.study.env_files import render_env
from cluster.study.origins import values_of
from cluster.study.render import RenderedSetup

READ_ONLY = 0o400


@dataclass(frozen=True)
class Snapshot:
    """One setup as its job reads it: `<setup>-<UTC>-<hash8>.env`, with problems and launch material beside it."""

    setup: str
    env: Path

    @property
    def problems(self) -> Path:
        return self.env.with_suffix(".problems.jsonl")

    @property
    def script(self) -> Path:
        """Copy of the scripted harness's plan, where the setup names a file of one."""
        return self.env.with_suffix(".script.json")

    @property
    def launch(self) -> Path:
        """Folder of what agents are given: prompt, skills, files."""
        return kept_beside(self.env)


def snapshot(rendered: RenderedSetup, now: datetime) -> Snapshot:
    """Copy a rendered setup to `.rendered/`, every file 0400; the hash is that of all that is copied.

    Raises:
        ConfigError: the script that the setup names cannot be read.
        EnvironmentFault: the folder cannot be written.
    """
    material = launch_material(rendered.settings, rendered.treatment)
    copied = {"problems": rendered.problems_text.encode(), **_script(rendered)}
    name = f"{rendered.name}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    hashed = _hash({"env": rendered.env_text.encode(), **copied, **material})
    made = Snapshot(rendered.name, rendered.folder / ".rendered" / f"{name}-{hashed}.env")
    files = {made.launch / path: content for path, content in material.items()}
    files[made.problems] = copied["problems"]
    moved = {"PROBLEMS_FILE": made.problems.name}
    if "script" in copied:
        files[made.script] = copied["script"]
        moved["AGENT_SCRIPT"] = made.script.name
    files[made.env] = render_env({**values_of(rendered.origins), **moved}).encode()
    for path, content in files.items():
        _write(path, content)
    return made


def _script(rendered: RenderedSetup) -> dict[str, bytes]:
    """The scripted plan that the setup names, if it names one."""
    if rendered.settings.agent_script is None:
        return {}
    path = rendered.folder / rendered.settings.agent_script
    try:
        return {"script": path.read_bytes()}
    except OSError as error:
        raise ConfigError(f"{path}: AGENT_SCRIPT of '{rendered.name}' cannot be read ({error.strerror})") from error


def _hash(contents: Mapping[str, bytes]) -> str:
    """First 8 hex digits of a sha256 over names and contents."""
    digest = hashlib.sha256()
    for name, content in sorted(contents.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:8]


def _write(path: Path, content: bytes) -> None:
    """Write a file that nobody writes again; the same snapshot made twice has the same content."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.chmod(READ_ONLY)
        partial.replace(path)
    except OSError as error:
        raise EnvironmentFault(
            f"{path}: cannot be written ({error.strerror}); make room, or name a folder that you may write"
        ) from error
