"""Reports and accounts: what counts as delivered or owed, and pages that hostile text cannot break."""

import io
import re
from html.parser import HTMLParser

import jinja2
import pytest
from rich.console import Console

from bench.judge.schemas import End, EpisodeRecord, Kind, Language, Outcome, Preset, Problem, SetupRecord
from bench.reports.html import job_report
from bench.reports.terminal import console_for, result_cells, results_table
from bench.results.merge import merge
from bench.results.queries import Assignment, TableRow, Verdict, opened, table
from bench.results.shard import Shard
from cluster.commands.view import live_table, progress_line, view_for
from cluster.job.health import RankHealth, ServiceState
from cluster.job.progress import Progress
from cluster.job.summary import OwedClass, Standing, account

PROBLEM = Problem(setup="x", kernel="axpy", language=Language.C)
HOSTILE = "<script>alert('&')</script>\"{{ 7 * 7 }}"


def verdict(outcome, suspect=None):
    return Verdict(
        assignment=Assignment("x", "axpy", 0),
        grade_id="g",
        job_id="j",
        label="x.n0.p0.w0",
        attempt=1,
        rank=0,
        kind=Kind.SUBMIT,
        outcome=outcome,
        preset=Preset.M,
        score=None,
        interval=None,
        faster=None,
        suspect=suspect,
        protocol="mw4x5",
        task_hash=None,
        requested_at="",
    )


SUSPECT = verdict(Outcome.SOLVED, "too fast")


@pytest.mark.parametrize(
    ("found", "review", "end", "standing", "owed"),
    [
        pytest.param(verdict(Outcome.SOLVED), None, End.SUBMITTED, Standing.DELIVERED, None, id="solved"),
        pytest.param(verdict(Outcome.WRONG), None, End.SUBMITTED, Standing.DELIVERED, None, id="wrong-counts-too"),
        pytest.param(verdict(Outcome.TAMPERED), None, End.CRASH, Standing.DELIVERED, None, id="crash-after-submit"),
        pytest.param(None, SUSPECT, End.SUBMITTED, Standing.REVIEW, None, id="suspect"),
        pytest.param(verdict(Outcome.WRONG), SUSPECT, End.SUBMITTED, Standing.REVIEW, None, id="suspect-after-wrong"),
        pytest.param(None, None, End.TIME, Standing.OWED, OwedClass.BUDGET, id="time"),
        pytest.param(None, None, End.TOKENS, Standing.OWED, OwedClass.BUDGET, id="tokens"),
        pytest.param(None, None, End.CONTEXT, Standing.OWED, OwedClass.BUDGET, id="context"),
        pytest.param(None, None, End.CANCELLED, Standing.OWED, OwedClass.INFRA, id="cancelled"),
        pytest.param(None, None, End.FINISHED, Standing.OWED, OwedClass.INFRA, id="finished-without-submit"),
        pytest.param(None, None, End.SUBMITTED, Standing.OWED, OwedClass.INFRA, id="disqualified"),
        pytest.param(None, None, None, Standing.OWED, OwedClass.INFRA, id="no-episode"),
    ],
)
def test_every_planned_item_is_accounted_for(found, review, end, standing, owed):
    item = account(PROBLEM, found, end, review)
    assert (item.standing, item.owed, item.end) == (standing, owed, end)
    assert (item.why is None) == (standing is Standing.DELIVERED)


@pytest.fixture
def results(tmp_path):
    """A database with one episode that left no answer, of a setup and a kernel with hostile names."""
    setup = SetupRecord(setup="x", model=HOSTILE)
    Shard.open(tmp_path / "shard.db", "job", 0, {"x": setup}).close()
    episode = EpisodeRecord(
        label="x.n0.p0.w0",
        setup="x",
        kernel=HOSTILE,
        slot=0,
        node=0,
        problem=0,
        worker=0,
        end=End.TIME,
        attempts=1,
        wall_s=3.0,
        harness="scripted",
        harness_version="0",
        started_at="2026-01-01T00:00:00.000+00:00",
        ended_at="2026-01-01T00:00:03.000+00:00",
    )
    merge(tmp_path / "results.db", [tmp_path / "shard.db"], [episode])
    return tmp_path / "results.db"


SUMMARY = {
    "job_id": "job",
    "planned": 1,
    "delivered": 0,
    "owed": 1,
    "review": 0,
    "seconds": 3.2,
    "exit_code": 0,
    "exit": "ok",
    "reason": HOSTILE,
}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.links = [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        self.text += data


def test_the_page_is_self_contained_and_escapes_hostile_text(results):
    page = Page(job_report(results, SUMMARY))
    assert "script" not in page.tags
    assert page.links == []
    assert page.text.count(HOSTILE) == 2
    assert "none (time)" in page.text
    assert not re.search(r"\b49\b", page.text)


def test_a_summary_that_lacks_a_field_is_an_error(results):
    with pytest.raises(jinja2.UndefinedError, match="job_id"):
        job_report(results, {})


def test_a_row_without_an_answer_says_how_the_episode_ended(results):
    with opened([results]) as database:
        (row,) = table(database)
    assert result_cells(row) == (HOSTILE, "x", "0", "-", "none (time)", "-", "-", "-", "0", "3.0")


def test_a_row_shows_the_preset_that_it_was_timed_at():
    row = TableRow(Assignment("x", "axpy", 0), verdict(Outcome.SOLVED), 2, End.SUBMITTED, 3.0)
    assert result_cells(row) == ("axpy", "x", "0", "M", "solved", "-", "-", "-", "2", "3.0")


def test_a_pipe_cuts_no_cell(capsys):
    kernel = "k" * 63
    row = TableRow(Assignment("x" * 60, kernel, 0), verdict(Outcome.BUILD_FAILED), 2, None, None)
    console_for().print(results_table([row]))
    assert f"{kernel} {'x' * 60} 0" in " ".join(capsys.readouterr().out.split())


def test_a_terminal_gets_a_live_table_with_the_phases_above_it():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with view_for(console) as view:
        view.phase("merging [bold]shards[/bold]")
        view.progress(Progress(9, 4, 1, {"score": 3}, ranks=(RankHealth(7, ServiceState.READY, queue_depth=2),)))
    assert "merging [bold]shards[/bold]" in screen.getvalue()


def test_the_live_table_has_a_row_a_rank():
    shown = io.StringIO()
    ranks = (RankHealth(7, ServiceState.READY, queue_depth=2),)
    Console(file=shown, width=100).print(live_table(Progress(9, 4, 1, {"score": 3}, ranks=ranks)))
    text = " ".join(shown.getvalue().split())
    assert "1 done 3 running 5 left" in text
    assert "score 3" in text
    assert "7 │ ready │ 2" in text


def test_a_pipe_gets_a_line_only_when_something_changed(capsys):
    with view_for(Console(width=100)) as view:
        view.progress(Progress(9))
        view.progress(Progress(9))
    assert capsys.readouterr().out.count("0/9 ended") == 1


def test_a_progress_line_names_episodes_grades_and_queues():
    ranks = (RankHealth(0, ServiceState.READY, queue_depth=2), RankHealth(1, ServiceState.LOST))
    line = progress_line(Progress(9, 4, 1, {"score": 3}, ranks=ranks))
    assert line == (
        "episodes: 1/9 ended, 3 running, 5 left | grades: 3 score | rank 0 ready (2 queued), rank 1 lost (0 queued)"
    )
