"""The speed goals, measured. What the tests share lies in the folder above, where its modules look for each other."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
