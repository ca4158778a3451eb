"""List, show and validate kernels.

Example: kcourt task list core
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from bench import abi
from bench.adhoc import read_source
from bench.build.builder import build_command
from bench.build.hipify import cuda_to_hip
from bench.court import open_court
from bench.errors import ExitCode, UsageError
from bench.judge.contract import contract, described, tolerance_in_words
from bench.judge.schemas import Device, GpuOrCpu, Language, Preset
from bench.start import STARTS, start_material
from bench.task import Task, find_task, select, tasks_root
from bench.validate import Check, Verdict, validate, worst
from bench.wording import did_you_mean

app = typer.Typer(help=__doc__, no_args_is_help=True)

Selector = Annotated[str, typer.Argument(help="`all`, a suite, a kernel, a tag, or a comma list of these.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def _facts(task: Task) -> dict[str, Any]:
    manifest = task.manifest
    return {
        "kernel": task.name,
        "suite": manifest.suite,
        "summary": manifest.summary,
        "languages": list(manifest.languages),
        "tags": list(manifest.tags),
        "status": manifest.platform.status,
        "skip_reason": manifest.platform.skip_reason,
    }


@app.command("list")
def list_tasks(selector: Selector = "all", as_json: Json = False) -> None:
    """List kernels.

    Example: kcourt task list core
    """
    facts = [_facts(task) for task in select(selector)]
    if as_json:
        typer.echo(json.dumps({"kernels": facts}))
        return
    from bench.reports.terminal import console_for, plain_table

    rows = [
        (fact["kernel"], fact["suite"], " ".join(fact["languages"]), " ".join(fact["tags"]), fact["summary"])
        for fact in facts
    ]
    console_for().print(plain_table(("kernel", "suite", "languages", "tags", "summary"), rows))


@app.command()
def show(kernel: Annotated[str, typer.Argument(help="Name of a kernel.")], as_json: Json = False) -> None:
    """Show one kernel: signatures, arguments, sizes, tolerance, files.

    Example: kcourt task show softmax_rows
    """
    task = find_task(kernel)
    signatures = {str(language): abi.declaration(task, language) for language in task.manifest.languages}
    gpu = task.gpu_track if task.manifest.gpu else None
    arguments = [described(name, argument) for name, argument in task.arguments.items()]
    if as_json:
        facts = {
            **_facts(task),
            "signatures": signatures,
            "arguments": arguments,
            "sizes": _sizes(task),
            "edge": task.manifest.edge,
            "tolerance": tolerance_in_words(task),
            "task_hash": task.hash,
            "gpu": gpu and {"sizes": _sizes(gpu), "waves": list(_waves(gpu)), "task_hash": gpu.hash},
        }
        typer.echo(json.dumps(facts))
        return
    typer.echo(f"{task.name} ({task.manifest.suite}): {task.manifest.summary}\n")
    for language, signature in signatures.items():
        first, *others = signature.splitlines()
        typer.echo("\n".join([f"  {language:7} {first}", *(f"{'':10}{line}" for line in others)]))
        typer.echo(f"          {build_command(Language(language), task.name)}")
    typer.echo("")
    for facts in arguments:
        typer.echo(f"  {_argument_line(facts)}")
    typer.echo("")
    _print_sizes(task)
    if gpu:
        typer.echo(f"  on a GPU, right with waves of {' and '.join(map(str, _waves(gpu)))} lanes:")
        _print_sizes(gpu)
    for name, edges in task.manifest.edge.items():
        typer.echo(f"  edge {name}: {', '.join(map(str, edges))}")
    typer.echo(f"\n  {tolerance_in_words(task)}")
    baselines = ", ".join(map(str, (*task.baselines, *task.gpu_baselines)))
    typer.echo(f"\n  baseline {baselines}\n  reference {task.reference}\n  task_hash {task.hash}")
    if gpu:
        typer.echo(f"  task_hash on a GPU {gpu.hash}")


def _sizes(task: Task) -> dict[str, dict[str, int]]:
    return {str(preset): task.size(preset) for preset in Preset}


def _waves(gpu: Task) -> tuple[int, ...]:
    return gpu.manifest.gpu.waves if gpu.manifest.gpu else ()


def _print_sizes(task: Task) -> None:
    for preset, values in _sizes(task).items():
        typer.echo(f"  {preset:3} {'  '.join(f'{name}={value}' for name, value in values.items())}")


@app.command()
def stage(
    kernel: Annotated[str, typer.Argument(help="Name of a kernel.")],
    start: Annotated[str, typer.Option(help=f"Start material: {', '.join(STARTS)}.")],
    language: Annotated[Language, typer.Option(help="Language that the agent writes.")],
    device: Annotated[GpuOrCpu, typer.Option(help="Device of the judge that grades it.")] = GpuOrCpu.CPU,
    as_json: Json = False,
) -> None:
    """Show what an agent sees of a kernel that starts from one thing and writes another: a direction.

    Example: kcourt task stage softmax_rows --start hip --language triton
    """
    task = find_task(kernel)
    if start not in STARTS:
        raise UsageError(f"no start material '{start}'; {did_you_mean(start, STARTS)}")
    if language not in task.manifest.languages:
        raise UsageError(f"{kernel} is not written in {language}; take one of {', '.join(task.manifest.languages)}")
    told = contract(task, language, Preset.XL, Device(device))
    files = {name: content.decode() for name, content in start_material(task, STARTS[start]).items()}
    direction = f"{'instruction' if start == 'none' else start}2{language}"
    if as_json:
        typer.echo(json.dumps({"kernel": kernel, "direction": direction, "contract": told, "files": files}))
        return
    typer.echo(f"{kernel}, {direction}: {told['summary']}\n\nwrite {told['file_name']} with this entry point:\n")
    typer.echo("".join(f"  {line}\n" for line in told["signature"].splitlines()))
    on = f"Graded on {told['graded_on']}." if told["graded_on"] else ""
    timed = "".join(f"\n  {name}: {low} to {high}" for name, (low, high) in told["timed_sizes"].items())
    for said in filter(None, (told["call"], on, f"build: {told['build']}", timed and f"timed at:{timed}")):
        typer.echo(f"  {said}\n")
    typer.echo(f"in the folder: {', '.join(files) or 'nothing'}")
    for name, text in files.items():
        typer.echo(f"\n==> {name} <==\n{text}", nl=False)


@app.command()
def hipify(file: Annotated[Path, typer.Argument(help="A source file in CUDA.")], as_json: Json = False) -> None:
    """Print a CUDA file with HIP's names for those of CUDA's runtime; names that were left are named on stderr.

    Example: kcourt task hipify axpy.cu
    """
    text, left = cuda_to_hip(read_source(file))
    if as_json:
        typer.echo(json.dumps({"file": str(file), "hip": text, "left": left}))
        return
    typer.echo(text, nl=False)
    if left:
        typer.echo(f"{file}: left as they are: {', '.join(left)}; change them by hand", err=True)


def _argument_line(facts: dict[str, Any]) -> str:
    shape = f"[{', '.join(facts['shape'])}]" if facts["shape"] else ""
    below = f", 0 <= value < {facts['below']}" if facts["below"] else ""
    pointers = f", ascending, 0 <= value <= {facts['at_most']}" if facts["at_most"] else ""
    return f"{facts['name']:10} {facts['role']:7} {facts['dtype']}{shape}{below}{pointers}"


@app.command("validate")
def validate_tasks(
    selector: Selector = "all",
    report: Annotated[Path | None, typer.Option(help="Also write the report as YAML to this file.")] = None,
    allow_sandbox: Annotated[str, typer.Option(help="Weakest sandbox level to grade with.")] = "user",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the checks that passed, too.")] = False,
    as_json: Json = False,
) -> None:
    """Prove that honest controls pass and wrong ones and mutants fail; exit code 1 when a kernel FAILs.

    Example: kcourt task validate all --allow-sandbox limits --report validation_report.yaml
    """
    court = open_court(allow_sandbox)
    if report is not None:
        _must_be_writable(report)
    found: dict[str, list[Check]] = {}
    for task in select(selector):
        found[task.name] = list(validate(task, court))
        if not as_json:
            _print_checks(task.name, found[task.name], verbose)
    summary = {
        "root": str(tasks_root()),
        "kernels": {
            name: {
                "verdict": str(worst(checks)),
                "checks": [{"kernel": name, **asdict(check), "verdict": str(check.verdict)} for check in checks],
            }
            for name, checks in found.items()
        },
    }
    if report is not None:
        report.write_text(yaml.safe_dump(summary, sort_keys=False, allow_unicode=True), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(summary))
    if any(worst(checks) is Verdict.FAIL for checks in found.values()):
        raise typer.Exit(ExitCode.FAILED)


def _must_be_writable(path: Path) -> None:
    """Raises UsageError now, rather than after minutes of work."""
    try:
        path.touch()
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error


def _print_checks(kernel: str, checks: list[Check], verbose: bool) -> None:
    typer.echo(f"{worst(checks)}  {kernel}  ({len(checks)} checks)")
    for check in checks:
        if verbose or check.verdict is not Verdict.PASS:
            typer.echo(f"      {check.verdict}  {check.check}: {check.note}")
