"""Start a real Slurm cluster on this machine, to learn and to test with; lose nodes of it, mend them, end it.

Example: kcourt devcluster up --nodes 4
"""

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.errors import ExitCode

if TYPE_CHECKING:
    from cluster.devcluster import ClusterStatus
    from cluster.devcluster_files import DevCluster, DevNode

app = typer.Typer(help=__doc__, no_args_is_help=True)

Name = Annotated[str, typer.Option(help="Name of the cluster: 1 to 8 small letters and digits.")]
Base = Annotated[Path | None, typer.Option(help="Folder of its folder; default: .scratch/devcluster of the checkout.")]
Node = Annotated[str, typer.Argument(metavar="NODE", help="A node's name, as n3.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@app.command()
def up(
    nodes: Annotated[int, typer.Option(min=1, max=99, help="Nodes.")] = 6,
    cpus: Annotated[int, typer.Option(min=1, help="CPUs of a node, on one socket, as Slurm counts them.")] = 2,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs of a node; the devices do nothing.")] = 4,
    memory_mb: Annotated[
        int, typer.Option(min=100, help="Memory of a node in MB; a step that uses more is ended.")
    ] = 3000,
    name: Name = "dev",
    base: Base = None,
    as_json: AsJson = False,
) -> None:
    """Start a cluster: each node has a network and a hostname of its own. Needs root and Debian's slurm-wlm and munge.

    What is there already is kept, when all of it works.

    Example: kcourt devcluster up --nodes 4
    """
    from cluster.devcluster import Shape, start, status

    cluster, was_up = start(name, Shape(nodes, cpus, gpus, memory_mb), base)
    if as_json:
        typer.echo(json.dumps(_document(status(cluster))))
        return
    how = "is up already" if was_up else "is up"
    typer.echo(f"cluster {name} {how}: {cluster.nodes} nodes; to use it:")
    typer.echo(f'  eval "$(kcourt devcluster env{_named(name, base)})"')


@app.command()
def down(name: Name = "dev", base: Base = None, as_json: AsJson = False) -> None:
    """End a cluster and remove what is left of it: processes, networks, folder. Works after half a start, too.

    Example: kcourt devcluster down
    """
    from cluster.devcluster import end

    ended = end(name, base)
    if as_json:
        typer.echo(json.dumps({"name": name, "ended": ended}))
    else:
        typer.echo(f"cluster {name} is gone" if ended else f"there is no cluster {name}")


@app.command("status")
def show_status(name: Name = "dev", base: Base = None, as_json: AsJson = False) -> None:
    """Print nodes, their addresses and states, and which daemons live. Ends with 1 when something does not work.

    Example: kcourt devcluster status --json
    """
    from bench.reports.terminal import console_for, plain_table
    from cluster.devcluster import require_cluster, status

    found = status(require_cluster(name, base))
    if as_json:
        typer.echo(json.dumps(_document(found)))
    else:
        console = console_for()
        lives = {True: "lives", False: "is gone"}
        controller = f"{found.cluster.address}:{found.cluster.port}"
        daemons = f"slurmctld {lives[found.slurmctld]} ({controller}), munged {lives[found.munged]}"
        console.print(f"cluster {name} in {found.cluster.folder}: {daemons}", highlight=False, soft_wrap=True)
        rows = [
            (each.node.name, each.node.address, each.state, lives[each.slurmd], "up" if each.linked else "down")
            for each in found.nodes
        ]
        console.print(plain_table(("node", "address", "state", "slurmd", "link"), rows))
    if found.lacking:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def env(name: Name = "dev", base: Base = None, as_json: AsJson = False) -> None:
    """Print what to export, so that Slurm's commands and Kernelcourt's use this cluster.

    Example: kcourt devcluster env
    """
    from cluster.devcluster import require_cluster

    variables = require_cluster(name, base).variables
    if as_json:
        typer.echo(json.dumps(variables))
    else:
        typer.echo("\n".join(f"export {key}={shlex.quote(value)}" for key, value in variables.items()))


@app.command()
def cut(node: Node, name: Name = "dev", base: Base = None, as_json: AsJson = False) -> None:
    """Take a node's link down: what runs there goes on, and nobody reaches it.

    Example: kcourt devcluster cut n3
    """
    from cluster.devcluster import cut

    cut(_member(name, base, node)[1])
    _say(as_json, {"node": node, "linked": False}, f"{node} is cut off; `kcourt devcluster heal {node}` mends it")


@app.command()
def kill(node: Node, name: Name = "dev", base: Base = None, as_json: AsJson = False) -> None:
    """End all processes of a node, its slurmd among them, as when it loses its power.

    Example: kcourt devcluster kill n3
    """
    from cluster.devcluster import kill

    ended = kill(_member(name, base, node)[1])
    _say(
        as_json,
        {"node": node, "processes": ended},
        f"{node} is dead: all {ended} of its processes were killed; `kcourt devcluster heal {node}` mends it",
    )


@app.command()
def heal(node: Node, name: Name = "dev", base: Base = None, as_json: AsJson = False) -> None:
    """Bring a node's link and its slurmd back, and wait until it takes work.

    Example: kcourt devcluster heal n3
    """
    from cluster.devcluster import heal

    cluster, found = _member(name, base, node)
    heal(cluster, found)
    _say(as_json, {"node": node, "linked": True}, f"{node} takes work again")


@app.command("exec", context_settings={"ignore_unknown_options": True})
def execute(
    node: Node,
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="What to run; put -- before it.")],
    name: Name = "dev",
    base: Base = None,
    as_json: AsJson = False,
) -> None:
    """Run a command on a node: with its network, its hostname and the cluster's variables. Ends as the command does.

    Example: kcourt devcluster exec n2 -- hostname
    """
    from bench.process import run
    from cluster.devcluster import environment, require_root
    from cluster.devcluster_nodes import on_node

    require_root()
    cluster, found = _member(name, base, node)
    argv = on_node(found, command)
    if not as_json:
        os.execvpe(argv[0], argv, environment(cluster))
    done = run(argv, env=environment(cluster))
    typer.echo(json.dumps({"node": node, "exit_code": done.returncode, "output": done.output}))
    raise typer.Exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def _named(name: str, base: Path | None) -> str:
    """The options that name a cluster again, where they are not the defaults."""
    options = [*([] if name == "dev" else ["--name", name]), *([] if base is None else ["--base", str(base)])]
    return "".join(f" {shlex.quote(word)}" for word in options)


def _member(name: str, base: Path | None, node: str) -> "tuple[DevCluster, DevNode]":
    from cluster.devcluster import node_of, require_cluster

    cluster = require_cluster(name, base)
    return cluster, node_of(cluster, node)


def _say(as_json: bool, document: dict[str, Any], text: str) -> None:
    typer.echo(json.dumps(document) if as_json else text)


def _document(found: "ClusterStatus") -> dict[str, Any]:
    cluster = found.cluster
    nodes = [
        {
            "name": each.node.name,
            "address": each.node.address,
            "state": each.state,
            "slurmd": each.slurmd,
            "linked": each.linked,
        }
        for each in found.nodes
    ]
    return {
        "name": cluster.name,
        "folder": str(cluster.folder),
        "controller": f"{cluster.address}:{cluster.port}",
        "whole": not found.lacking,
        "munged": found.munged,
        "slurmctld": found.slurmctld,
        "nodes": nodes,
        "variables": cluster.variables,
    }
