"""Start a judge that agents, scripts and curl can use."""

import json
import socket
from pathlib import Path
from typing import Annotated

import typer

from bench.cache import default_cache
from bench.config import JudgeConfig
from bench.court import open_court
from bench.errors import UsageError
from bench.judge.router import run_router
from bench.judge.schemas import Preset
from bench.places import anchored

app = typer.Typer(help=__doc__)

SCRATCH = Path(".scratch")
SAMPLE = '{"kernel": "axpy", "source_file": "axpy.c"}'


@app.command()
def serve(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option(help="JSON file of a job's judge; without one, an open judge starts.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65534, help="Port of an open judge's router; 0 takes free ones.")
    ] = 8800,
    preset: Annotated[Preset, typer.Option(help="Sizes that an open judge times at.")] = Preset.XL,
    allow_sandbox: Annotated[
        str, typer.Option(help="Weakest sandbox level that an open judge serves with: full, user, limits.")
    ] = "user",
    as_json: Annotated[bool, typer.Option("--json", help="Print the addresses as one JSON object.")] = False,
) -> None:
    """Serve one judge rank until it is ended (Ctrl-C, SIGTERM); grades under way are finished first.

    Without --config the judge is open: no tokens, this machine only; its grades, in .scratch/, count nowhere.

    Example: kcourt serve --port 8800 --preset S --allow-sandbox limits
    """
    if config is None:
        open_court(allow_sandbox)
        path = write_open_config(port, preset, allow_sandbox)
        settings = JudgeConfig.read(path)
    else:
        _refuse_beside_config(context)
        path, settings = config, JudgeConfig.read(config)
        open_court(settings.allow_sandbox, settings.rank, settings.ranks, settings.timing_cores, settings.clock_core)
    raise typer.Exit(run_router(path, listening=lambda: _announce(settings, path, as_json)))


def _refuse_beside_config(context: typer.Context) -> None:
    """Raises UsageError when an option that only an open judge has was given beside --config."""
    for name in ("port", "preset", "allow_sandbox"):
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for an open judge; the file of --config says it, so leave {option} out")


def write_open_config(port: int, preset: Preset, allow_sandbox: str) -> Path:
    """Write the configuration of an open judge into a folder of its port; the file's path."""
    router_port, judge_port = (port, port + 1) if port else free_ports(2)
    folder = anchored(SCRATCH / f"judge-{router_port}").resolve()
    config = JudgeConfig(
        router_port=router_port,
        judge_port=judge_port,
        shard=folder / "shard.db",
        log_dir=folder / "logs",
        cache_dir=default_cache().absolute(),
        shared_dir=Path.cwd(),
        preset=preset,
        allow_sandbox=allow_sandbox,
    )
    path = folder / "judge.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(config.model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        message = f"{path}: cannot be written ({error.strerror}); call `kcourt serve` in a folder of yours"
        raise UsageError(message) from error
    return path


def free_ports(number: int) -> tuple[int, ...]:
    """Loopback ports that were free a moment ago."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = tuple(int(opened.getsockname()[1]) for opened in sockets)
    for opened in sockets:
        opened.close()
    return ports


def _announce(config: JudgeConfig, path: Path, as_json: bool) -> None:
    url = f"http://{config.router_host}:{config.router_port}"
    curl = f"curl {url}/score -d '{SAMPLE}'" if config.secret_file is None else f"curl {url}/health"
    if as_json:
        typer.echo(json.dumps({"url": url, "docs": f"{url}/docs", "curl": curl, "config": str(path)}))
        return
    typer.echo(f"judge   {url} (routes: {url}/docs)")
    typer.echo(f"try     {curl}")
    typer.echo(f"logs    {config.log_dir}, grades {config.shard}")
