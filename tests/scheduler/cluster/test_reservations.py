from __future__ import annotations

import pytest

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import NodeState
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.reservations import Reservation, Reservations, ReservedPlace
from pai_scheduler.cluster.resources import Demand
from tests.scheduler.cluster.harness import Harness, gpu, gpu_node, on, port
from tests.scheduler.making import make_demand, make_node

WHOLE = (VirtualCluster("x", 100),)


def reservation_of(*targets: ReservedPlace, job_id: str = "j", within: bool = True) -> Reservation:
    return Reservation(job_id, "alice", "x", targets, {}, frozenset(), within)


def kept_for(reservation: Reservation) -> list[tuple[str, int, int, int, tuple[int, ...]]]:
    return [
        (node, part.cpus, part.memory_mb, part.storage_gb, place.gpus)
        for node in sorted(reservation.kept)
        for part, place in reservation.kept[node]
    ]


def kept(cluster: Cluster, *targets: ReservedPlace) -> list[tuple[str, int, int, int, tuple[int, ...]]]:
    """Claim places for a moment; return what was booked."""
    reservations, reservation = Reservations(), reservation_of(*targets)
    reservations.add(cluster, reservation)
    booked = kept_for(reservation)
    reservations.pop(cluster, reservation.job_id)
    return booked


# -- what is booked


def test_a_reservation_keeps_what_is_free_of_its_place() -> None:
    cluster = Cluster([make_node(cpus=8, memory_mb=1000, storage_gb=50, gpus={"P100": 4})])
    target = ReservedPlace(make_demand(6, 700, gpus=3, storage_gb=40), "a", "P100")
    assert kept(cluster, target) == [("a", 6, 700, 40, (0, 1, 2))]
    cluster.occupy(make_demand(5, 600, gpus=2, storage_gb=30), on("a", 0, 2))
    assert kept(cluster, target) == [("a", 3, 400, 20, (1, 3))]


def test_gpus_of_another_type_are_not_kept() -> None:
    cluster = Cluster([make_node(gpus={"K80": 2, "P100": 1})])
    assert kept(cluster, ReservedPlace(gpu(2), "a", "P100"))[0][-1] == (2,)
    assert kept(cluster, ReservedPlace(make_demand(), "a", None))[0][-1] == ()


def test_two_tasks_of_one_reservation_share_what_is_free() -> None:
    cluster = Cluster([make_node(cpus=8, gpus={"P100": 3})])
    target = ReservedPlace(make_demand(5, gpus=2), "a", "P100")
    assert kept(cluster, target, target) == [("a", 5, 100, 0, (0, 1)), ("a", 3, 100, 0, (2,))]


def test_what_is_kept_is_booked_and_given_back_exactly() -> None:
    cluster = Cluster([make_node(gpus={"P100": 2})], shares_host_ports=True)
    use = cluster.uses["a"]
    reservations, reservation = (
        Reservations(),
        reservation_of(ReservedPlace(make_demand(3, gpus=2, ports=[port(80)]), "a", "P100")),
    )
    reservations.add(cluster, reservation)
    assert (use.cpus, use.free_gpus, use.ports) == (5, 0, {80})
    assert reservations.pop(cluster, "j") is reservation
    assert (use.cpus, use.free_gpus, use.ports, reservation.kept) == (8, 2, set(), {})
    assert reservations.pop(cluster, "j") is None
    assert use.cpus == 8


def test_a_port_that_another_task_has_is_not_kept_and_stays_its() -> None:
    cluster = Cluster([make_node()], shares_host_ports=True)
    cluster.occupy(make_demand(ports=[port(80)]), on("a", ports={"web": (80,)}))
    reservations, reservation = (
        Reservations(),
        reservation_of(ReservedPlace(make_demand(ports=[port(80), port(81)]), "a", None)),
    )
    reservations.add(cluster, reservation)
    assert cluster.uses["a"].ports == {80, 81}
    assert not reservation.is_complete
    reservations.pop(cluster, "j")
    assert cluster.uses["a"].ports == {80}


def test_of_nodes_that_are_ill_gone_or_too_small_for_what_runs_there_nothing_is_kept() -> None:
    cluster = Cluster([make_node("ill", state=NodeState.LOST), make_node("shrunk", 2, 100, 10)])
    cluster.occupy(make_demand(5, 700, storage_gb=20), on("shrunk"))
    demand = make_demand(1, 100, storage_gb=1)
    targets = [ReservedPlace(demand, node, None) for node in ("ill", "gone", "shrunk")]
    assert kept(cluster, *targets) == []
    assert (cluster.uses["shrunk"].cpus, cluster.uses["ill"].cpus) == (-3, 8)


@pytest.mark.parametrize(
    "lack", [make_demand(1, 0), make_demand(0, 1), make_demand(0, 0, storage_gb=1), make_demand(0, 0, gpus=1)]
)
def test_a_reservation_is_complete_when_nothing_at_all_is_lacking_on_any_of_its_nodes(lack: Demand) -> None:
    nodes = [make_node(name, 4, 1000, 50, {"P100": 2}) for name in ("a", "b")]
    cluster = Cluster(nodes)
    target = make_demand(4, 1000, gpus=2, storage_gb=50)
    taken = on("b", 1) if lack.gpus else on("b")
    cluster.occupy(lack, taken)
    reservations, reservation = (
        Reservations(),
        reservation_of(*(ReservedPlace(target, name, "P100") for name in ("a", "b"))),
    )
    reservations.add(cluster, reservation)
    assert not reservation.is_complete
    cluster.release(lack, taken)
    assert not reservation.is_complete
    reservations.refresh(cluster, "b")
    assert reservation.is_complete
    assert cluster.uses["b"].cpus == 0


def test_a_reservation_is_complete_no_longer_when_another_comes_before_it() -> None:
    cluster = Cluster([make_node(cpus=4)])
    reservations = Reservations()
    beyond, within = (
        reservation_of(ReservedPlace(make_demand(3), "a", None), job_id=name, within=name == "within")
        for name in ("beyond", "within")
    )
    reservations.add(cluster, beyond)
    assert beyond.is_complete
    reservations.add(cluster, within)
    assert (within.is_complete, beyond.is_complete) == (True, False)


def test_what_becomes_free_goes_to_the_older_reservation_and_first_to_those_within_a_guarantee() -> None:
    cluster = Cluster([make_node(cpus=5)])
    cluster.occupy(make_demand(2), on("a"))
    reservations = Reservations()
    beyond, first, second = (
        reservation_of(ReservedPlace(make_demand(2), "a", None), job_id=name, within=within)
        for name, within in (("beyond", False), ("first", True), ("second", True))
    )
    for reservation in (beyond, first, second):
        reservations.add(cluster, reservation)
    assert list(reservations) == [first, second, beyond]
    assert [kept_for(reservation)[0][1] for reservation in (first, second, beyond)] == [2, 1, 0]
    cluster.release(make_demand(2), on("a"))
    reservations.refresh(cluster, "a")
    assert [kept_for(reservation)[0][1] for reservation in (first, second, beyond)] == [2, 2, 1]
    reservations.pop(cluster, "first")
    assert [kept_for(reservation)[0][1] for reservation in (second, beyond)] == [2, 2]


def test_things_may_be_looked_at_as_if_nothing_were_kept_for_some() -> None:
    cluster = Cluster([make_node(cpus=8)])
    use = cluster.uses["a"]
    reservations = Reservations()
    first, second = (reservation_of(ReservedPlace(make_demand(3), "a", None), job_id=name) for name in "ab")
    for reservation in (first, second):
        reservations.add(cluster, reservation)
    with reservations.suspended(cluster, reservations):
        assert use.cpus == 8
        with reservations.suspended(cluster, [first]):
            reservations.refresh(cluster, "a")
            assert use.cpus == 8
        assert use.cpus == 8
        with reservations.resumed(cluster, [second]) as resumed:
            assert use.cpus == 8
            resumed.keep()
            assert use.cpus == 5
            resumed.let_go(["another", "a"])
            assert use.cpus == 8
            resumed.keep()
            resumed.keep()
            assert use.cpus == 5
        assert use.cpus == 8
        assert (list(reservations), len(reservations), "a" in reservations) == ([first, second], 2, True)
    assert use.cpus == 2
    with pytest.raises(ArithmeticError), reservations.suspended(cluster, [first]):
        raise ArithmeticError
    assert use.cpus == 2


def test_a_reservation_that_ends_while_it_is_left_out_stays_out() -> None:
    cluster = Cluster([make_node(cpus=8)])
    reservations, reservation = Reservations(), reservation_of(ReservedPlace(make_demand(3), "a", None))
    reservations.add(cluster, reservation)
    with reservations.suspended(cluster, [reservation]):
        reservations.pop(cluster, "j")
    assert cluster.uses["a"].cpus == 8
    assert (reservations.get("j"), len(reservations)) == (None, 0)


# -- who gets it (with a limit of 0 a job that cannot start has a reservation at once)


def test_what_becomes_free_is_kept_until_the_whole_gang_fits() -> None:
    harness = Harness(gpu_node(gpus=3), clusters=WHOLE, limit=0)
    for number in range(3):
        harness.hold(f"r{number}", (gpu(), on("a", number)))
    assert harness.wait("large", gpu(3)) == []
    assert harness.awaited("large") == {"r0", "r1", "r2"}
    assert harness.end("r1") == []
    awaited = harness.state.awaits("large")
    assert awaited is not None
    assert [holding.job_id for holding in awaited] == ["r0", "r2"]
    assert harness.wait("small", gpu(1)) == []
    assert harness.end("r0") == []
    assert harness.end("r2") == ["+large"]
    assert harness.reserved() == ["small"]
    assert harness.end("large") == ["+small"]


def test_others_start_beside_what_is_kept() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 1), clusters=WHOLE, limit=0)
    harness.hold("r", (gpu(), on("a", 0)))
    harness.wait("large", gpu(2))
    assert harness.wait("small", gpu(1)) == ["+small"]
    assert harness.nodes_of("small") == ["b"]
    assert harness.wait("cores", make_demand(1)) == ["+cores"]
    assert harness.wait("another", gpu(1)) == []


def test_a_gang_starts_with_a_part_of_what_it_was_to_get_and_what_is_free_elsewhere() -> None:
    # (tasks without GPUs go where no GPU is, if they can choose)
    nodes = make_node("a", cpus=2), make_node("b", cpus=1, gpus={"P100": 1})
    harness, core = Harness(*nodes, clusters=WHOLE, limit=0), make_demand(1)
    harness.hold("r", (core, on("a")), (core, on("a")))
    assert harness.wait("gang", core, core) == []
    reservation = harness.state.reservations.get("gang")
    assert reservation is not None
    assert reservation.nodes == ["a"]
    harness.state.release("r", 0)
    assert harness.decide() == ["+gang"]
    assert harness.nodes_of("gang") == ["a", "b"]


def test_a_younger_job_does_not_come_before_an_older_gang_that_takes_the_whole_guarantee() -> None:
    clusters = VirtualCluster("x", 50, 50), VirtualCluster("y", 50)
    harness = Harness(gpu_node("a", 8), clusters=clusters, limit=0)
    for number in range(2):
        harness.hold(f"r{number}", (gpu(), on("a", number)))
    assert harness.wait("gang", *[gpu()] * 4) == []
    assert harness.wait("young", gpu()) == []
    assert harness.reserved() == ["gang", "young"]
    assert harness.end("r0", "r1") == ["+gang"]
    assert harness.end("gang") == ["+young"]


def test_a_reserved_job_may_start_elsewhere_and_frees_what_was_kept() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2), clusters=WHOLE, limit=0)
    harness.hold("first", (gpu(), on("a", 0)))
    harness.hold("second", (gpu(), on("b", 0)))
    harness.wait("large", gpu(2))
    assert harness.awaited("large") == {"first"}
    assert harness.wait("small", gpu(1)) == ["+small"]  # on b, beside `second`
    assert harness.wait("another", gpu(1)) == []
    assert harness.end("second", "small") == ["+large", "+another"]
    assert harness.nodes_of("large") == ["b"]


def test_a_reserved_job_that_starts_elsewhere_frees_what_was_kept() -> None:
    harness = Harness(
        gpu_node("a", 2),
        make_node("b", 10, gpus={"P100": 2}),
        clusters=[VirtualCluster("x", 100), VirtualCluster("y", 0)],
    )
    harness.hold("first", (gpu(), on("a", 0)))
    harness.hold("second", (gpu(), on("b", 0)))
    harness.queue("large", gpu(2), overtaken=100)
    assert harness.decide() == []
    assert harness.wait("many cores", gpu(1, cpus=20), vc="y") == []
    assert harness.end("second") == ["+large", "~many cores"]


def test_a_job_within_its_guarantee_comes_before_a_borrowing_reservation() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2), limit=0)
    harness.hold("x1", (gpu(), on("a", 0)))
    harness.hold("x2", (gpu(), on("b", 0)))
    assert harness.wait("beyond", gpu(2)) == []  # x is guaranteed two, and holds them
    assert harness.wait("within", gpu(2), vc="y") == []
    assert sorted(harness.reserved()) == ["beyond", "within"]
    assert harness.awaited("beyond") == harness.awaited("within") == {"x1"}
    assert harness.end("x1") == ["+within"]


def test_a_start_within_a_guarantee_may_take_what_a_borrowing_reservation_keeps() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2), limit=0)
    harness.hold("x1", (gpu(), on("a", 0)))
    harness.hold("x2", (gpu(), on("b", 0)))
    harness.wait("beyond", gpu(2))
    assert harness.wait("within", gpu(1), vc="y") == ["+within"]
    assert harness.reserved() == ["beyond"]


def test_what_is_kept_for_a_reservation_beyond_is_in_nobodys_way_who_stays_within() -> None:
    harness = Harness(limit=0)
    harness.hold("x0", (gpu(2), on("a", 0, 1)))
    harness.hold("y0", (gpu(1), on("a", 2)), vc="y")
    assert harness.wait("beyond", gpu(2)) == []
    assert harness.wait("more", gpu(1)) == []
    assert harness.wait("within", gpu(1), vc="y") == ["+within"]
    assert harness.reserved() == ["beyond", "more"]


def test_a_reservation_within_a_guarantee_is_respected_by_all() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2), limit=0)
    harness.hold("x1", (gpu(), on("a", 0)))
    harness.hold("x2", (gpu(), on("b", 0)))
    harness.wait("within", gpu(2), vc="y")
    # (the two that y is guaranteed are kept: anything else that it gets is borrowed)
    assert harness.wait("small", gpu(1), vc="y") == ["~small"]
    assert harness.nodes_of("small") == ["b"]
    assert harness.wait("more", gpu(1), vc="x") == []


def test_a_reservation_whose_jobs_have_ended_without_use_is_made_anew() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2), limit=0)
    harness.hold("x1", (gpu(), on("a", 0)))
    harness.hold("x2", (gpu(), on("b", 0)))
    harness.wait("beyond", gpu(2))
    harness.wait("within", gpu(2), vc="y")
    harness.end("x1")
    assert harness.awaited("beyond") == {"x2"}
    assert harness.end("x2") == ["+beyond"]


def test_a_reservation_ends_when_its_job_leaves_and_others_have_what_was_kept() -> None:
    harness = Harness(gpu_node(gpus=2), clusters=WHOLE, limit=0)
    harness.hold("r", (gpu(), on("a", 0)))
    harness.wait("large", gpu(2))
    harness.wait("small", gpu(1))
    scheduler_state = harness.scheduler_state()
    assert harness.leave("large") == ["+small"]
    assert harness.reserved() == []
    assert harness.end("small") == []
    assert harness.scheduler_state() != scheduler_state
    assert harness.state.quota_accounting.used("x")["gpu:P100"] == 1


def test_a_reservation_is_made_anew_when_nodes_change() -> None:
    harness = Harness(gpu_node("a", 2), clusters=WHOLE, limit=0)
    harness.hold("r", (gpu(), on("a", 0)))
    harness.wait("large", gpu(2))
    harness.state.set_nodes([gpu_node("a", 2), gpu_node("b", 1)])
    assert harness.decide() == []
    assert harness.reserved() == ["large"]
    assert harness.state.quota_accounting.used("x")["gpu:P100"] == 3
    harness.state.set_nodes([gpu_node("a", 2), gpu_node("b", 2)])
    assert harness.decide() == ["+large"]
    assert harness.nodes_of("large") == ["b"]


def test_a_reservation_ends_where_shares_change_and_leave_no_room_for_it() -> None:
    harness = Harness(gpu_node("a", 4), limit=0)
    harness.hold("r", (gpu(2), on("a", 0, 1)), vc="y")
    harness.wait("large", gpu(3))
    assert harness.reserved() == ["large"]
    harness.state.set_clusters([VirtualCluster("x", 50, 50), VirtualCluster("y", 50)])
    assert harness.decide() == []
    assert harness.reserved() == []
    assert not harness.state.quota_accounting.used("x")
    assert harness.wait("small", gpu(2)) == ["+small"]


@pytest.mark.parametrize("capacity", [50, 25])
def test_two_reservations_of_one_virtual_cluster_do_not_wait_for_each_other(capacity: float) -> None:
    harness = Harness(
        gpu_node(gpus=4), clusters=[VirtualCluster("x", capacity, 50), VirtualCluster("y", 50)], limit=0
    )
    harness.hold("r", (gpu(2), on("a", 0, 1)))
    harness.wait("first", gpu(2))
    harness.wait("second", gpu(2))
    assert harness.reserved() == ["first", "second"]
    assert harness.end("r") in (["+first"], ["~first"])
    assert harness.end("first") in (["+second"], ["~second"])
    assert harness.end("second") == []
    assert not harness.state.quota_accounting.used("x")


def test_what_the_first_of_two_reservations_may_hold_is_not_given_to_the_second() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 50, 50), VirtualCluster("y", 50)], limit=0)
    harness.hold("r0", (gpu(), on("a", 0)))
    harness.hold("r1", (gpu(), on("a", 1)))
    harness.wait("first", gpu(2))
    harness.wait("second", gpu(1))
    assert harness.end("r0") == []
    assert harness.end("r1") == ["+first"]
    assert harness.end("first") == ["+second"]


def test_two_reservations_of_one_users_quota_do_not_wait_for_each_other() -> None:
    harness = Harness(gpu_node(gpus=4), clusters=[VirtualCluster("x", 100, gpus_per_user=2)], limit=0)
    harness.hold("r", (gpu(2), on("a", 0, 1)))
    harness.wait("first", gpu(2))
    harness.wait("second", gpu(2), preemptible=False)
    assert harness.reserved() == ["first", "second"]
    assert harness.end("r") == ["+first"]
    assert harness.end("first") == ["+second"]


def test_of_equal_jobs_only_the_first_has_a_reservation_also_after_a_quota_came() -> None:
    harness = Harness(gpu_node(gpus=2), clusters=WHOLE, limit=0)
    harness.hold("r", (gpu(2), on("a", 0, 1)))
    for name in ("first", "second", "third"):
        harness.queue(name, gpu(2))
    harness.decide()
    assert harness.reserved() == ["first"]
    harness.state.set_clusters([VirtualCluster("x", 100, gpus_per_user=2)])
    assert harness.decide() == []
    assert harness.reserved() == ["first"]
    assert harness.state.quota_accounting.used("x")["gpu:P100"] == 4
    assert harness.end("r") == ["+first"]
    assert harness.end("first") == ["+second"]
    assert harness.end("second") == ["+third"]
    assert harness.end("third") == []
    assert not harness.state.quota_accounting.used("x")


def test_of_equal_jobs_that_wait_only_the_first_has_a_reservation() -> None:
    harness = Harness(gpu_node(gpus=2), clusters=WHOLE, limit=0)
    harness.hold("r", (gpu(2), on("a", 0, 1)))
    harness.queue("first", gpu(2))
    harness.queue("second", gpu(2))
    assert harness.wait("third", gpu(2)) == []
    assert harness.reserved() == ["first"]
    assert harness.leave("first") == []
    assert harness.reserved() == ["second"]
    assert harness.end("r") == ["+second"]


# -- a gang that started is brought near together, or spread: what it leaves behind is kept for others


def test_what_a_gang_leaves_on_a_node_when_it_is_brought_near_together_is_kept_for_others() -> None:
    # best fit takes `a` and `c`, in which the fewest cores are free; near each other are `b` and `c`
    cores = {"a": 40, "b": 21, "c": 20}
    racks = {"a": "r1", "b": "r2", "c": "r2"}
    harness = Harness(
        *(make_node(name, cpus, 100_000, rack=racks[name]) for name, cpus in cores.items()),
        clusters=WHOLE,
        limit=0,
    )
    harness.hold("one", (make_demand(16), on("a")))
    harness.hold("stays", (make_demand(20), on("a")))
    harness.hold("other", (make_demand(16), on("b")))
    assert harness.wait("gang", *[make_demand(16)] * 2) == []
    assert harness.wait("large", make_demand(40)) == []  # nowhere but on `a`, after all that runs there
    assert harness.awaited("large") == {"one", "stays"}
    assert harness.end("one", "other") == ["+gang"]
    assert harness.nodes_of("gang") == ["c", "b"]
    assert kept_on("a", harness, "large").cpus == 20
    assert harness.wait("small", make_demand(6)) == []
    assert harness.end("stays") == ["+large"]


def test_what_a_gang_leaves_on_a_node_where_some_of_it_stays_is_kept_for_others() -> None:
    # best fit takes two GPUs of `a`; spread, one task goes to `b`, which has cores for one only
    harness = Harness(
        make_node("a", 100, 100_000, gpus={"P100": 3}),
        make_node("b", 1, 100_000, gpus={"P100": 3}),
        clusters=WHOLE,
        limit=0,
    )
    harness.hold("two", (gpu(2), on("a", 0, 1)))
    harness.hold("one", (gpu(1), on("a", 2)))
    assert harness.wait("gang", *[make_demand(gpus=1, spread="worker")] * 2) == []
    assert harness.wait("large", gpu(3, cpus=2)) == []  # nowhere but on `a`, after all that runs there
    assert harness.awaited("large") == {"two", "one"}
    assert harness.end("two") == ["+gang"]
    assert harness.nodes_of("gang") == ["a", "b"]
    assert kept_on("a", harness, "large").gpus == 1
    assert harness.wait("small", gpu(1, cpus=2)) == []


def kept_on(node: str, harness: Harness, job_id: str) -> Demand:
    """Return what is kept on a node for the only task of a waiting job."""
    reservation = harness.state.reservations.get(job_id)
    assert reservation is not None, f"nothing is kept for {job_id}"
    ((part, _),) = reservation.kept[node]
    return part


def test_reservations_are_counted_by_the_size_of_their_jobs() -> None:
    cluster, reservations = Cluster([make_node(cpus=8)]), Reservations()
    place = [ReservedPlace(make_demand(), "a", None)]
    small, large = (
        Reservation(name, "alice", "x", place, {}, frozenset(), True, size=name)
        for name in ("small", "large")
    )
    for one in (small, large):
        reservations.add(cluster, one)
    assert reservations.of_size("x", "small") == 1
    reservations.pop(cluster, "small")
    assert (reservations.of_size("x", "small"), reservations.of_size("x", "large")) == (0, 1)
    assert reservations.of_size("y", "large") == 0
