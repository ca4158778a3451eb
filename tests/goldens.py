"""Golden files: stored expected texts under tests/golden/; `RENEW_GOLDEN=1 pytest TEST` writes them again."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Fail unless `text` is what the golden file of that name holds."""
    path = FOLDER / name
    if os.environ.get("RENEW_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path} differs; if the new text is right, say RENEW_GOLDEN=1"
