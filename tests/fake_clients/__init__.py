"""Programs that behave as clients document their command lines, for machines that have none of them."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
# Name of a client → the file that plays it.
PLAYED_BY = {"mini": "mini", "geak": "mini", "cursor-agent": "cursor-agent"}


def put_fakes(folder: Path) -> Path:
    """Write the clients into `folder`, run by this interpreter as installed scripts are; returns the folder."""
    folder.mkdir(parents=True)
    for client, played_by in PLAYED_BY.items():
        _, _, body = (HERE / played_by).read_text(encoding="utf-8").partition("\n")
        (folder / client).write_text(f"#!{sys.executable}\n{body}", encoding="utf-8")
        (folder / client).chmod(0o755)
    return folder
