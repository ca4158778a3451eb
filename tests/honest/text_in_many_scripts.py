"""
kernel: axpy
outcome: solved

Größe × Länge, Ελληνικά, Русский, 中文, 日本語, עברית, العربية, ½ ∑ ≤ ∞ 🙂 ⚠️ in docstring, comments and strings,
and words of what is not done: import ctypes; open("/etc/passwd"); os.system("id"); eval, exec, __import__("os").
"""

import re
import string
import textwrap

NAME = "Größe \N{MULTIPLICATION SIGN} Länge"  # übliche Namen
WORDS = {"wörter": r"\bimport\s+ctypes\b", 'with "quotes"': "it's 'é'", "鍵": b"\xc3\xa9".decode()}
CODE = """
import os, subprocess
os.system("rm -rf /")  # é
"""


def axpy(x, y, out, n, a):
    """Schreibt a·x + y."""
    told = string.Template("$größe").safe_substitute({}) + f"{NAME!r:>{len(WORDS)}} {'é' + WORDS['wörter']}"
    out[...] = a * x + y if re.search("Länge", textwrap.dedent(told + CODE)) else 0  # ∅
