"""A workspace: scratch memory that a submission asks for and gets behind its other arguments."""

import pytest
from kernels import AXPY, INCLUDES, LOOP, graded

from bench.judge.schemas import Language, Outcome

ENTRY = AXPY.replace(")", ", void *workspace, int64_t workspace_bytes)")
USES = "float *t = workspace; int64_t m = workspace_bytes / 4;"
BY_WORKSPACE = f"{USES} for (int64_t i = 0; i < n; i++) {{ t[i % m] = a * x[i]; out[i] = t[i % m] + y[i]; }}"
PYTHON = """
def axpy(x, y, out, n, a, workspace):
    assert workspace.nbytes == 4096 and workspace.flags.writeable
    workspace[:] = 1
    out[:] = a * x + y
"""


def c(body: str) -> str:
    return f"{INCLUDES}\n{ENTRY} {{ {body} }}\n"


@pytest.mark.parametrize("nbytes", [4, 64, 1000, 4097, 1 << 20])
def test_a_workspace_is_delivered_with_its_size(nbytes: int) -> None:
    report = graded(c(f"if (workspace_bytes != {nbytes}) return; {BY_WORKSPACE}"), workspace_bytes=nbytes)
    assert report.outcome is Outcome.SOLVED, report.detail


def test_python_gets_an_array_of_bytes() -> None:
    report = graded(PYTHON, Language.PYTHON, workspace_bytes=4096)
    assert report.outcome is Outcome.SOLVED, (report.detail, report.log)


@pytest.mark.parametrize("where", ["workspace_bytes", "-1"], ids=["behind", "before"])
def test_writing_beside_the_workspace_is_tampering(where: str) -> None:
    report = graded(c(f"{LOOP} ((char *)workspace)[{where}] ^= 1;"), workspace_bytes=1024)
    assert (report.outcome, report.property) == (Outcome.TAMPERED, "memory")
    assert report.detail["output"] == "workspace"


def test_nothing_is_kept_in_a_workspace_between_calls() -> None:
    keeps = "int64_t *t = workspace; if (t[0] == 42) return; t[0] = 42;"
    report = graded(c(f"{keeps} {LOOP}"), workspace_bytes=1024)
    assert report.outcome is Outcome.SOLVED, report.detail
