"""The demo with a real client: starts a scripted model, runs the study `demo-claude`, and checks its database."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, select

from bench.judge.schemas import End, Kind, Outcome
from bench.places import run_root
from bench.results.models import Episode, Grade
from bench.results.queries import opened
from cluster.job.layout import RunLayout

from .check_demo import newest_run
from .scripted_model import ScriptedModel

STUDY, SETUP, KEY = "demo-claude", "scripted", "KCOURT_DEMO_KEY"
KERNELS = {"sgemm", "gelu", "nbody"}
COURSE = (Kind.SCORE, Kind.SCORE, Kind.SUBMIT)


def broken_promises(database: Connection) -> Iterator[str]:
    """What the demo promises and this database does not hold, one sentence each."""
    episodes = {episode.kernel: episode for episode in database.execute(select(Episode))}
    if episodes.keys() != KERNELS:
        yield f"episodes of {', '.join(sorted(episodes)) or 'nothing'}, promised are {', '.join(sorted(KERNELS))}"
    for kernel, episode in sorted(episodes.items()):
        if (episode.end, episode.harness) != (End.SUBMITTED, "claude_code"):
            yield f"{kernel}: {episode.harness} ended {episode.end}"
        if not (episode.tokens_fresh and episode.tokens_output and episode.tool_calls and episode.api_s):
            yield f"{kernel}: its record lacks what it used"
        yield from _trajectory(database, kernel)


def _trajectory(database: Connection, kernel: str) -> Iterator[str]:
    """Two previews, then the submit, for more and more tokens; on a busy machine the driver may read one turn late."""
    wanted = select(Grade).where(Grade.kernel == kernel).order_by(Grade.requested_at)
    grades = [(grade.kind, grade.outcome, grade.tokens_spent or 0) for grade in database.execute(wanted)]
    if tuple(kind for kind, _, _ in grades) != COURSE:
        yield f"{kernel}: its grades are {', '.join(kind for kind, _, _ in grades)}"
    if unsolved := [outcome for _, outcome, _ in grades if outcome is not Outcome.SOLVED]:
        yield f"{kernel}: graded {', '.join(unsolved)}"
    spent = [tokens for _, _, tokens in grades]
    if spent != sorted(spent) or not 0 < spent[0] < spent[-1]:
        yield f"{kernel}: tokens at its grades are {spent}"


def main(root: Path) -> int:
    """Run the study below `root`; 0 when its database shows what is promised."""
    with tempfile.TemporaryDirectory() as folder, ScriptedModel(None) as model:
        kcourt = str(Path(sys.executable).with_name("kcourt"))
        env = os.environ | {KEY: "a-dummy-for-loopback"}
        url = f"INFERENCE_SERVICE_BASE_URL={model.url}/v1"
        render = [kcourt, "study", "plan", STUDY, "--system", "local", "--set", url, "--render-to", folder]
        subprocess.run(render, env=env, check=True, stdout=subprocess.DEVNULL)
        run = [kcourt, "run", "--local", f"{folder}/.env.{SETUP}", "--run-root", str(root)]
        ran = subprocess.run(run, env=env)
    if ran.returncode:
        return ran.returncode
    done = newest_run(root)
    with opened([RunLayout(done).results]) as database:
        broken = list(broken_promises(database))
    for promise in broken or [f"{done}: real clients wrote, previewed and submitted {len(KERNELS)} kernels"]:
        print(promise)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else run_root()))
