"""Builds a submission in its language, the trusted denominator, its float64 twin, and the call shims."""

from pathlib import Path

from bench import abi
from bench.build import amd, emulator, gpu_library, nvidia, python
from bench.build.gpu_library import Kit
from bench.build.toolchain import Artifact, compile_shared, toolchains
from bench.cache import cached, content_key, default_cache, of_text, processor
from bench.errors import EnvironmentFault, JudgeFault
from bench.judge.schemas import GPU_LANGUAGES, Device, Language, graded_on, not_graded
from bench.sandbox import Sandbox, scratch_folder
from bench.task import Task
from bench.verdict import Rejected

# What makes a baseline its own oracle.
TWIN = ("-Dreal=double", "-DKC_ORACLE")


def build_submission(
    sandbox: Sandbox,
    folder: Path,
    task: Task,
    language: Language,
    source: str,
    flags: tuple[str, ...] = (),
    kit: Kit | None = None,
) -> Artifact:
    """Write the source to `<kernel>.<suffix>` in `folder` and build it there, with `flags` behind the usual ones.

    With a `kit` it is built for that GPU; without one, HIP is built for the emulator.

    Raises:
        Rejected: outcome `build_failed`, with the compiler's log.
        EnvironmentFault: nothing here runs what would come of it.
    """
    if not kit and (why := not_graded(language)):
        raise EnvironmentFault(why)
    path = folder / f"{task.name}{language.suffix}"
    path.write_text(source, encoding="utf-8")
    if language in (Language.PYTHON, Language.TRITON):
        return python.check(path, language)
    if kit:
        return gpu_library.build(sandbox, folder, path, language, kit, flags, entry=task.name)
    if language is Language.HIP:
        return emulator.build(sandbox, folder, path, flags, entry=task.name)
    return compile_shared(sandbox, folder, path, language, flags, entry=task.name)


def submission_commands(language: Language, kernel: str, kit: Kit | None = None) -> tuple[tuple[str, ...], ...]:
    """The argvs that a submission is built with; empty where nothing is compiled."""
    if language is Language.TRITON:
        return ()
    if kit:
        return tuple(map(tuple, kit.steps(Path(f"{kernel}{language.suffix}"), (), kernel)))
    if language.value not in toolchains():
        return ()
    source = Path(f"{kernel}{language.suffix}")
    source = emulator.rewritten(source) if language is Language.HIP else source
    steps = toolchains()[language.value].steps(source, kernel)
    return tuple(map(tuple, steps))


def build_command(language: Language, kernel: str = "<kernel>", device: Device | None = None) -> str:
    """The command line that makes the code of a submission on a device, for the contract that an agent reads."""
    source, library = f"{kernel}{language.suffix}", f"{kernel}.so"
    if language is Language.CUDA or (language is Language.HIP and device is Device.CUDA):
        return " ".join(nvidia.library_command(source, library))
    if language is Language.HIP and device is Device.HIP:
        return " ".join(amd.library_command(source, library))
    if language.value not in toolchains():
        return f"none: {source} is imported as it is"
    return " ".join(toolchains()[language.value].command(source, library))


def lacking(language: Language, gpu: Device | None = None) -> str:
    """Why nothing is built in this language here, for a GPU or without one; or an empty text."""
    if why := not_graded(language, graded_on(gpu or Device.CPU)):
        return why
    if gpu:  # who has opened it has found its compiler
        return ""
    try:
        if chain := toolchains().get(language.value):
            _ = chain.version
    except EnvironmentFault as error:
        return str(error)
    return ""


def denominator(sandbox: Sandbox, baseline: Path, kit: Kit | None = None) -> Artifact:
    """The baseline built and linked as a submission is, cached by content; its kernel is called like its folder.

    Linked otherwise, the same code lies elsewhere in its pages: softmax_rows then took 7 to 28 % longer.
    """
    return _trusted(sandbox, baseline, (), baseline.parent.name, kit)


def twin(sandbox: Sandbox, baseline: Path, kit: Kit | None = None) -> Artifact:
    """The baseline over `double`: the oracle of timed outputs, cached by content. One in HIP is for the emulator."""
    return _trusted(sandbox, baseline, TWIN, None, kit)


def call_shim(sandbox: Sandbox, task: Task, language: Language, workspace: bool = False) -> Path:
    """The file through which a runner calls an entry point of this signature, cached by content."""
    folder = default_cache() / "shims"
    if language is Language.PYTHON:
        text = abi.python_shim(task, workspace)
        return cached(folder, content_key(text), ".py", of_text(text))
    if language is Language.TRITON:
        text = abi.tensor_shim(task, workspace)
        return cached(folder, content_key(text), ".py", of_text(text))
    text = abi.c_shim(task, workspace, stream=language in GPU_LANGUAGES)
    what = f"the call shim of {task.name}"
    return cached(
        folder, content_key(text), ".so", lambda target: _compile(sandbox, what, text, Language.C, (), target)
    )


def _trusted(
    sandbox: Sandbox, baseline: Path, defines: tuple[str, ...], entry: str | None = None, kit: Kit | None = None
) -> Artifact:
    text = baseline.read_text(encoding="utf-8")
    language = Language.of(baseline)
    source, read = Path(baseline.name), text
    if kit:
        steps, compiler, machine = kit.steps(source, defines, entry), kit.compiler, kit.target
    else:
        if language is Language.HIP:
            source, read = emulator.rewritten(source), emulator.read_by_compiler(text)
        chain = toolchains()[language.value]
        steps, compiler, machine = chain.steps(source, entry, defines), chain.version, processor()
    path = cached(
        default_cache() / "denominators",
        content_key(read, repr(steps), compiler, machine),
        ".so",
        lambda target: _compile(sandbox, str(baseline), text, language, defines, target, entry, kit),
    )
    return Artifact(path, language, tuple(map(tuple, steps)), compiler)


def _compile(
    sandbox: Sandbox,
    what: str,
    text: str,
    language: Language,
    defines: tuple[str, ...],
    target: Path,
    entry: str | None = None,
    kit: Kit | None = None,
) -> None:
    """Build trusted text; a failure is the judge's fault, not a submission's. `what` names it in the error."""
    with scratch_folder() as folder:
        source = folder / f"trusted{language.suffix}"
        source.write_text(text, encoding="utf-8")
        try:
            if kit:
                built = gpu_library.build(sandbox, folder, source, language, kit, defines, entry)
            elif language is Language.HIP:
                built = emulator.build(sandbox, folder, source, defines, entry)
            else:
                built = compile_shared(sandbox, folder, source, language, defines, entry)
        except Rejected as error:
            raise JudgeFault(f"{what} does not build:\n{error.log}") from error
        target.write_bytes(built.path.read_bytes())
