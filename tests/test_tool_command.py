"""`kcourt tool`: an agent's tools from the command line, one JSON object a call."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_stub import StubJudge
from judge_rank import PATIENCE_S
from tool_files import SECRET, write_settings

from agent.tools.staged import stage_tools

Kcourt = Callable[..., Any]


@pytest.fixture
def judge() -> Iterator[StubJudge]:
    with StubJudge(0, SECRET) as stub:
        yield stub


def test_a_call_prints_what_the_tool_answers(kcourt: Kcourt, judge: StubJudge, tmp_path: Path) -> None:
    settings = write_settings(tmp_path, [judge.url])
    (tmp_path / "folder" / "axpy.c").write_text("/* solved */")
    scored = kcourt("tool", "score", "--settings", str(settings))
    assert scored.code == 0
    assert scored.json["outcome"] == "solved"
    (tmp_path / "folder" / "mine.c").write_text("/* wrong */")
    submitted = kcourt("tool", "submit", '{"file": "mine.c"}', env={"KCOURT_TOOLS": str(settings)})
    assert (submitted.code, submitted.json["outcome"]) == (0, "wrong")
    assert [seen.route for seen in judge.seen] == ["/score", "/submit"]
    assert judge.seen[1].headers["Kcourt-Tokens"] == "7"
    refused = kcourt("tool", "submit", env={"KCOURT_TOOLS": str(settings)})
    assert (refused.code, refused.json["error"]["code"]) == (1, "already_submitted")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("score", "axpy.c"), "bad_arguments", """kcourt tool score '{"file": "axpy.c"}'"""),
        (("score", "[1]"), "bad_arguments", "a JSON object"),
        (("profile", "{}"), "unknown_tool", "the tools are score, submit, syntax_check"),
        (("score", '{"file": 3}'), "bad_arguments", "file: "),
    ],
    ids=["no-json", "no-object", "not-offered", "wrong-type"],
)
def test_a_refusal_is_one_json_object(
    kcourt: Kcourt, tmp_path: Path, arguments: tuple[str, ...], code: str, says: str
) -> None:
    settings = write_settings(tmp_path, ["http://127.0.0.1:9"])
    ran = kcourt("tool", *arguments, "--settings", str(settings))
    assert (ran.code, ran.err) == (1, "")
    assert ran.json["error"]["code"] == code
    assert says in " ".join(ran.json["error"].values())


def test_without_settings_it_says_where_they_come_from(kcourt: Kcourt, tmp_path: Path) -> None:
    ran = kcourt("tool", "score", env={"KCOURT_TOOLS": ""})
    assert (ran.code, ran.out) == (2, "")
    assert "--settings FILE" in ran.err
    gone = kcourt("tool", "score", "--json", "--settings", str(tmp_path / "gone.json"))
    assert gone.code == 64
    assert "gone.json" in gone.json["error"]["message"]


def test_a_sealed_agent_has_this_command_alone(tmp_path: Path) -> None:
    stage_tools(tmp_path / "staged")
    settings = write_settings(tmp_path, ["http://127.0.0.1:9"])
    (tmp_path / "folder" / "axpy.c").write_text("int f(void) { return 1 }")
    program = str(tmp_path / "staged" / "bin" / "kcourt")
    assert program.startswith("/") and Path(sys.executable).is_absolute()

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        env = {"PATH": "/usr/bin:/bin", "KCOURT_TOOLS": str(settings)}
        return subprocess.run([program, *arguments], env=env, capture_output=True, text=True, timeout=PATIENCE_S)

    checked = run("tool", "syntax_check")
    assert checked.returncode == 0, checked.stderr
    assert '"ok": false' in checked.stdout
    assert run("grade", "axpy", "axpy.c").stderr == "usage: kcourt tool NAME [JSON]: an agent has no other command\n"
    lost = run("tool", "score", "--settings", "gone.json")
    assert (lost.returncode, lost.stdout) == (64, "")
    assert lost.stderr.startswith("error: gone.json: ")
