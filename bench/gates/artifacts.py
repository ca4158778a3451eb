"""Builds a submission and looks at what came out, before any of it runs: the one way to what a grade loads."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.build import amd, builder, offload
from bench.build.gpu import CodeObject, Target
from bench.build.gpu_library import Kit
from bench.build.toolchain import Artifact
from bench.cache import cached, content_key, default_cache
from bench.errors import EnvironmentFault
from bench.gates import binary, imports, instructions, names, origins, text
from bench.judge.schemas import Language, Outcome
from bench.records import SubmissionOrder
from bench.sandbox import Sandbox, scratch_folder
from bench.task import Task
from bench.verdict import Rejected

# Languages whose submissions are imported as they are.
_MODULES = (Language.PYTHON, Language.TRITON)
EMULATED_TARGET = Target.GFX942


def planned(folder: Path, task: Task, order: SubmissionOrder) -> Artifact:
    """What `make` will leave for a runner to load: its process can start before that."""
    suffix = order.language.suffix if order.library is None and order.language in _MODULES else ".so"
    return Artifact(folder / f"{task.name}{suffix}", order.language, binding=order.binding)


def make(
    sandbox: Sandbox,
    folder: Path,
    task: Task,
    order: SubmissionOrder,
    flags: tuple[str, ...] = (),
    kit: Kit | None = None,
) -> tuple[Artifact, dict[str, Any]]:
    """The order's artifact in `folder`, built with `flags` behind the usual ones, or a copy of its library.

    With a `kit` it is for that GPU.

    Returns:
        The artifact, and what the gates noted of it for the grade's provenance.

    Raises:
        Rejected: it does not build (`build_failed`), or it is something that is not to be run (`policy`).
        EnvironmentFault: a compiler or another tool is missing.
    """
    if order.library is not None:
        copy = planned(folder, task, order)
        take(Path(order.library), copy.path)
        return copy, _check_binary(sandbox, folder, copy.path, task.name, order.language, kit)
    assert order.source is not None
    text.check(order.source, order.language)
    built = _built(sandbox, folder, task, order, flags, kit)
    if order.language in _MODULES:
        if not order.binding:
            imports.check_python(order.source, order.language)
            if order.language is Language.TRITON:
                names.check(order.source)
        return replace(built, binding=order.binding), {}
    source = folder / f"{task.name}{order.language.suffix}"
    if kit:
        origins.check_read_for_a_gpu(source, kit.visible)
    else:
        origins.check(source, order.language)
    binary.check_object(built.path, task.name, kit)
    noted = _check_binary(sandbox, folder, built.path, task.name, order.language, kit)
    if order.language is Language.HIP and not kit:
        noted["code_object"] = _noted_of_a_gpu(sandbox, source.name, order.source)
    return built, noted


def compiled_for_a_gpu(sandbox: Sandbox, name: str, text: str) -> tuple[CodeObject, str]:
    """What a submission in HIP becomes on the device that the emulator plays, and its assembly.

    Raises:
        Rejected: it does not compile (`build_failed`), or reads files that are not the compiler's own (`policy`).
        EnvironmentFault: there is no compiler for that device here.
    """
    with scratch_folder() as folder:
        source = folder / name
        source.write_text(text, encoding="utf-8")
        plan = offload.plan_for(source, EMULATED_TARGET)
        try:
            made = offload.compile_hip(sandbox, folder, source, EMULATED_TARGET, plan)
        finally:
            origins.check_read_for_a_gpu(source, plan.visible)
        return made, source.with_suffix(amd.ASSEMBLY).read_text(encoding="utf-8", errors="replace")


def _noted_of_a_gpu(sandbox: Sandbox, name: str, text: str) -> dict[str, Any]:
    """The same for a grade's provenance, cached by content: a submit is built twice, and every control often."""

    def make(target: Path) -> None:
        made, _ = compiled_for_a_gpu(sandbox, name, text)
        target.write_text(made.model_dump_json(), encoding="utf-8")

    try:
        plan = offload.plan_for(Path(name), EMULATED_TARGET)
        key = content_key(text, repr(plan.steps), plan.compiler)
        noted = cached(default_cache() / "code_objects", key, ".json", make)
    except EnvironmentFault as fault:
        return {"not_applied": str(fault)}
    found: dict[str, Any] = json.loads(noted.read_text(encoding="utf-8"))
    return found


def _built(
    sandbox: Sandbox, folder: Path, task: Task, order: SubmissionOrder, flags: tuple[str, ...], kit: Kit | None
) -> Artifact:
    """Build; a compiler's words about a file that it should not have read are not handed on."""
    assert order.source is not None
    try:
        return builder.build_submission(sandbox, folder, task, order.language, order.source, flags, kit)
    except Rejected as rejected:
        source = folder / f"{task.name}{order.language.suffix}"
        if kit:
            origins.check_read_for_a_gpu(source, kit.visible)
        elif rejected.property == "build" and (path := origins.reached_for(sandbox, folder, source, order.language)):
            raise origins.included(path) from rejected
        raise


def take(library: Path, copy: Path) -> None:
    """Copy what is there now: its owner may put another file in its place at any time.

    Raises:
        Rejected: (`build_failed`) it cannot be read.
    """
    try:
        shutil.copyfile(library, copy)
    except OSError as error:
        message = f"{library.name} cannot be read ({error.strerror}); build it again"
        raise Rejected(Outcome.BUILD_FAILED, "load", {"message": message}) from error


def _check_binary(
    sandbox: Sandbox, folder: Path, path: Path, entry: str, language: Language, kit: Kit | None
) -> dict[str, Any]:
    library = binary.check(path, entry, language, kit)
    hidden = instructions.check(sandbox, folder, library.code)
    return {"system_call_bytes": hidden} if hidden else {}
