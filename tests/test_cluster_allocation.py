"""Hosts, roles, slots, ports and ranks: tables and properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import ConfigError
from cluster.job.allocation import Host, plan_job, ports_needed, split_of
from cluster.study.settings import JobSettings


def settings(**values):
    return JobSettings(setup="s", kernels="axpy", **values)


def hosts(*names, sockets=1):
    return [Host(name, (0, 1, 2, 3), sockets) for name in names]


def test_roles_are_dealt_in_the_order_of_the_hosts():
    plan = plan_job(hosts("i1", "i2", "a1", "j1", "j2"), settings(judge_nodes=2, judges_per_node=2))
    assert [host.name for host in plan.inference] == ["i1", "i2"]
    assert [host.name for host in plan.agents] == ["a1"]
    assert plan.urls == ["http://j1:8800", "http://j1:8802", "http://j2:8800", "http://j2:8802"]
    assert [(slot.node, slot.slot) for slot in plan.judges] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_one_judge_a_socket_unless_told():
    plan = plan_job(hosts("a", "j", sockets=4), settings(inference_nodes=0))
    assert [slot.router_port for slot in plan.judges] == [8800, 8802, 8804, 8806]
    assert [slot.judge_port for slot in plan.judges] == [8801, 8803, 8805, 8807]


def test_a_machine_that_plays_two_nodes_gives_every_rank_its_own_ports_and_seat():
    plan = plan_job(hosts("here", "here", "here"), settings(inference_nodes=0, judge_nodes=2, judges_per_node=1))
    assert [(slot.rank, slot.seat, slot.seats, slot.router_port) for slot in plan.judges] == [
        (0, 0, 2, 8800),
        (1, 1, 2, 8802),
    ]


@pytest.mark.parametrize(
    ("given_port", "free", "first"),
    [pytest.param(9000, 9500, 9000, id="explicit"), pytest.param(None, 9500, 9500, id="free-block")],
)
def test_an_explicit_port_wins(given_port, free, first):
    plan = plan_job(hosts("a", "j"), settings(inference_nodes=0, judge_port=given_port), free)
    assert plan.judges[0].router_port == first


@pytest.mark.parametrize("count", [0, 3, 5])
def test_a_wrong_sum_is_spelled_out(count):
    with pytest.raises(ConfigError) as caught:
        plan_job(hosts(*"abcde"[:count]), settings())
    assert "2 inference + 1 agent + 1 judge = 4" in str(caught.value)
    assert f"has {count}" in str(caught.value)
    assert "--nodes=4" in str(caught.value)
    assert "kcourt cluster plan" in str(caught.value)


def test_a_job_that_only_serves_has_no_other_role():
    chosen = settings(agent_nodes=0, judge_nodes=0)
    plan = plan_job(hosts("i1", "i2"), chosen)
    assert ([host.name for host in plan.inference], plan.agents, plan.judges) == (["i1", "i2"], (), ())
    assert ports_needed(hosts("i1", "i2"), chosen) == 0


def test_ports_beyond_the_last_are_refused():
    with pytest.raises(ConfigError, match="65537"):
        plan_job(hosts("a", "j"), settings(inference_nodes=0, judges_per_node=2, judge_port=65534))


@given(
    inference=st.integers(0, 3),
    agents=st.integers(1, 4),
    judges=st.integers(1, 4),
    per_node=st.integers(1, 8),
    machines=st.integers(1, 6),
)
def test_every_allocation_that_adds_up_has_distinct_addresses(inference, agents, judges, per_node, machines):
    chosen = settings(inference_nodes=inference, agent_nodes=agents, judge_nodes=judges, judges_per_node=per_node)
    nodes = hosts(*(f"n{index % machines}" for index in range(split_of(chosen).total)))
    plan = plan_job(nodes, chosen)
    assert [slot.rank for slot in plan.judges] == list(range(judges * per_node))
    assert [*plan.inference, *plan.agents] == nodes[: inference + agents]
    ports = [(slot.host.name, port) for slot in plan.judges for port in (slot.router_port, slot.judge_port)]
    assert len(set(ports)) == len(ports)
    seats = {(slot.host.name, slot.seat) for slot in plan.judges}
    assert len(seats) == len(plan.judges)
    assert all(slot.seat < slot.seats for slot in plan.judges)
    assert max(port for _, port in ports) < 8800 + ports_needed(nodes, chosen)
