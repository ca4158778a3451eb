"""Measure what this machine can measure: clock offset, false credit, known ratios, bandwidths, peak."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from bench.measure.calibration import Calibration, Share

app = typer.Typer()


@app.command()
def calibrate(
    inputs: Annotated[int | None, typer.Option(help="Timed A/A inputs at least; 400, or 16 with --quick.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes and few grades: half a minute, rough.")] = False,
    kernels: Annotated[
        str, typer.Option(help="Kernels of the A/A grades: a tag, a suite, or names with commas.")
    ] = "axpy,sgemm,softmax_rows,spmv_csr",
    allow_sandbox: Annotated[str, typer.Option(help="Weakest sandbox level to grade with.")] = "user",
    out: Annotated[Path | None, typer.Option(help="Also write the result there, as JSON.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Measure nothing; print the last result.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure what this machine can measure, and keep the result for `/health` and the physics floor.

    A whole calibration takes some ten minutes on a quiet machine. docs/measuring.md explains its figures.

    Example: kcourt calibrate --quick --allow-sandbox limits
    """
    found = _last() if show else _measure(inputs, quick, kernels, allow_sandbox)
    if out is not None:
        _write(out, found.model_dump_json(indent=1) + "\n")
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        _show(found)


def _last() -> "Calibration":
    from bench.measure import calibration

    found = calibration.last()
    if found is None:
        raise UsageError("this machine has no calibration yet; run `kcourt calibrate`")
    return found


def _measure(inputs: int | None, quick: bool, kernels: str, allow_sandbox: str) -> "Calibration":
    from rich.console import Console

    from bench.calibrate import calibrate as run
    from bench.calibrate import plan
    from bench.court import open_court
    from bench.measure import calibration
    from bench.task import select

    wanted = plan(select(kernels), (16 if quick else 400) if inputs is None else inputs, quick)
    court = open_court(allow_sandbox)
    with Console(stderr=True).status("bandwidths") as status:
        found = run(court, wanted, lambda what, number, of: status.update(f"{what}: grade {number + 1} of {of}"))
    calibration.save(found)
    return found


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error


def _show(found: "Calibration") -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    rough = " (quick: rough)" if found.quick else ""
    how = f"{found.made_at}, sandbox {found.sandbox}, {found.seconds:.0f} s{rough}"
    console.print(f"[bold]{found.host}[/bold]: {found.cpu_model}, {how}")
    for warning in found.quiet:
        console.print(f"  not quiet: {warning}", markup=False)
    for what, empty in {"empty call": found.empty_call_ns, "empty call in Python": found.empty_python_call_ns}.items():
        over = f"{empty.low:.0f} to {empty.high:.0f} over {empty.of} runners"
        console.print(f"{what}: {empty.median:.0f} ns ({over})")
    _show_against_itself(console, found)
    _show_ladder(console, found)
    _show_ceilings(console, found)


def _show_against_itself(console: "Console", found: "Calibration") -> None:
    own = found.against_itself
    verdict = "significantly above" if own.above_chance else "not significantly above"
    console.print(
        f"A/A ({own.protocol}): {_share(own.credited)} of inputs credited, "
        f"{verdict} the {own.expected:.1%} of chance (p = {own.p:.2f})"
    )
    console.print(f"  |S - 1| at most {own.spread:.3f} in 95 % of grades; intervals that hold 1: {_share(own.covered)}")
    console.print(f"  first of a pair over second: {own.order_effect.median:.4f}")
    console.print(f"  a kernel {own.resolves:.3f} times faster is shown as faster in nine grades of ten; by kernel:")
    for track in own.tracks:
        beside = f"|S - 1| {track.spread:.3f}, {track.credited} of {track.inputs} credited"
        console.print(f"    {track.kernel} {track.preset}: {track.resolves:.3f}, {beside}")


def _show_ladder(console: "Console", found: "Calibration") -> None:
    covered = _share(found.ladder_covered)
    console.print(f"known ratios at {found.ladder_preset}: the interval holds the truth in {covered} of grades")
    for rung in found.ladder:
        held = f"{rung.covered} of {rung.raw.of} intervals hold it"
        console.print(f"  {rung.truth:.2f}: found {rung.raw.median:.3f}, worst error {rung.worst_error:.1%}, {held}")


def _show_ceilings(console: "Console", found: "Calibration") -> None:
    ceilings = found.ceilings
    console.print(f"at most, on {ceilings.cores} timing cores:")
    for level in ceilings.levels:
        size = f" ({level.bytes >> 10} KiB)" if level.name != "memory" else ""
        stream = f", stream {level.stream_rate:.1f} GB/s" if level.stream_rate else ""
        console.print(f"  {level.name}{size}: read {level.read_rate:.1f} GB/s, copy {level.copy_rate:.1f} GB/s{stream}")
    console.print(f"  {ceilings.float32_flops:.0f} Gflop/s in float32, {ceilings.float64_flops:.0f} in float64")


def _share(found: "Share") -> str:
    return f"{found.rate:.1%} ({found.low:.1%} to {found.high:.1%}; {found.hits} of {found.of})"
