"""The agent's parts by themselves: budgets, ends, usage, settings, folders, judges, tools, imports."""

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agent_node import SECRET, NodeFiles
from agent_stub import StubJudge
from conftest import Ran, run_program
from kernels import NEEDS_GFORTRAN
from tool_files import tool_settings

from agent.answers import accepted_submit, last_correct_score, read_calls
from agent.budget import Budget, Observed, Stop, budget_of, classify, relaunches
from agent.config import AgentConfig, read_problems
from agent.driver import run_node
from agent.folder import fresh_folder, keep_workspace
from agent.harnesses import Event, load_harness
from agent.harnesses.scripted import Scripted
from agent.judges import Judges, is_lost
from agent.tools.judge_tools import JudgeTools
from agent.tools.offered import CHECKED, Tool, offered
from agent.tools.syntax_check import CHECKERS, syntax_check
from agent.usage import NOTHING, Usage
from bench.build.toolchain import toolchains
from bench.errors import ConfigError, UsageError
from bench.judge.client import Envelope, JudgeRefused
from bench.judge.schemas import End, GradeRequest, Language, Problem, SubmissionMode, token_for

SINGLE, MULTI, BLIND = SubmissionMode.SINGLE, SubmissionMode.MULTI, SubmissionMode.BLIND


@pytest.mark.parametrize(
    ("seen", "mode", "end"),
    [
        (Observed(1, submitted=True), SINGLE, End.SUBMITTED),
        (Observed(-9, Stop.CANCELLED, submitted=True), SINGLE, End.SUBMITTED),
        (Observed(-9, Stop.LINGERED, submitted=True), BLIND, End.SUBMITTED),
        (Observed(1, submitted=True), MULTI, End.CRASH),
        (Observed(0, reported=End.FINISHED, submitted=True), MULTI, End.SUBMITTED),
        (Observed(-15, Stop.TIME, submitted=True), MULTI, End.TIME),
        (Observed(0, reported=End.FINISHED), SINGLE, End.FINISHED),
        (Observed(-15, Stop.LINGERED, reported=End.FINISHED), SINGLE, End.FINISHED),
        (Observed(0, reported=End.API), SINGLE, End.API),
        (Observed(0, reported=End.CONTEXT, submitted=True), MULTI, End.CONTEXT),
        (Observed(0), SINGLE, End.CRASH),
        (Observed(-15, Stop.TIME), SINGLE, End.TIME),
        (Observed(-15, Stop.TOKENS), SINGLE, End.TOKENS),
        (Observed(-15, Stop.CANCELLED, ready=False), SINGLE, End.CANCELLED),
        (Observed(-15, Stop.NO_TOOLS, ready=False), SINGLE, End.TOOLS_UNAVAILABLE),
        (Observed(-15, Stop.STALLED), SINGLE, End.CRASH),
        (Observed(None, ready=False), SINGLE, End.START_FAILED),
        (Observed(127, ready=False), SINGLE, End.START_FAILED),
        (Observed(126, ready=False), SINGLE, End.START_FAILED),
        (Observed(127), SINGLE, End.CRASH),
        (Observed(0, ready=False, reported=End.FINISHED), SINGLE, End.TOOLS_UNAVAILABLE),
    ],
)
def test_classify(seen: Observed, mode: SubmissionMode, end: End) -> None:
    assert classify(seen, mode) is end


@pytest.mark.parametrize(
    ("end", "launches", "remaining_s", "again"),
    [
        (End.CRASH, 1, 10.0, True),
        (End.CRASH, 2, 10.0, True),
        (End.CRASH, 3, 10.0, False),
        (End.CRASH, 1, 0.0, False),
        (End.TOOLS_UNAVAILABLE, 1, 10.0, True),
        *[(end, 1, 10.0, False) for end in End if end not in (End.CRASH, End.TOOLS_UNAVAILABLE)],
    ],
)
def test_relaunches(end: End, launches: int, remaining_s: float, again: bool) -> None:
    assert relaunches(end, launches, 3, remaining_s) is again


def test_budget_spans_attempts_and_problems_override_it() -> None:
    budget = budget_of({"timeout_s": 5}, Budget(60, 1000))
    assert budget == Budget(5, 1000)
    assert (budget.remaining_s(2), budget.remaining_s(9)) == (3, 0)
    assert not budget.tokens_spent(Usage(tokens_fresh=999))
    assert budget.tokens_spent(Usage(tokens_fresh=400, tokens_cached=500, tokens_output=100))


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [
        (NOTHING, NOTHING, NOTHING),
        (Usage(turns=1), NOTHING, Usage(turns=1)),
        (NOTHING, Usage(tokens_fresh=0), Usage(tokens_fresh=0)),
        (Usage(tokens_fresh=2, api_s=0.5), Usage(tokens_fresh=3), Usage(tokens_fresh=5, api_s=0.5)),
    ],
    ids=["nothing", "one-sided", "zero-is-reported", "sum"],
)
def test_usage_adds_and_unreported_stays_unreported(one: Usage, other: Usage, total: Usage) -> None:
    assert one + other == total


def test_every_setting_is_described() -> None:
    assert [name for name, field in AgentConfig.model_fields.items() if not field.description] == []


@pytest.mark.parametrize(
    ("cpus", "workers", "expected"),
    [
        (None, 2, [None, None]),
        ((0, 1, 2, 3, 4), 2, [{0, 2, 4}, {1, 3}]),
        ((4, 5), 3, [{4}, {5}, {4}]),
    ],
    ids=["shared", "dealt", "fewer-than-workers"],
)
def test_cpus_are_dealt_round_robin(
    tmp_path: Path, cpus: tuple[int, ...] | None, workers: int, expected: list[Any]
) -> None:
    config = NodeFiles(tmp_path, ["http://x"], cpus=cpus, workers=workers).config()
    assert [config.worker_cpus(worker) for worker in range(workers)] == expected


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        ({"kernel": "missing"}, ":1: .*missing is not there; stage"),
        ({"setup": "other"}, ":1: setup 'other' is not in this configuration; known: s"),
        ({"budget": {"hours": 2}}, ":1: budget.hours: unknown key; known: timeout_s, max_tokens"),
        ({"budget": {"timeout_s": 0}}, ":1: budget.timeout_s: 0.0 is not above 0"),
        ({"slot": -1}, ":1: slot: "),
        ({"wish": 1}, ":1: wish: "),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_problem_names_file_and_line(tmp_path: Path, problem: dict[str, Any], text: str) -> None:
    node = NodeFiles(tmp_path, ["http://x"])
    node.add("s", ["axpy"], {})
    node.problems[0] |= problem
    with pytest.raises(ConfigError, match=f"problems.jsonl{text}"):
        read_problems(node.config())


def test_a_problem_keeps_whatever_its_text_holds(tmp_path: Path) -> None:
    node = NodeFiles(tmp_path, ["http://x"])
    node.add("s", ["axpy"], {})
    config, text = node.config(), "one\u2028two\x85three"
    problem = Problem(setup="s", kernel="axpy", language="c", text=text)
    config.problems_file.write_text(problem.model_dump_json() + "\n", encoding="utf-8")
    assert read_problems(config) == [(0, problem)]


@pytest.mark.parametrize("content", [None, b"\xff"], ids=["missing", "not-utf8"])
def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "agent.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=str(path)):
        AgentConfig.read(path)


def test_deals_every_nth_problem_with_its_index_in_the_whole_list(tmp_path: Path) -> None:
    node = NodeFiles(tmp_path, ["http://x"], node=1, nodes=3)
    node.add("s", [f"k{number}" for number in range(8)], {})
    assert [index for index, _ in read_problems(node.config())] == [1, 4, 7]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"secret_file": "/no/secret"}, "/no/secret: no job secret"),
        ({"cpus": (99999,)}, r"cpus: this process may not use \[99999\]; name some of"),
        (
            {"setups": {"s": {"setup": "s", "harness": "nobody"}}},
            "unknown harness 'nobody'; known: .*scripted",
        ),
        ({"harness_options": {"s": {}}}, "takes one option, 'plan' .*; given: none"),
        ({"harness_options": {"s": {"plan": "/no/plan"}}}, "/no/plan: cannot be read"),
    ],
    ids=["secret", "cpus", "harness", "options", "plan"],
)
def test_what_does_not_fit_is_refused_before_anything_starts(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    node = NodeFiles(tmp_path, ["http://x"], **change)
    node.script("s", [], ["axpy"])
    with pytest.raises(ConfigError, match=text):
        run_node(node.config())
    assert not node.run_dir.exists()


def test_run_directory_is_used_once(tmp_path: Path) -> None:
    node = NodeFiles(tmp_path, ["http://x"])
    node.script("s", [], ["axpy"])
    (node.run_dir / "problem-0-worker-0").mkdir(parents=True)
    with pytest.raises(ConfigError, match="holds episodes already"):
        run_node(node.config())


def test_command_names_file_and_key_of_a_wrong_config(kcourt: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    path.write_text('{"wrokers": 3}')
    done = kcourt("agent", "run", "--config", path)
    assert done.code == 64
    assert f"{path}: " in done.err


def test_plan_fault_names_the_step(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"axpy": [{"tool": "dance"}]}')
    with pytest.raises(ConfigError, match=r"plan.json: axpy\.0: "):
        load_harness("scripted", {"plan": str(plan)})


ODD_LINES = [
    b"",
    b"[]",
    b"null",
    b"{",
    b"\xff",
    b'{"type": "init"}',
    b'{"type": "init", "tools": 3, "model": ""}',
    b'{"type": "tool_call", "usage": {"wish": 1}}',
    b'{"type": "result", "end": "won"}',
    b'{"type": "news"}',
]


@pytest.mark.parametrize("line", ODD_LINES)
def test_scripted_reads_any_line(tmp_path: Path, line: bytes) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text("{}")
    assert Scripted({"plan": str(plan)}).read(line) == Event()


def test_folders_are_numbered_once_whoever_asks(tmp_path: Path) -> None:
    material = tmp_path / "tasks" / "axpy"
    (material / "sub").mkdir(parents=True)
    (material / "sub" / "baseline.c").write_text("start")
    (material / "sub" / "baseline.c").chmod(0o444)
    (material / "sub").chmod(0o555)
    log = tmp_path / "agent-folders.jsonl"
    (tmp_path / "agent-notes").mkdir()

    def claim(number: int) -> Path:
        return fresh_folder(tmp_path, material, log, f"s.n0.p{number}.w0", 1)

    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(claim, range(24)))
    assert {folder.name for folder in folders} == {f"agent-{number}" for number in range(1, 25)}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["path"] for line in lines} == {str(folder) for folder in folders}
    copy = folders[0] / "sub" / "baseline.c"
    assert copy.stat().st_mode & 0o200
    assert copy.parent.stat().st_mode & 0o200


def test_kept_workspace_leaves_out_what_is_no_source(tmp_path: Path) -> None:
    folder, kept = tmp_path / "agent-1", tmp_path / "workspace"
    folder.mkdir()
    (folder / "axpy.c").write_text("mine")
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/etc/hostname")
    with (folder / "core").open("wb") as core:
        core.truncate(1 << 40)
    left_out = keep_workspace(folder, kept)
    assert sorted(path.name for path in kept.iterdir()) == ["axpy.c", "link"]
    assert (kept / "link").is_symlink()
    assert len(left_out) == 2


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("axpy.c", None, "cannot be read .*; write it first"),
        ("axpy.c", b"\xff\xfe", "not UTF-8 text at byte 0"),
        ("axpy.c", b" " * ((4 << 20) + 1), "larger than 4194304 bytes"),
        ("../axpy.c", b"", "outside your folder"),
        ("/etc/hostname", None, "outside your folder"),
        (".", None, "cannot be read"),
    ],
    ids=["missing", "binary", "big", "parent", "absolute", "folder"],
)
def test_tool_says_why_a_file_cannot_be_sent(tmp_path: Path, name: str, content: bytes | None, text: str) -> None:
    tools = JudgeTools(tool_settings(tmp_path, ["http://127.0.0.1:9"]))
    if content is not None:
        (tmp_path / "folder" / name).write_bytes(content)
    with pytest.raises(UsageError, match=text):
        tools.ask("score", name)


def test_calls_are_kept_and_settled_once(tmp_path: Path) -> None:
    with StubJudge(0, SECRET) as judge:
        settings = tool_settings(tmp_path, [judge.url])
        tools = JudgeTools(settings)
        (tmp_path / "folder" / "axpy.c").write_text("/* solved */")
        scored = tools.ask("score", "axpy.c")
        submitted = tools.ask("submit", "axpy.c")
        with settings.answers_file.open("a") as torn:
            torn.write('{"at": "20')
        calls = read_calls(settings.answers_file)
        assert last_correct_score(calls) == scored
        assert accepted_submit(calls) == submitted
        assert settings.scored_source(scored.grade_id).read_text() == "/* solved */"
        tools.settle()
        assert len(judge.seen) == 2
        settings.answers_file.unlink()
        kept = settings.pending_file.read_text()
        settings.pending_file.write_text(kept[:20])
        tools.settle()
        assert len(judge.seen) == 2
        settings.pending_file.write_text(kept)
        tools.settle()
        assert accepted_submit(read_calls(settings.answers_file)) == submitted
        tools.close()


REQUEST = GradeRequest(kernel="axpy", language=Language.C, source="/* solved */")


def test_unreachable_rank_is_left_for_good(tmp_path: Path) -> None:
    with StubJudge(1, SECRET) as survivor:
        urls = ["http://127.0.0.1:9", survivor.url]
        judges = Judges(urls, 0, token_for(SECRET, "s.n0.p0.w0"), tries=1)
        assert judges.ask("score", REQUEST, Envelope(attempt=1)).rank == 1
        assert judges.rank == 1
        judges.close()


def test_a_rank_that_nobody_reaches_is_not_waited_for_as_one_that_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.judges.UNREACHABLE_S", 0.3)
    with StubJudge(1, SECRET) as survivor:
        judges = Judges(["http://127.0.0.1:9", survivor.url], 0, token_for(SECRET, "s.n0.p0.w0"))
        started = time.monotonic()
        assert judges.ask("score", REQUEST, Envelope(attempt=1)).rank == 1
        assert 0.3 < time.monotonic() - started < 60
        judges.close()


def test_calls_side_by_side_leave_a_lost_rank_once() -> None:
    with StubJudge(0, SECRET, lost=True) as lost, StubJudge(1, SECRET) as next_one, StubJudge(2, SECRET) as spare:
        urls = [lost.url, next_one.url, spare.url]
        judges = Judges(urls, 0, token_for(SECRET, "multi.n0.p0.w0"), tries=1)
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(judges.ask, "score", REQUEST, Envelope(attempt=1)) for _ in range(8)]
        assert {answer.result().rank for answer in asked} == {1}
        assert judges.rank == 1 and spare.seen == []
        judges.close()


def test_last_rank_gives_its_own_reason() -> None:
    with StubJudge(0, SECRET, lost=True) as one, StubJudge(1, SECRET, lost=True) as other:
        judges = Judges([one.url, other.url], 1, token_for(SECRET, "s.n0.p0.w0"), tries=1)
        with pytest.raises(JudgeRefused, match="rank_lost"):
            judges.ask("submit", REQUEST, Envelope(attempt=1))
        assert (len(one.seen), len(other.seen)) == (1, 1)
        judges.close()


@pytest.mark.parametrize(
    ("code", "status", "lost"),
    [
        ("unreachable", None, True),
        ("rank_lost", 503, True),
        ("judge_restarting", 502, True),
        ("wrong_rank", 421, True),
        ("not_provisioned", 503, False),
        ("no_answer_yet", None, False),
        ("queue_full", 429, False),
        ("already_submitted", 409, False),
        ("bad_request", 400, False),
    ],
)
def test_which_refusal_means_a_lost_rank(code: str, status: int | None, lost: bool) -> None:
    assert is_lost(JudgeRefused(code, status, "")) is lost


@pytest.mark.parametrize(
    ("name", "text", "ok"),
    [
        ("a.c", "int f(void) { return 1; }", True),
        ("a.c", "int f(void) { return 1 }", False),
        ("a.cpp", "auto f() { return 1; }", True),
        pytest.param("a.f90", "module m\nend module m\n", True, marks=NEEDS_GFORTRAN),
        pytest.param("a.f90", "subroutine f(\n", False, marks=NEEDS_GFORTRAN),
        ("a.py", "def f(): return 1", True),
        ("a.py", "def f(: return 1", False),
    ],
)
def test_syntax_check(tmp_path: Path, name: str, text: str, ok: bool) -> None:
    path = tmp_path / name
    path.write_text(text)
    report = syntax_check(path, Language.of(path))
    assert report.ok is ok
    assert ok or "a." in report.messages
    assert list(tmp_path.iterdir()) == [path]


def test_imports_without_what_only_a_judge_needs() -> None:
    program = """
import importlib, pkgutil, sys
class Wall:
    def find_spec(self, name, *_):
        if name.split('.')[0] in {'numpy', 'scipy', 'sqlalchemy', 'fastapi', 'torch'}:
            raise ImportError(name)
sys.meta_path.insert(0, Wall())
import agent
for module in pkgutil.walk_packages(agent.__path__, 'agent.'):
    importlib.import_module(module.name)
print(*sorted(name for name in sys.modules if name.startswith('bench.')))
"""
    done = run_program(sys.executable, "-c", program)
    assert done.code == 0, done.err
    packages = {".".join(name.split(".")[:2]) for name in done.out.split()}
    # The sandbox, which seals agents, brings along how its own helpers are built and kept.
    sandbox = {"bench.sandbox", "bench.native", "bench.cache", "bench.places"}
    assert packages <= {"bench.errors", "bench.process", "bench.wording", "bench.judge", *sandbox}
    loaded = {name for name in done.out.split() if name.startswith("bench.judge.")}
    assert loaded == {"bench.judge.schemas", "bench.judge.client"}


def test_syntax_is_checked_where_it_is_offered() -> None:
    assert set(CHECKERS) == set(CHECKED)
    assert Tool.SYNTAX_CHECK not in offered(SubmissionMode.MULTI, Language.HIP)


def test_syntax_is_checked_by_the_standard_of_the_judges_builds() -> None:
    for language in set(CHECKERS) - {Language.PYTHON}:
        standards = [flag for flag in toolchains()[language].flags if flag.startswith("-std=")]
        assert len(standards) == 1
        assert standards[0] in CHECKERS[language]
