"""Serves a scripted model: `python -m tests.scripted_model [--script FILE] [--port P] [--log L]`; see the package."""

import argparse
import contextlib
import json
import threading
from pathlib import Path

from . import DEMO, ScriptedModel, read_script


def main() -> None:
    """Serve until ended; prints the root URL."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--script", default=DEMO, help="JSON file, or 'demo'")
    options.add_argument("--log", type=Path)
    given = options.parse_args()
    script = None if given.script == DEMO else read_script(json.loads(Path(given.script).read_text()))
    with ScriptedModel(script, given.log, given.port) as model, contextlib.suppress(KeyboardInterrupt):
        print(model.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
