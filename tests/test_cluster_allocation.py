"""Hosts, roles, slots, ports, GPUs, CPUs and ranks: tables and properties."""

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.striping import striped
from bench.errors import ConfigError
from cluster.job.allocation import Host, judge_nodes_for, judges_on, plan_job, ports_needed, split_of
from cluster.job.roles import core_plan
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


def test_a_url_has_the_address_that_other_nodes_connect_to():
    nodes = [Host("a", (0, 1)), Host("j", (0, 1), address="10.0.0.7")]
    assert plan_job(nodes, settings(inference_nodes=0)).urls == ["http://10.0.0.7:8800"]


def test_one_judge_a_socket_unless_told():
    plan = plan_job(hosts("a", "j", sockets=4), settings(inference_nodes=0))
    assert [slot.router_port for slot in plan.judges] == [8800, 8802, 8804, 8806]
    assert [slot.judge_port for slot in plan.judges] == [8801, 8803, 8805, 8807]


@pytest.mark.parametrize(
    ("per_node", "sockets", "gpus", "device", "expected"),
    [
        pytest.param(None, 4, 4, "cpu", 4, id="one-a-socket"),
        pytest.param(None, 4, 0, "cpu", 4, id="no-gpus-no-clamp"),
        pytest.param(None, 1, 8, "cpu", 1, id="a-slot-with-all-gpus"),
        pytest.param(None, 2, 1, "cpu", 1, id="sockets-clamped"),
        pytest.param(8, 1, 4, "cpu", 4, id="asked-for-and-clamped"),
        pytest.param(8, 1, 0, "cpu", 8, id="asked-for-on-cpus"),
        pytest.param(None, 2, 8, "cuda", 8, id="one-a-gpu-where-those-grade"),
        pytest.param(None, 4, 2, "hip", 2, id="fewer-gpus-than-sockets"),
        pytest.param(2, 1, 8, "cuda", 2, id="fewer-asked-for-than-gpus"),
        pytest.param(9, 1, 8, "cuda", 8, id="more-asked-for-than-gpus"),
    ],
)
def test_a_node_with_gpus_has_no_more_judges_than_gpus(per_node, sockets, gpus, device, expected):
    chosen = settings(judges_per_node=per_node, device=device)
    assert judges_on(Host("j", (0, 1), sockets, gpus=gpus), chosen) == expected


def test_each_judge_that_grades_on_a_gpu_has_one():
    nodes = [Host(name, tuple(range(16)), 2, gpus=8) for name in ("a", "j1", "j2")]
    plan = plan_job(nodes, settings(inference_nodes=0, judge_nodes=2, device="cuda"))
    assert [(slot.node, slot.gpus) for slot in plan.judges] == [(node, (gpu,)) for node in (0, 1) for gpu in range(8)]
    assert [slot.cpus for slot in plan.judges[:8]] == [(2 * gpu, 2 * gpu + 1) for gpu in range(8)]


@pytest.mark.parametrize(
    ("hosts", "chosen", "says"),
    [
        ([Host("a", (0, 1)), Host("j", (0, 1))], {"inference_nodes": 0}, "the job has no GPU on j"),
        ([Host("m", (0, 1), gpus=1)] * 3, {"inference_nodes": 0, "judge_nodes": 2}, "2 judges on m, which has 1 GPU"),
        ([Host("m", (0, 1), gpus=1)] * 3, {"inference_nodes": 1}, "the engine and the judges are both on m"),
    ],
    ids=["none", "too-few", "the-engines"],
)
def test_judges_that_have_no_gpu_of_their_own_are_refused(hosts, chosen, says):
    with pytest.raises(ConfigError, match=f"DEVICE=hip: {says}"):
        plan_job(hosts, settings(device="hip", **chosen))
    assert plan_job(hosts, settings(device="cpu", **chosen)).judges


@pytest.mark.parametrize(
    ("cpus", "per_node", "grade_cpus", "expected"),
    [
        pytest.param(8, 2, None, [(0, 1, 2, 3), (4, 5, 6, 7)], id="even-parts"),
        pytest.param(7, 2, None, [(0, 1, 2), (3, 4, 5, 6)], id="even-within-one"),
        pytest.param(8, 2, 2, [(0, 1), (4, 5)], id="grade-cpus-each-in-its-own-part"),
        pytest.param(3, 2, None, [(0, 1, 2), (0, 1, 2)], id="too-few-are-shared"),
        pytest.param(0, 2, None, [(), ()], id="not-known"),
    ],
)
def test_each_slot_has_its_part_of_the_cpus(cpus, per_node, grade_cpus, expected):
    nodes = [Host("a", ()), Host("j", tuple(range(cpus)))]
    plan = plan_job(nodes, settings(inference_nodes=0, judges_per_node=per_node, grade_cpus=grade_cpus))
    assert [slot.cpus for slot in plan.judges] == expected


@pytest.mark.parametrize(
    ("node", "judges", "wanted", "has"),
    [
        pytest.param(Host("j", (0, 1, 2, 3, 4)), 3, 6, 5, id="whole"),
        pytest.param(Host("j", (), granted=5), 3, 6, 5, id="part-of-a-node"),
        pytest.param(Host("j", (0,)), 1, 2, 1, id="one-cpu"),
    ],
)
def test_more_cpus_than_a_node_has_are_refused_with_the_sum(node, judges, wanted, has):
    chosen = settings(inference_nodes=0, judges_per_node=judges, grade_cpus=2)
    said = rf"GRADE_CPUS=2 for {judges} judges on j is {wanted} CPUs, and the job has {has} there"
    with pytest.raises(ConfigError, match=said):
        plan_job([Host("a", ()), node], chosen)


@pytest.mark.parametrize("cpus", [0, 6], ids=["not-known", "just-enough"])
def test_cpus_that_suffice_or_are_not_known_are_not_refused(cpus):
    node = Host("j", tuple(range(cpus)))
    assert node.cpu_count == cpus
    plan = plan_job([Host("a", ()), node], settings(inference_nodes=0, judges_per_node=3, grade_cpus=2))
    assert [cpu for slot in plan.judges for cpu in slot.cpus] == list(range(cpus))


def test_a_machine_that_plays_two_nodes_gives_every_rank_its_own_ports_and_seat():
    plan = plan_job(hosts("here", "here", "here"), settings(inference_nodes=0, judge_nodes=2, judges_per_node=1))
    assert [(slot.rank, slot.seat, slot.seats, slot.router_port) for slot in plan.judges] == [
        (0, 0, 2, 8800),
        (1, 1, 2, 8802),
    ]


def test_nodes_of_one_address_are_one_machine():
    nodes = [Host(name, (0, 1, 2, 3), address="127.0.0.1") for name in ("n1", "n2", "n3")]
    plan = plan_job(nodes, settings(inference_nodes=0, judge_nodes=2, judges_per_node=1))
    assert plan.urls == ["http://127.0.0.1:8800", "http://127.0.0.1:8802"]
    assert [slot.cpus for slot in plan.judges] == [(0, 1), (2, 3)]


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
    def last_port(first):
        return (
            plan_job(hosts("a", "j"), settings(inference_nodes=0, judges_per_node=2, judge_port=first))
            .judges[-1]
            .judge_port
        )

    assert last_port(65532) == 65535
    with pytest.raises(ConfigError, match="65536"):
        last_port(65533)


def test_a_judge_needs_two_ports():
    assert ports_needed(hosts("a", "j"), settings(inference_nodes=0, judges_per_node=2)) == 4


@pytest.mark.parametrize(
    ("peak", "rate", "per_node", "expected"),
    [
        pytest.param(1, 170, 4, 1, id="at-least-one"),
        pytest.param(680, 170, 4, 1, id="exactly"),
        pytest.param(681, 170, 4, 2, id="one-more"),
        pytest.param(6800, 170, None, 10, id="a-slot-a-socket"),
    ],
)
def test_judge_nodes_follow_from_a_peak_of_grades(peak, rate, per_node, expected):
    chosen = settings(judge_grades_per_hour=rate, judges_per_node=per_node)
    assert judge_nodes_for(peak, chosen, Host("j", (), 4, gpus=4)) == expected


def test_without_a_measured_rate_nobody_knows_how_many_judges_a_peak_needs():
    with pytest.raises(ConfigError, match="JUDGE_GRADES_PER_HOUR is unset"):
        judge_nodes_for(900, settings(), Host("j", ()))


@st.composite
def jobs(draw):
    """Settings and the hosts that they need, of machines that differ; a machine may be several nodes."""
    chosen = settings(
        inference_nodes=draw(st.integers(0, 3)),
        agent_nodes=draw(st.integers(1, 4)),
        judge_nodes=draw(st.integers(1, 4)),
        judges_per_node=draw(st.none() | st.integers(1, 8)),
        judge_port=draw(st.none() | st.integers(1024, 60000)),
    )
    machines = [
        Host(
            f"n{number}",
            tuple(range(draw(st.integers(0, 40)))),
            draw(st.integers(1, 4)),
            draw(st.sampled_from(["", f"10.0.0.{number}"])),
            draw(st.integers(0, 8)),
        )
        for number in range(draw(st.integers(1, 6)))
    ]
    return chosen, [machines[index % len(machines)] for index in range(split_of(chosen).total)]


def by_machine(plan):
    """The slots of each machine, in the order of their seats."""
    found = {}
    for slot in plan.judges:
        found.setdefault(slot.host.reached_at, []).append(slot)
    return found.values()


@given(jobs())
def test_every_host_has_one_role_and_ranks_count_nodes_then_slots(job):
    chosen, nodes = job
    plan = plan_job(nodes, chosen)
    judged = [slot.host for slot in plan.judges if slot.slot == 0]
    assert [*plan.inference, *plan.agents, *judged] == nodes
    assert [slot.rank for slot in plan.judges] == list(range(len(plan.judges)))
    places = [(node, slot) for node, host in enumerate(judged) for slot in range(judges_on(host, chosen))]
    assert [(slot.node, slot.slot) for slot in plan.judges] == places
    assert len(set(plan.urls)) == len(plan.urls)


@given(jobs())
def test_ports_of_a_machine_are_consecutive_pairs_that_no_two_slots_share(job):
    chosen, nodes = job
    for slots in by_machine(plan_job(nodes, chosen)):
        first = chosen.judge_port or 8800
        ports = [port for slot in slots for port in (slot.router_port, slot.judge_port)]
        assert ports == list(range(first, first + 2 * len(slots)))
        assert [(slot.seat, slot.seats) for slot in slots] == [(seat, len(slots)) for seat in range(len(slots))]
        assert len(ports) <= ports_needed(nodes, chosen)


def consecutive(numbers):
    return list(numbers) == list(range(numbers[0], numbers[0] + len(numbers)))


@given(jobs())
def test_gpu_slices_are_consecutive_and_shared_only_where_a_machine_has_too_few(job):
    chosen, nodes = job
    for slots in by_machine(plan_job(nodes, chosen)):
        gpus, dealt = slots[0].host.gpus, [gpu for slot in slots for gpu in slot.gpus]
        assert all(slot.gpus and consecutive(slot.gpus) for slot in slots) or not gpus
        if len(slots) <= gpus:
            assert dealt == list(range(gpus))
        assert set(dealt) == set(range(gpus)) or len(slots) < gpus
        assert max(Counter(dealt).values(), default=0) <= -(-len(slots) // max(1, gpus))


@given(jobs())
def test_cpu_parts_are_disjoint_and_even_where_there_are_two_for_each(job):
    chosen, nodes = job
    for slots in by_machine(plan_job(nodes, chosen)):
        cpus = slots[0].host.cpus
        if len(cpus) >= 2 * len(slots):
            assert [cpu for slot in slots for cpu in slot.cpus] == list(cpus)
            assert {len(slot.cpus) for slot in slots} <= {len(cpus) // len(slots), len(cpus) // len(slots) + 1}
        else:
            assert all(slot.cpus == cpus for slot in slots)


@given(jobs())
def test_slots_time_and_clock_on_cpus_of_their_own_where_they_have_some(job):
    chosen, nodes = job
    for slots in by_machine(plan_job(nodes, chosen)):
        planned = [core_plan(slot) for slot in slots if len(slot.host.cpus) >= 2]
        assert all({*cores.leased, *cores.others} <= {*slot.cpus} for cores, slot in zip(planned, slots, strict=False))
        if len(slots[0].host.cpus) >= 2 * len(slots):
            leased = [core for cores in planned for core in cores.leased]
            assert len(set(leased)) == len(leased) == 2 * len(slots)


@given(things=st.integers(0, 500), places=st.integers(1, 40))
def test_striping_is_even_within_one(things, places):
    served = Counter(striped(index, places) for index in range(things))
    counts = [served[place] for place in range(places)]
    assert sum(counts) == things
    assert max(counts) - min(counts) <= 1


def test_problems_and_workers_are_striped_over_ranks_and_replicas():
    plan = plan_job(hosts("i1", "i2", "i3", "a", "j"), settings(inference_nodes=3, judges_per_node=2))
    assert [plan.home_rank(problem) for problem in range(5)] == [0, 1, 0, 1, 0]
    assert [plan.replica(worker) for worker in range(5)] == [0, 1, 2, 0, 1]


def test_a_thousand_nodes_are_planned_in_no_time():
    chosen = settings(inference_nodes=200, agent_nodes=400, judge_nodes=400)
    nodes = [Host(f"n{index}", tuple(range(192)), 4, f"10.0.{index // 250}.{index % 250}", 4) for index in range(1000)]
    seconds = []
    for _ in range(7):
        start = time.process_time()
        assert len(plan_job(nodes, chosen).judges) == 1600
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.05
