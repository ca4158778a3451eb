"""Systems and job shapes: which machine this is, which sbatch options follow, and where each comes from."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from goldens import check_golden
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from bench.errors import ConfigError, UsageError
from cluster.commands.job import app
from cluster.study.job_shape import STAGING_S, VARIABLES, Option, gpus_asked, job_shape, sbatch_options
from cluster.study.render import Choices, build
from cluster.study.settings import JobSettings
from cluster.study.studies import read_study
from cluster.study.systems import Source, choose_system, read_systems
from cluster.study.wall_time import parse_wall, wall_text

SITE = """# Ours.
beverin:
  account: g123
  nodes: {cpus: 192}
ours:
  clusters: [ours]
  partition: gpu
  longest_wall: "2-00"
  nodes: {gpus: 8}
  sbatch: {exclusive: "", mail-type: FAIL}
"""


@pytest.fixture
def site(tmp_path) -> dict[str, str]:
    """The environment with a site file."""
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    return {"KCOURT_SYSTEMS_FILE": str(path)}


def settings_of(**keys: Any) -> JobSettings:
    return JobSettings.model_validate({"SETUP": "s", "KERNELS": "axpy", "AGENT_TIMEOUT_SECONDS": 3600, **keys})


def shape_on(
    system: str, flags: Mapping[str, str] = {}, environ: Mapping[str, str] = {}, **keys: Any
) -> dict[str, Option]:
    shape = job_shape(settings_of(**keys), choose_system(environ, system), flags, environ)
    return {option.name: option for option in shape}


# Systems


def test_every_packaged_system_has_facts():
    systems = read_systems({})
    assert [*systems] == ["beverin", "beverin-mi200", "daint.alps", "local"]
    assert all(system.facts.summary and system.facts.hardware for system in systems.values())


@pytest.mark.parametrize(
    ("environ", "flag", "expected"),
    [
        pytest.param({}, None, "local", id="nothing-said"),
        pytest.param({"SLURM_CLUSTER_NAME": "daint"}, None, "daint.alps", id="by-cluster"),
        pytest.param({"SLURM_CLUSTER_NAME": "beverin"}, None, "beverin", id="first-of-two-on-one-cluster"),
        pytest.param({"SLURM_CLUSTER_NAME": "daint", "KCOURT_SYSTEM": "local"}, None, "local", id="named-wins"),
        pytest.param({"KCOURT_SYSTEM": "local"}, "beverin-mi200", "beverin-mi200", id="flag-wins"),
    ],
)
def test_a_system_is_chosen(environ, flag, expected):
    assert choose_system(environ, flag).name == expected


def test_the_only_system_of_the_site_file_is_ours(tmp_path):
    (tmp_path / "site.yaml").write_text("ours: {partition: gpu}\n")
    assert choose_system({"KCOURT_SYSTEMS_FILE": str(tmp_path / "site.yaml")}).name == "ours"


def test_a_site_file_adds_single_facts_and_keeps_the_rest(site):
    system = choose_system(site, "beverin")
    assert (system.facts.account, system.facts.partition) == ("g123", "mi300")
    assert (system.facts.nodes.cpus, system.facts.nodes.gpus) == (192, 4)
    assert (system.place("account").source, system.place("account").line) == (Source.SITE, 3)
    assert system.place("partition").source is Source.SYSTEM
    assert (system.place("nodes.cpus").source, system.place("nodes.gpus").source) == (Source.SITE, Source.SYSTEM)


def test_the_sites_system_is_asked_first_for_a_cluster(tmp_path):
    (tmp_path / "site.yaml").write_text("night: {clusters: [beverin]}\nday: {}\n")
    environ = {"KCOURT_SYSTEMS_FILE": str(tmp_path / "site.yaml"), "SLURM_CLUSTER_NAME": "beverin"}
    assert choose_system(environ).name == "night"


@pytest.mark.parametrize(
    ("environ", "flag", "expected"),
    [
        pytest.param({}, "bevrin", "--system: no system 'bevrin'; .*; did you mean 'beverin'", id="flag"),
        pytest.param({"KCOURT_SYSTEM": "x"}, None, "KCOURT_SYSTEM: no system 'x'", id="variable"),
        pytest.param({"SLURM_CLUSTER_NAME": "new"}, None, "SLURM_CLUSTER_NAME=new: .*kcourt init", id="cluster"),
        pytest.param({"KCOURT_SYSTEMS_FILE": "/proc/none"}, None, "=/proc/none: .*kcourt init", id="no-file"),
    ],
)
def test_an_unknown_system_is_refused(environ, flag, expected):
    with pytest.raises(ConfigError, match=expected):
        choose_system(environ, flag)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a:\n  partitoin: x\n", ":2: a.partitoin: unknown key; did you mean 'partition'", id="key"),
        pytest.param("a:\n  nodes: {gpu: 4}\n", ":2: a.nodes.gpu: .*did you mean 'gpus'", id="node-key"),
        pytest.param("a:\n  longest_wall: 24:00:00\n", ':2: .*quoted.*"24:00:00"', id="unquoted-time"),
        pytest.param("a:\n  longest_wall: soon\n", ":2: .*'soon' is no time", id="no-time"),
        pytest.param("a:\n  nodes: {gpus: -1}\n", ":2: a.nodes.gpus", id="negative"),
        pytest.param("a:\n  nodes: 3\n", ":2: a.nodes", id="nodes-no-mapping"),
        pytest.param("a:\n  container_runtime: lxc\n", ":2: .*'apptainer'", id="runtime"),
        pytest.param("a: {}\na: {}\n", ":2: a: was given in line 1", id="twice"),
        pytest.param("- a\n", ":1: .*valid dict", id="list"),
        pytest.param("a: gpu\n", ":1: .*valid dict", id="no-facts"),
    ],
)
def test_a_fault_in_a_site_file_is_named_by_its_line(tmp_path, text, expected):
    path = tmp_path / "site.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"^{path}.*{expected}"):
        read_systems({"KCOURT_SYSTEMS_FILE": str(path)})


# Wall times


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 5400), ("90:30", 5430), ("24:00:00", 86400), ("1-12", 129600), ("1-12:30", 131400), ("1-0:0:5", 86405)],
)
def test_wall_times_are_read_as_slurm_reads_them(text, seconds):
    assert parse_wall(text) == seconds


@given(st.integers(1, 10**7))
def test_a_wall_time_survives_a_round_trip(seconds):
    assert parse_wall(wall_text(seconds)) == seconds


# Shapes


@pytest.mark.parametrize("name", ["partition", "account", "qos", "reservation", "constraint", "gpus-per-node"])
def test_flag_wins_over_environment_over_site_over_system(tmp_path, name):
    path = tmp_path / "site.yaml"
    path.write_text("beverin:\n" + ("  nodes: {gpus: 3}\n" if name == "gpus-per-node" else f"  {name}: '3'\n"))
    site = {"KCOURT_SYSTEMS_FILE": str(path)}
    environ = {**site, VARIABLES[name]: "2"}
    found = [
        shape_on("beverin", {name: "1"}, environ)[name],
        shape_on("beverin", {}, environ)[name],
        shape_on("beverin", {}, site)[name],
    ]
    assert [(option.value, option.source) for option in found] == [
        ("1", Source.FLAG),
        ("2", Source.ENVIRONMENT),
        ("3", Source.SITE),
    ]
    assert [option.where for option in found] == [f"--{name}", VARIABLES[name], f"{path}:2"]


def test_a_partition_may_be_left_to_the_cluster():
    shape = shape_on("daint.alps")
    assert shape["partition"].value is None
    assert shape["partition"].origin == "the cluster's default"
    assert not any("partition" in word for word in sbatch_options([*shape.values()]))


def test_a_setups_own_number_of_gpus_wins_over_the_systems():
    shape = shape_on("beverin", GPUS_PER_NODE=2)
    assert (shape["gpus-per-node"].value, shape["gpus-per-node"].origin) == ("2", "setup GPUS_PER_NODE")
    assert shape_on("beverin", {"gpus-per-node": "1"}, GPUS_PER_NODE=2)["gpus-per-node"].value == "1"


@pytest.mark.parametrize(("text", "expected"), [("2", 2), ("mi300:3", 3)])
def test_what_is_asked_for_is_what_the_setup_is_told(tmp_path, text, expected):
    choices = Choices(choose_system({}, "beverin"), {}, {"gpus-per-node": text})
    (setup, *_) = build(read_study("first_look"), tmp_path, choices)
    assert setup.settings.gpus_per_node == expected
    assert f"--gpus-per-node={text}" in sbatch_options(list(setup.shape))


def test_gpus_are_a_number():
    with pytest.raises(ConfigError, match=r"^SBATCH_GPUS_PER_NODE=all: say how many"):
        gpus_asked({}, {"SBATCH_GPUS_PER_NODE": "all"})


def test_slurm_has_to_know_the_gpus_of_a_node(tmp_path):
    (tmp_path / "site.yaml").write_text("ours: {}\nnone: {nodes: {gpus: 0}}\n")
    environ = {"KCOURT_SYSTEMS_FILE": str(tmp_path / "site.yaml")}
    with pytest.raises(ConfigError, match=r"system 'ours': nobody says how many GPUs .* --gpus-per-node"):
        shape_on("ours", {}, environ)
    without = shape_on("none", {}, environ)
    assert without["gpus-per-node"].value == "0"
    assert not any("gpus" in word for word in sbatch_options([*without.values()]))


def test_a_wished_time_is_cut_to_the_longest_with_a_note():
    shape = shape_on("beverin", AGENT_TIMEOUT_SECONDS=100_000)
    assert (shape["time"].value, shape["time"].source) == ("24:00:00", Source.SYSTEM)
    assert "is 30:46:40, more than system 'beverin' grants" in shape["time"].note


def test_a_wished_time_is_the_agents_budget_and_the_staging():
    assert shape_on("beverin")["time"].value == wall_text(3600 + STAGING_S)
    assert shape_on("local", AGENT_TIMEOUT_SECONDS=100_000)["time"].value == "30:46:40"
    many = job_shape(settings_of(AGENTS_PER_NODE=4), choose_system({}, "beverin"), {}, {}, problems=9)
    assert (many[1].value, many[1].where) == ("06:00:00", "3 x AGENT_TIMEOUT_SECONDS + 3 h of staging")
    assert shape_on("beverin", JOB_WALL_SECONDS=7200)["time"].value == "02:00:00"


@pytest.mark.parametrize(
    ("flags", "environ", "error", "expected"),
    [
        pytest.param({"time": "24:00:01"}, {}, ConfigError, "--time=24:00:01: .*at most 24:00:00", id="flag"),
        pytest.param({}, {"SBATCH_TIMELIMIT": "2-0"}, ConfigError, "SBATCH_TIMELIMIT=2-0: .*at most", id="variable"),
        pytest.param({"time": "soon"}, {}, ConfigError, "--time: 'soon' is no time", id="no-time"),
        pytest.param({"partitoin": "x"}, {}, UsageError, "did you mean 'partition'", id="no-option"),
    ],
)
def test_a_time_beyond_the_longest_is_refused(flags, environ, error, expected):
    with pytest.raises(error, match=expected):
        shape_on("beverin", flags, environ)


@pytest.mark.parametrize(
    ("name", "system", "flags", "environ"),
    [
        pytest.param("sbatch-beverin.txt", "beverin", {}, {}, id="beverin"),
        pytest.param("sbatch-beverin-mi200.txt", "beverin-mi200", {}, {}, id="beverin-mi200"),
        pytest.param("sbatch-daint.txt", "daint.alps", {"account": "g123"}, {}, id="daint"),
        pytest.param("sbatch-debug.txt", "daint.alps", {"partition": "debug", "time": "30"}, {}, id="debug"),
        pytest.param("sbatch-site.txt", "ours", {}, {"SBATCH_QOS": "high"}, id="site"),
        pytest.param("sbatch-local.txt", "local", {}, {}, id="local"),
    ],
)
def test_sbatch_options_are_golden(site, name, system, flags, environ):
    shape = job_shape(settings_of(), choose_system(site, system), flags, {**site, **environ})
    check_golden(name, "\n".join(sbatch_options(shape)) + "\n")


# The command


@pytest.fixture
def env(tmp_path, monkeypatch):
    """A rendered setup `small`, alone in its folder."""
    monkeypatch.setenv("KCOURT_EXPERIMENTS_DIR", str(tmp_path))
    path = tmp_path / ".env.small"
    path.write_text("SETUP=small\nKERNELS=axpy\nAGENT_TIMEOUT_SECONDS=100000\n")
    return path


def options(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["options", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_options_prints_each_value_with_its_origin(env, site, monkeypatch):
    monkeypatch.setenv("SBATCH_QOS", "high")
    monkeypatch.setenv("KCOURT_SYSTEMS_FILE", site["KCOURT_SYSTEMS_FILE"])
    printed = options("small", "--system", "beverin", "--time", "60")
    rows = {name: rest.strip() for name, _, rest in (line.strip().partition(" ") for line in printed.splitlines())}
    assert rows["time"] == "01:00:00  flag --time"
    assert rows["qos"].split(maxsplit=1) == ["high", "environment SBATCH_QOS"]
    assert rows["account"].split(maxsplit=1) == ["g123", f"site {site['KCOURT_SYSTEMS_FILE']}:3"]
    assert re.fullmatch(r"mi300 +system systems.yaml:\d+", rows["partition"])


def test_options_says_what_was_cut(env):
    assert "note: AGENT_TIMEOUT_SECONDS + 3 h of staging is 30:46:40" in options("small", "--system", "beverin")


def test_options_takes_the_path_of_an_env_file_and_prints_json(env):
    found = json.loads(options(str(env), "--system", "beverin", "--json"))
    assert (found["setup"], found["system"]) == ("small", "beverin")
    assert "--partition=mi300" in found["sbatch"] and "--nodes=4" in found["sbatch"]
    assert {"name": "partition", "value": "mi300", "source": "system"}.items() <= found["options"][2].items()


def test_options_of_a_setup_that_is_not_rendered(kcourt, env):
    done = kcourt("job", "options", "smal")
    assert done.code == 64
    assert "did you mean 'small'?" in done.err
