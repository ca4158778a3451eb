"""The run directory's layout, against a stored list."""

import stat

import pytest
from pydantic import BaseModel

from bench.errors import ConfigError
from cluster.job.documents import read_json, write_json, write_private
from cluster.job.layout import RunLayout

GOLDEN = """\
MERGE_FAILED
agent-folders.jsonl
agent-launch
agent-launch/gold.env
agent-launch/gold.launch
agent-launch/plan.json
agent-launch/problems-gold.jsonl
agent-launch/problems.jsonl
agent-launch/script-gold.json
agents
agents/agent-0.json
agents/driver-0.log
agents/node-0
agents/node-0/events.jsonl
inference.json
inference/engine-0.log
judge
judge/judge-1.json
judge/rank-1/grades.db
judge/root.secret
judge/router-1.log
judge/serve-1.log
judge/upstream-1.log
judge/worker-1.log
monitor
monitor/n1.csv
monitor/n1.log
report.html
results.db
shared
shared/setups/gold
shared/tasks/axpy
state.json
steps
summary.json
usage.jsonl
"""


def every_path(layout):
    named = [
        value
        for name in dir(RunLayout)
        if isinstance(getattr(RunLayout, name), property)
        for value in [getattr(layout, name)]
        if name != "job_id"
    ]
    ranks = [
        layout.judge_config(1),
        layout.shard(1),
        layout.judge_log(1),
        layout.router_log(1),
        layout.upstream_log(1),
        layout.worker_log(1),
    ]
    nodes = [layout.agent_node(0), layout.agent_config(0), layout.agent_log(0), layout.events(0)]
    setups = [layout.env_snapshot("gold"), layout.script("gold"), layout.setup_problems("gold")]
    setups += [layout.given("gold"), layout.kept_given("gold")]
    return [
        *named,
        *ranks,
        *nodes,
        *setups,
        layout.staged("axpy"),
        layout.inference_log(0),
        layout.monitor_csv("n1"),
        layout.monitor_log("n1"),
    ]


def test_paths_are_where_the_documentation_says(tmp_path):
    layout = RunLayout(tmp_path / "job-1")
    found = sorted(str(path.relative_to(layout.root)) for path in every_path(layout))
    assert "\n".join(found) + "\n" == GOLDEN
    assert layout.job_id == "job-1"


def test_episode_records_are_found(tmp_path):
    layout = RunLayout(tmp_path)
    record = layout.agent_node(3) / "problem-12-worker-1" / "tokens.json"
    record.parent.mkdir(parents=True)
    record.touch()
    (layout.agent_node(3) / "tokens.json").touch()
    assert layout.episode_records() == [record]


def test_a_run_directory_is_used_once(tmp_path):
    layout = RunLayout(tmp_path / "job-1")
    layout.create()
    with pytest.raises(FileExistsError):
        layout.create()


def test_private_files_are_the_owners_alone(tmp_path):
    path = tmp_path / "deep" / "secret"
    write_private(path, "é")
    write_private(path, "two")
    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


class Document(BaseModel):
    number: int


@pytest.mark.parametrize("name", ["gone.json", "folder/gone.json", "x.json/gone.json"])
def test_a_document_that_is_not_there_is_none(tmp_path, name):
    write_json(tmp_path / "x.json", {"number": 1})
    assert read_json(Document, tmp_path / name, "write it again") is None


@pytest.mark.parametrize(
    ("name", "said"),
    [("x" * 300, "cannot be read"), ("folder", "cannot be read"), ("x.json", "number: Field required")],
    ids=["long", "folder", "damaged"],
)
def test_a_document_that_cannot_be_read_is_named_with_what_to_do(tmp_path, name, said):
    write_json(tmp_path / "x.json", {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=f"^{tmp_path / name}: {said}.*; write it again$"):
        read_json(Document, tmp_path / name, "write it again")


def test_json_has_no_nan(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"score": float("nan")})
