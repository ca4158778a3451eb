"""Compiles a submission for a GPU that need not be here, and says what each of its kernels takes of one."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from bench.build import amd, nvidia
from bench.build.gpu import CodeObject, Plan, Target, Vendor
from bench.judge.schemas import KernelUse, Outcome
from bench.process import Limits, run
from bench.sandbox import BUILD_LIMITS, Sandbox
from bench.verdict import Rejected


def plan_for(source: Path, target: Target) -> Plan:
    """How a HIP file is compiled; raises EnvironmentFault when there is no compiler for that GPU here."""
    return _vendor(target).plan(source.name, target)


def compile_hip(sandbox: Sandbox, folder: Path, source: Path, target: Target, plan: Plan) -> CodeObject:
    """Compile a HIP file in `folder` by `plan` to a code object beside it.

    Raises:
        Rejected: the compiler failed or was over its limits (`build_failed`), with its log.
    """
    vendor = _vendor(target)
    if vendor.headers:
        shutil.copytree(vendor.headers, folder, dirs_exist_ok=True)
    return _compile(sandbox, folder, source, target, plan)


def compile_cuda(sandbox: Sandbox, folder: Path, source: Path, target: Target) -> CodeObject:
    """The same of a CUDA file, which no header of ours helps.

    Raises:
        Rejected: the compiler failed or was over its limits (`build_failed`), with its log.
        EnvironmentFault: there is no nvcc here.
    """
    return _compile(sandbox, folder, source, target, nvidia.plan(source.name, target))


def _compile(sandbox: Sandbox, folder: Path, source: Path, target: Target, plan: Plan) -> CodeObject:
    vendor = _vendor(target)
    code = source.with_suffix(vendor.code)
    done = sandbox.run(["sh", "-c", " && ".join(map(shlex.join, plan.steps))], BUILD_LIMITS, folder, plan.visible)
    if not done.ok or not code.is_file():
        what = f"it was stopped after {BUILD_LIMITS.wall_s} s" if done.timed_out else "mend the first error in the log"
        message = f"it does not compile for {target}: {what}"
        raise Rejected(Outcome.BUILD_FAILED, "build", {"message": message}, done.output)
    return CodeObject(
        target=target,
        compiler=plan.compiler,
        commands=plan.steps,
        kernels=tuple(_named(list(vendor.kernels(source, done.output)))),
        bytes=code.stat().st_size,
    )


def _vendor(target: Target) -> Vendor:
    return amd.VENDOR if target.is_amd else nvidia.VENDOR


def _named(uses: list[KernelUse]) -> list[KernelUse]:
    """The same with names as their author wrote them, where c++filt is here to tell."""
    if not uses or shutil.which("c++filt") is None:
        return uses
    names = run(["c++filt", "--", *(use.name for use in uses)], limits=Limits(wall_s=10)).output.splitlines()
    if len(names) != len(uses):
        return uses
    return [use.model_copy(update={"name": name}) for use, name in zip(uses, names, strict=True)]


def heaviest(kernels: Sequence[KernelUse]) -> dict[str, int]:
    """The most that any kernel takes: `vgpr`, `agpr`, `sgpr`, `spills`, `lds`."""
    names = ("vgpr", "agpr", "sgpr", "spills", "lds")
    return {name: max((getattr(kernel, name) for kernel in kernels), default=0) for name in names}
