"""A router whose judge is the fake one: `fake_rank.py <config.json> <restarts> <stall_s>`."""

import sys
from pathlib import Path

from bench.judge.router import run_router
from bench.judge.supervisor import RestartPolicy

if __name__ == "__main__":
    config = Path(sys.argv[1])
    restarts, stall_s = int(sys.argv[2]), float(sys.argv[3])
    judge = [sys.executable, str(Path(__file__).with_name("fake_judge.py")), str(config)]
    sys.exit(run_router(config, judge, RestartPolicy(limit=restarts), stall_s=stall_s))
