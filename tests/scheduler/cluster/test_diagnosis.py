from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_scheduler.cluster import feasibility
from pai_scheduler.cluster.bin_packing import NoArrangement
from pai_scheduler.cluster.feasibility import find_missing, find_never, missing, never_fits
from pai_scheduler.cluster.node import Closing, Node, NodeState
from pai_scheduler.cluster.placement import PORT_RANGE, Cluster
from pai_scheduler.cluster.resources import ANY_GPU, CPUS, MEMORY, STORAGE, Assignment, Demand
from pai_scheduler.cluster.wait_reasons import (
    Finding,
    NoNodeHas,
    NoNodes,
    NoReadyNode,
    NoRoomTogether,
    NotFound,
    NotWithinLimits,
    OnlyOnOtherNodes,
    PortsInUse,
    PortsNamedTwice,
    RoomForSome,
    TaskTooBig,
    TooFewPorts,
    TooManyGpus,
    TotalTooSmall,
    UnknownGpuType,
)
from pai_scheduler.job.spec import PortRequest
from tests.scheduler.cluster.oracle import Free, fits, fixed_ports_of, free_now, free_when_empty
from tests.scheduler.cluster.test_exact_search import DEMANDS, GANGS, GPU_ROOM, SMALL_NODES
from tests.scheduler.making import make_demand, make_node
from tests.testbed.properties import examples

LAB = [
    make_node("a", gpus={"P100": 2}),
    make_node("b", cpus=4, memory_mb=5000, gpus={"K80": 1}),
    make_node("ill", cpus=99, gpus={"V100": 4}, state=NodeState.LOST),
]
#: Said where the lost node would be enough.
NOT_COUNTED = " Not counted, as not ready: ill (LOST)."
WEB = PortRequest("web", 8080, 2)


@pytest.mark.parametrize(
    ("gang", "words"),
    [
        (
            [make_demand(gpus=1, gpu_type="A100")],
            "there is no GPU of type A100; there are: K80 × 1 on b and P100 × 2 on a.",
        ),
        (
            [make_demand(gpus=5)],
            "a task asks for 5 × GPU, the largest node has 2. Ask for at most 2 per task.",
        ),
        (
            [make_demand(gpus=2, gpu_type="K80")],
            "a task asks for 2 × K80, the largest node has 1. "
            "Ask for at most 1 per task, or for another type: P100 × 2 on a.",
        ),
        (
            [make_demand(gpus=3, gpu_type="P100")],
            "a task asks for 3 × P100, the largest node has 2. Ask for at most 2 per task.",
        ),
        (
            [make_demand(cpus=100)],
            "a task asks for 100 CPUs, the largest node has 8. Ask for at most 8 per task.",
        ),
        (
            [make_demand(cpus=5, gpus=1, gpu_type="K80")],
            "a task asks for 5 CPUs, the largest node with 1 × K80 has 4. Ask for at most 4 per task.",
        ),
        (
            [make_demand(memory_mb=10_001)],
            "a task asks for 10001 MB of memory, the largest node has 10000. Ask for at most 10000 per task.",
        ),
        (
            [make_demand(storage_gb=1001)],
            "a task asks for 1001 GB of storage, the largest node has 1000. Ask for at most 1000 per task.",
        ),
        (
            [make_demand(cpus=9), make_demand(gpus=4)],
            "only nodes that are not ready have 9 CPUs and 100 MB of memory: ill (LOST).",
        ),
        (
            [make_demand(gpus=2)] * 2,
            "the job asks for 4 × GPU, the nodes have 3 (a: 2, b: 1). Ask for at most 3 in all."
            + NOT_COUNTED,
        ),
        (
            [make_demand(gpus=2, gpu_type="P100"), make_demand(gpus=1, gpu_type="P100")],
            "the job asks for 3 × P100, the nodes have 2 (a: 2). Ask for at most 2 in all.",
        ),
        (
            [make_demand(gpus=2, gpu_type="P100"), make_demand(gpus=1, cpus=2), make_demand(gpus=1)],
            "the job asks for 4 × GPU, the nodes have 3 (a: 2, b: 1). Ask for at most 3 in all."
            + NOT_COUNTED,
        ),
        (
            [make_demand(cpus=4)] * 4,
            "the job asks for 16 CPUs, the nodes have 12. Ask for at most 12 in all." + NOT_COUNTED,
        ),
        (
            [make_demand(memory_mb=5000)] * 4,
            "the job asks for 20000 MB of memory, the nodes have 15000. Ask for at most 15000 in all."
            + NOT_COUNTED,
        ),
        (
            [make_demand(storage_gb=900)] * 3,
            "the job asks for 2700 GB of storage, the nodes have 2000. Ask for at most 2000 in all."
            + NOT_COUNTED,
        ),
        (
            [make_demand(cpus=5)] * 2,
            "of its 2 tasks that need 5 CPUs and 100 MB of memory each, the nodes hold 1 (a: 1). "
            "Ask for at most 1 of them, or for less in each." + NOT_COUNTED,
        ),
        (
            [
                make_demand(cpus=6),
                make_demand(cpus=3),
                make_demand(cpus=3, memory_mb=200),
            ],
            "even the empty nodes cannot hold all of its tasks together. "
            "Ask for fewer tasks, or for less in each." + NOT_COUNTED,
        ),
    ],
)
def test_what_never_fits_is_said_with_what_there_is_and_what_to_ask_for(
    gang: list[Demand], words: str
) -> None:
    reason = never_fits(Cluster(LAB), gang)
    assert reason is not None
    assert str(reason) == f"Never fits at present: {words}"


@pytest.mark.parametrize(
    ("nodes", "gang", "words"),
    [
        ([], [make_demand()], "the cluster has no nodes."),
        ([make_node(state=NodeState.LOST)], [make_demand()], "no node is ready: a (LOST)."),
        (
            [make_node()],
            [make_demand(gpus=1, gpu_type="P100")],
            "there is no GPU of type P100; there are: none.",
        ),
        ([make_node()], [make_demand(gpus=1)], "a task asks for 1 × GPU, and no node has a GPU."),
        (
            [make_node("a", cpus=2), make_node("b", memory_mb=500, gpus={"P100": 1})],
            [make_demand(cpus=3, memory_mb=1000, storage_gb=7)],
            "no node has 3 CPUs, 1000 MB of memory and 7 GB of storage at once; a comes nearest, "
            "with 2 CPUs, 10000 MB of memory and 1000 GB of storage. Ask for less per task.",
        ),
    ],
)
def test_what_is_wrong_with_the_nodes_is_said(nodes: list[Node], gang: list[Demand], words: str) -> None:
    assert str(never_fits(Cluster(nodes), gang)) == f"Never fits at present: {words}"


def test_what_is_only_taken_now_fits_some_time() -> None:
    cluster = Cluster(LAB)
    assert cluster.place([make_demand(cpus=8)]) is not None
    assert never_fits(cluster, [make_demand(cpus=8)]) is None


@pytest.mark.parametrize(
    ("running", "gang", "words"),
    [
        ([make_demand(gpus=2)], [make_demand(gpus=2)], "the job asks for 2 × GPU, 1 free (b: 1)."),
        (
            [make_demand(gpus=1, gpu_type="P100")],
            [make_demand(gpus=2, gpu_type="P100")],
            "the job asks for 2 × P100, 1 free (a: 1).",
        ),
        (
            [make_demand(gpus=2, gpu_type="P100")],
            [make_demand(gpus=1, gpu_type="P100")],
            "the job asks for 1 × P100, none is free.",
        ),
        ([make_demand(cpus=8), make_demand(cpus=4)], [make_demand()], "the job asks for 1 CPU, 0 free."),
        (
            [make_demand(cpus=6), make_demand(cpus=1)],
            [make_demand(cpus=4)],
            "enough is free in all, but no node has 4 CPUs and 100 MB of memory at once; "
            "b comes nearest, with 3 CPUs and 4900 MB of memory.",
        ),
        (
            [make_demand(gpus=1, gpu_type="P100", cpus=8)],
            [make_demand(gpus=1, cpus=2, gpu_type="P100")],
            "enough is free in all, but no node has 1 × P100, 2 CPUs and 100 MB of memory at once; "
            "a comes nearest, with 1 × P100, 0 CPUs and 9900 MB of memory.",
        ),
        (
            [make_demand(cpus=3), make_demand(gpus=1, gpu_type="P100")],
            [make_demand(cpus=4)] * 2,
            "enough is free in all, but of its 2 tasks that need 4 CPUs and 100 MB of memory each "
            "there is room for 1 (a: 1).",
        ),
        (
            [make_demand(gpus=1, gpu_type="K80"), make_demand(cpus=3, gpus=1, gpu_type="P100")],
            [make_demand(cpus=4), make_demand(cpus=2), make_demand(cpus=2, memory_mb=200)],
            "enough is free for each kind of its tasks, but not for all of them together, "
            "as it is spread over the nodes.",
        ),
    ],
)
def test_what_is_missing_now_is_said_with_where_some_is_free(
    running: list[Demand], gang: list[Demand], words: str
) -> None:
    cluster = Cluster(LAB)
    assert cluster.place(running) is not None
    assert not cluster.fits(gang)
    assert str(missing(cluster, gang)) == words


def test_a_node_that_shrank_under_what_runs_has_no_room_and_that_is_a_reason() -> None:
    cluster = Cluster([make_node("a")])
    cluster.occupy(make_demand(storage_gb=2000), Assignment("a"))
    gang = [make_demand()]
    assert not cluster.fits(gang)
    assert isinstance(find_missing(cluster, gang), NoNodeHas)


def test_nothing_is_missing_for_what_fits() -> None:
    assert missing(Cluster(LAB), [make_demand(gpus=2)]) is None


def test_of_tasks_that_ask_for_gpus_only_it_is_said_which_node_comes_nearest() -> None:
    nodes = [make_node("a", gpus={"P100": 1}), make_node("b", gpus={"P100": 2})]
    gang = [make_demand(cpus=0, memory_mb=0, gpus=3)]
    found = missing(Cluster(nodes), gang)
    assert found is not None
    assert "b comes nearest" in str(found)


def test_only_a_few_of_many_nodes_are_named() -> None:
    cluster = Cluster([make_node(f"n{number}", gpus={"P100": 1}) for number in range(20)])
    assert str(missing(cluster, [make_demand(gpus=1)] * 21)) == (
        "the job asks for 21 × GPU, 20 free (n0: 1, n1: 1, n2: 1, n3: 1, n4: 1 and 15 more)."
    )


def test_a_job_that_waits_for_its_fixed_port_is_told_which_of_them_are_taken() -> None:
    cluster = Cluster([make_node()], shares_host_ports=True)
    assert cluster.place([make_demand(ports=[WEB])]) is not None
    gang = [make_demand(ports=[PortRequest("web", 8081, 2)])]
    assert str(missing(cluster, gang)) == "its fixed ports (8081) are taken."
    assert never_fits(cluster, gang) is None


def test_a_port_that_two_tasks_of_one_machine_name_never_fits() -> None:
    gang = [make_demand(ports=[WEB])] * 2
    assert never_fits(Cluster(LAB), gang) is None
    assert str(never_fits(Cluster(LAB, shares_host_ports=True), gang)) == (
        "Never fits at present: several of its tasks name the same ports (8080, 8081), which one machine "
        "has only once. Let the ports be chosen (beginAt 0), or have one task only."
    )


def test_when_too_few_ports_are_left_to_choose_that_is_said() -> None:
    cluster = Cluster([make_node()], shares_host_ports=True)
    assert cluster.place([make_demand(ports=[WEB, PortRequest("one", 0, 1)])]) is not None
    most = len(PORT_RANGE)
    gang = [make_demand(ports=[PortRequest("all", 0, most)])]
    assert str(missing(cluster, gang)) == f"{most} ports are to be chosen for it, {most - 1} can be."
    assert never_fits(cluster, gang) is None
    for shared in (True, False):
        gang = [make_demand(ports=[PortRequest("all", 0, most), PortRequest("web", PORT_RANGE[0], 1)])]
        assert str(never_fits(Cluster(LAB, shares_host_ports=shared), gang)) == (
            f"Never fits at present: {most} ports are to be chosen for it, {most - 1} can be. "
            f"Ask for at most {most - 1}."
        )


def test_room_on_other_types_than_a_virtual_cluster_may_still_hold_is_said() -> None:
    cluster, gang = Cluster(LAB), [make_demand(gpus=1)] * 2
    assert missing(cluster, gang, {"P100": 1, "K80": 1}) is None
    assert str(missing(cluster, gang, {"P100": 1, "K80": 0})) == (
        "there is room, but on other types of GPU than its virtual cluster may still hold (P100: 1, K80: 0)."
    )
    assert str(missing(cluster, gang, {})).endswith("may still hold (none).")


def test_a_search_that_was_given_up_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feasibility, "arrange", lambda *_: NoArrangement.UNKNOWN)
    gang = [make_demand(), make_demand(cpus=2)]
    assert never_fits(Cluster(LAB), gang) is None
    assert find_missing(Cluster(LAB), gang) == NotFound()
    assert str(missing(Cluster(LAB), gang)).startswith("enough is free in all, but no way was found")


# -- against brute force ------------------------------------------------------------------------


def amount(free: Free, resource: str) -> int:
    """Count what is free of a resource, by its key."""
    if resource.startswith(ANY_GPU):
        return sum(count for name, count in free.gpus.items() if resource in (ANY_GPU, ANY_GPU + name))
    return {CPUS: free.cpus, MEMORY: free.memory_mb, STORAGE: free.storage_gb}[resource]


def asked_of(gang: Sequence[Demand], resource: str) -> int:
    if resource.startswith(ANY_GPU):
        return sum(
            demand.gpus for demand in gang if resource in (ANY_GPU, f"{ANY_GPU}{demand.gpu_type or ''}")
        )
    return sum(
        {CPUS: demand.cpus, MEMORY: demand.memory_mb, STORAGE: demand.storage_gb}[resource] for demand in gang
    )


def check(
    finding: Finding,
    cluster: Cluster,
    free: dict[str, Free],
    taken: set[int] | None,
    gang: Sequence[Demand],
) -> None:
    """Recount what a finding says of nodes on which so much is free."""
    enough_in_all = all(
        asked_of(gang, key) <= sum(amount(one, key) for one in free.values())
        for key in (CPUS, MEMORY, STORAGE, ANY_GPU, ANY_GPU + "P100", ANY_GPU + "K80")
    )
    match finding:
        case NoNodes():
            assert not cluster.nodes
        case NoReadyNode():
            assert cluster.nodes
            assert not free
        case OnlyOnOtherNodes(demand, nodes):
            assert demand in gang
            assert not any(one.holds(demand) for one in free.values())
            for node in cluster.nodes:
                alone = Free(node.cpus, node.memory_mb, node.storage_gb, dict(node.gpu_counts))
                assert (f"{node.name} ({node.state})" in nodes) == (not node.ready and alone.holds(demand))
        case UnknownGpuType(gpu_type, known):
            assert any(demand.gpus and demand.gpu_type == gpu_type for demand in gang)
            assert not any(gpu_type in one.gpus for one in free.values())
            assert {offer.gpu_type for offer in known} == {name for one in free.values() for name in one.gpus}
            assert all(free[offer.node].gpus[offer.gpu_type] == offer.gpus for offer in known)
        case TooManyGpus(asked, gpu_type, largest, others):
            assert any(demand.gpus == asked and demand.gpu_type == gpu_type for demand in gang)
            best = [n for one in free.values() for name, n in one.gpus.items() if gpu_type in (None, name)]
            assert asked > max(best, default=0) == largest
            for offer in others:
                assert asked <= free[offer.node].gpus[offer.gpu_type] == offer.gpus
        case TaskTooBig(demand, resource, asked, largest):
            assert demand in gang
            assert asked_of([demand], resource) == asked
            with_gpus = replace(demand, cpus=0, memory_mb=0, storage_gb=0)
            assert (
                asked > max(amount(one, resource) for one in free.values() if one.holds(with_gpus)) == largest
            )
        case NoNodeHas(demand, nearest):
            assert enough_in_all or finding.empty
            assert nearest.node in free
            assert not any(one.holds(demand) for one in free.values())
            assert nearest.cpus == free[nearest.node].cpus
        case TotalTooSmall(resource, asked, number, where):
            assert asked == asked_of(gang, resource)
            assert asked > number == sum(amount(one, resource) for one in free.values())
            if resource.startswith(ANY_GPU):
                by_node = {name: amount(one, resource) for name, one in free.items()}
                assert dict(where) == {name: count for name, count in by_node.items() if count}
        case RoomForSome(demand, asked, possible, where):
            assert enough_in_all
            assert asked == sum(replace(one, ports=()) == demand for one in gang)
            assert 0 < possible < asked
            assert fits(free, [demand] * possible)
            assert not fits(free, [demand] * (possible + 1))
            assert sum(count for _, count in where) == possible
            assert all(fits({name: free[name]}, [demand] * count) for name, count in where)
        case PortsNamedTwice(ports):
            named = fixed_ports_of(gang)
            assert taken is not None
            assert set(ports) == {port for port in named if named.count(port) > 1}
        case PortsInUse(ports):
            assert taken is not None
            assert set(ports) == taken.intersection(fixed_ports_of(gang)) != set()
        case NoRoomTogether():
            assert enough_in_all
            for demand in gang:
                alike = [replace(one, ports=()) for one in gang if replace(one, ports=demand.ports) == demand]
                assert fits(free, alike)
            assert not fits(free, [replace(demand, ports=()) for demand in gang])
        case NotWithinLimits():
            assert fits(free, gang, taken_ports=taken)
        case TooFewPorts() | NotFound():
            raise AssertionError("nothing here is so large")


@settings(max_examples=examples(300), deadline=None)
@given(SMALL_NODES, GANGS, st.booleans())
def test_never_is_said_exactly_when_the_empty_cluster_has_no_arrangement_and_the_reason_is_true(
    nodes: list[Node], gang: list[Demand], shares_host_ports: bool
) -> None:
    cluster = Cluster(nodes, shares_host_ports=shares_host_ports)
    # what runs now changes nothing about it
    cluster.place([make_demand(ports=[PortRequest("web", 80, 1)])])
    free, taken = free_when_empty(cluster), set[int]() if shares_host_ports else None
    finding = find_never(cluster, gang)
    assert (finding is None) == fits(free, gang, taken_ports=taken)
    if finding is not None:
        check(finding, cluster, free, taken, gang)
        assert str(never_fits(cluster, gang)).endswith(".")


@settings(max_examples=examples(300), deadline=None)
@given(SMALL_NODES, st.lists(DEMANDS, max_size=3), GANGS, GPU_ROOM, st.booleans())
def test_a_shortage_is_reported_exactly_when_a_gang_does_not_fit_and_is_true(
    nodes: list[Node],
    running: list[Demand],
    gang: list[Demand],
    gpu_room: dict[str, int] | None,
    shares_host_ports: bool,
) -> None:
    cluster = Cluster(nodes, shares_host_ports=shares_host_ports)
    for demand in running:
        cluster.place([demand])
    free = free_now(cluster)
    taken = set().union(*(use.ports for use in cluster.uses.values())) if shares_host_ports else None
    finding = find_missing(cluster, gang, gpu_room)
    assert (finding is None) == fits(free, gang, gpu_room=gpu_room, taken_ports=taken)
    if finding is not None:
        check(finding, cluster, free, taken, gang)
        assert str(missing(cluster, gang, gpu_room)).endswith(".")
    if isinstance(finding, NotWithinLimits):
        assert gpu_room is not None
        assert not fits(free, gang, gpu_room=gpu_room, taken_ports=taken)


def test_who_closed_a_node_and_why_is_said_where_a_task_needs_it() -> None:
    closing = Closing("root", "disk is replaced", 1)
    closed = replace(make_node("n1", cpus=16), closing=closing)
    other = replace(make_node("n2", cpus=16, state=NodeState.LOST), closing=closing)
    for nodes in ([closed, other], [closed, other, make_node("small", cpus=1)]):
        reason = never_fits(Cluster(nodes), [make_demand(cpus=16)])
        assert reason is not None
        assert "n1 (closed by root: disk is replaced), n2 (LOST)" in str(reason)
        assert "n1（由 root 关闭：disk is replaced）" in reason.in_locale("zh_CN")
    assert never_fits(Cluster([replace(closed, closing=None)]), [make_demand(cpus=16)]) is None


def test_what_would_fit_with_a_closed_node_is_told_which_node_is_not_counted() -> None:
    closing = Closing("root", "disk is replaced", 1)
    nodes = [replace(make_node("n1", cpus=4), closing=closing), make_node("n2", cpus=4)]
    gang = [make_demand(cpus=4)] * 2
    assert str(never_fits(Cluster(nodes), gang)) == (
        "Never fits at present: the job asks for 8 CPUs, the nodes have 4. Ask for at most 4 in all. "
        "Not counted, as not ready: n1 (closed by root: disk is replaced)."
    )
    assert "Not counted" not in str(never_fits(Cluster(nodes), gang * 2))
