from __future__ import annotations

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.dispatcher import Preempt, Start
from pai_scheduler.cluster.quota import Bound
from pai_scheduler.cluster.sort_key import SortKey
from tests.scheduler.cluster.harness import Harness, gpu, gpu_node, on, port
from tests.scheduler.making import make_demand, make_node

WHOLE = (VirtualCluster("x", 100),)
THIRDS = (VirtualCluster("x", 25), VirtualCluster("y", 50), VirtualCluster("z", 25))


# -- two rounds


def test_a_later_job_within_its_guarantee_starts_before_one_that_borrows() -> None:
    harness = Harness()
    harness.queue("borrows", gpu(3))
    harness.queue("within", gpu(2), vc="y")
    assert harness.decide() == ["+within"]
    assert harness.end("within") == ["~borrows"]


def test_within_a_virtual_cluster_nobody_waits_for_who_does_not_fit() -> None:
    harness = Harness(clusters=WHOLE)
    harness.queue("large", gpu(5))
    harness.queue("small", gpu(1))
    assert harness.decide() == ["+small"]


def test_a_start_gives_each_task_its_place_in_the_order_of_the_gang() -> None:
    harness = Harness(gpu_node("a", 1), gpu_node("b", 3), clusters=WHOLE)
    harness.queue("j", gpu(1), gpu(3), make_demand(1))
    (decision,) = harness.dispatcher.decide(7)
    assert isinstance(decision, Start)
    first, second, _ = decision.assignments
    assert (first, second) == (on("a", 0), on("b", 0, 1, 2))
    holding = harness.state.holdings["j"]
    assert (holding.since, holding.user, holding.virtual_cluster, holding.preemptible) == (
        7,
        "alice",
        "x",
        True,
    )
    assert holding.amounts == {"cpus": 3, "memoryMB": 300, "gpu:P100": 4}


def test_a_gang_starts_near_each_other_and_holds_what_it_has_there() -> None:
    nodes = [make_node(f"n{i}", gpus={"P100": 2}, rack=rack) for i, rack in enumerate(("r1", "r2", "r2"))]
    harness = Harness(*nodes, clusters=WHOLE)
    harness.queue("j", gpu(2), gpu(2))
    (decision,) = harness.dispatcher.decide(7)
    assert isinstance(decision, Start)
    assert {place.node for place in decision.assignments} == {"n1", "n2"}
    assert harness.wait("next", gpu(2)) == ["+next"]
    assert harness.end("j") == []
    assert harness.state.cluster.uses["n2"].free_gpus == 2


def test_what_was_decided_is_not_decided_again() -> None:
    harness = Harness()
    assert harness.wait("j", gpu(1)) == ["+j"]
    assert harness.decide() == []


def test_the_first_of_two_jobs_gets_the_rest_of_a_guarantee() -> None:
    harness = Harness()
    harness.queue("first", gpu(2))
    harness.queue("second", gpu(1))
    assert harness.decide() == ["+first", "~second"]


def test_a_job_without_a_type_borrows_the_other_type_and_stops_nobody() -> None:
    harness = Harness(gpu_node(gpus=2, K80=2))
    harness.hold("x1", (gpu(2, "K80"), on("a", 2, 3)))  # borrows one
    harness.hold("y1", (gpu(1, "P100"), on("a", 0)), vc="y")
    assert harness.wait("any", gpu(1), vc="y") == ["~any"]


def test_a_job_of_a_type_takes_back_what_is_guaranteed_of_it() -> None:
    harness = Harness(gpu_node(gpus=2, K80=2))
    harness.hold("x0", (gpu(1, "K80"), on("a", 2)))
    harness.hold("x1", (gpu(1, "K80"), on("a", 3)))
    harness.hold("y1", (gpu(1, "P100"), on("a", 0)), vc="y")
    assert harness.wait("typed", gpu(1, "K80"), vc="y") == ["-x1"]
    assert harness.wait("any", gpu(1), vc="x") == ["+any"]


def test_a_job_without_a_type_stops_borrowers_where_nothing_is_free() -> None:
    harness = Harness(gpu_node(gpus=2, K80=2))
    harness.hold("x1", (gpu(2, "P100"), on("a", 0, 1)))
    harness.hold("x2", (gpu(2, "K80"), on("a", 2, 3)))
    assert harness.wait("any", gpu(1), vc="y") == ["-x2"]


def test_what_must_not_be_stopped_for_others_never_borrows_and_does_not_stop_them_for_that() -> None:
    harness = Harness()
    assert harness.wait("sure", gpu(3), preemptible=False) == []
    assert harness.wait("other", gpu(2), preemptible=False) == ["+other"]
    assert harness.wait("more", gpu(1), preemptible=False) == []


def test_what_must_not_be_stopped_does_not_borrow_another_type_but_has_its_own_freed() -> None:
    harness = Harness(gpu_node(gpus=2, K80=2))
    harness.hold("x0", (gpu(1, "K80"), on("a", 2)))
    harness.hold("x1", (gpu(1, "K80"), on("a", 3)))
    harness.hold("y0", (gpu(1, "P100"), on("a", 0)), vc="y")
    assert harness.wait("sure", gpu(1), vc="y", preemptible=False) == ["-x1"]


def test_a_start_beyond_a_guarantee_goes_to_the_maximum_and_no_further() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 25, 75), VirtualCluster("y", 75)])
    assert harness.wait("too much", gpu(4)) == []
    assert harness.wait("as much", gpu(3)) == ["~as much"]
    assert harness.wait("more", gpu(1)) == []


# -- victims


def test_the_youngest_jobs_are_stopped_and_no_more_than_needed() -> None:
    harness = Harness()
    for number in range(4):
        harness.hold(f"x{number}", (gpu(), on("a", number)))
    harness.queue("wants", gpu(1), vc="y")
    (decision,) = harness.dispatcher.decide(9)
    assert decision == Preempt(["x3"], "wants")
    assert harness.decide() == []
    assert harness.wait("more", gpu(1), vc="y") == ["-x2"]
    assert harness.wait("too much", gpu(1), vc="y") == []


def test_among_jobs_of_the_same_age_the_choice_of_whom_to_stop_is_stable() -> None:
    for order in ("abcd", "dcba"):
        harness = Harness()
        for number, name in enumerate(order):
            harness.hold(name, (gpu(), on("a", number)), since=5)
        assert harness.wait("wants", gpu(1), vc="y") == ["-c"]


def test_a_younger_job_whose_end_does_not_help_is_not_stopped() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2))
    harness.hold("old", (gpu(), on("b", 0)))
    harness.hold("helps", (gpu(2), on("a", 0, 1)))
    harness.hold("young", (gpu(), on("b", 1)))
    assert harness.wait("wants", gpu(2), vc="y") == ["-helps"]


def test_nobody_is_stopped_where_all_of_them_would_not_do() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2))
    harness.hold("x0", (gpu(), on("a", 0)), preemptible=False)
    harness.hold("x1", (gpu(), on("b", 0)), preemptible=False)
    harness.hold("x2", (gpu(), on("a", 1)))
    harness.hold("x3", (gpu(), on("b", 1)))
    assert harness.wait("wants", gpu(2), vc="y") == []
    assert harness.wait("spread", gpu(), gpu(), vc="y") == ["-x3", "-x2"]


def test_a_job_stops_nobody_of_its_own_virtual_cluster() -> None:
    harness = Harness(clusters=THIRDS)
    harness.hold("x0", (gpu(2), on("a", 0, 1)))
    harness.hold("y0", (gpu(2), on("a", 2, 3)), vc="y")
    harness.end("x0")
    harness.hold("y1", (gpu(1), on("a", 0)), vc="y")
    harness.hold("z0", (gpu(1), on("a", 1)), vc="z")
    assert harness.wait("own", gpu(1), vc="y") == []
    assert harness.wait("other", gpu(1), vc="x") == ["-y1"]


def test_a_job_stops_nobody_of_its_own_virtual_cluster_for_another_resource_either() -> None:
    harness = Harness(gpu_node(gpus=2, K80=2))
    harness.hold("x0", (gpu(1, "K80", cpus=20), on("a", 2)))
    harness.hold("x1", (gpu(1, "K80", cpus=20), on("a", 3)))  # borrows a K80, with the cores that are lacking
    harness.hold("y0", (make_demand(55), on("a")), vc="y", preemptible=False)
    assert harness.wait("own", gpu(1, "P100", cpus=10)) == []


def test_the_choice_whom_to_stop_is_stable_across_virtual_clusters() -> None:
    for order in ("xz", "zx"):
        harness = Harness(clusters=THIRDS)
        for number, name in enumerate(order):
            harness.hold(f"old {name}", (gpu(), on("a", 2 * number)), vc=name)
            harness.hold(f"young {name}", (gpu(), on("a", 2 * number + 1)), vc=name, since=9)
        assert harness.wait("wants", gpu(1), vc="y") == ["-young x"]


def test_what_must_not_be_stopped_counts_first_against_a_guarantee() -> None:
    harness = Harness()
    harness.hold("old", (gpu(2), on("a", 0, 1)))
    harness.hold("sure", (gpu(2), on("a", 2, 3)), preemptible=False)
    assert [holding.job_id for holding in harness.state.borrowing("x")] == ["old"]
    assert harness.wait("wants", gpu(1), vc="y") == ["-old"]


def test_a_job_that_fits_the_guarantee_beside_an_older_one_does_not_borrow() -> None:
    harness = Harness()
    harness.hold("first", (gpu(1), on("a", 0)))
    harness.hold("large", (gpu(2), on("a", 1, 2)))
    harness.hold("last", (gpu(1), on("a", 3)))
    # one and two are too many, one and the last are not
    assert [holding.job_id for holding in harness.state.borrowing("x")] == ["large"]


def test_nobody_borrows_where_everything_is_guaranteed() -> None:
    harness = Harness(clusters=WHOLE)
    harness.hold("all", (gpu(4), on("a", 0, 1, 2, 3)))
    assert harness.state.borrowing("x") == []
    assert harness.state.borrowing("y") == []


def test_jobs_of_a_virtual_cluster_that_is_gone_all_borrow() -> None:
    harness = Harness()
    harness.hold("j", (gpu(1), on("a", 0)), vc="gone")
    harness.hold("rest", (gpu(3), on("a", 1, 2, 3)), vc="x")
    assert [holding.job_id for holding in harness.state.borrowing("gone")] == ["j"]
    assert harness.wait("wants", gpu(1), vc="y") == ["-rest"]


def test_jobs_that_are_ending_are_waited_for_before_others_are_stopped() -> None:
    harness = Harness()
    harness.hold("ends", (gpu(1), on("a", 0)))
    harness.hold("x1", (gpu(1), on("a", 1)))
    harness.hold("x2", (gpu(1), on("a", 2)))
    harness.hold("x3", (gpu(1), on("a", 3)))
    harness.state.ending("ends")
    assert harness.wait("wants", gpu(1), vc="y") == []
    assert harness.awaited("wants") == {"ends"}
    assert harness.wait("small", gpu(1)) == []
    assert harness.end("ends") == ["+wants"]


def test_an_ending_job_reserves_nothing_for_others_where_nobody_borrows() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2))
    harness.hold("once preempted", (gpu(), on("a", 1)), ending=True, preempted=True)
    harness.end("once preempted")
    harness.hold("x0", (gpu(), on("a", 0)))
    harness.hold("x1", (gpu(), on("b", 0)))
    harness.state.ending("x0")
    assert harness.wait("wants", gpu(2), vc="y") == []
    assert harness.reserved() == []


def test_what_was_being_freed_for_a_job_that_leaves_is_kept_for_the_next() -> None:
    harness = Harness()
    harness.hold("x0", (gpu(2), on("a", 0, 1)))
    harness.hold("x1", (gpu(2), on("a", 2, 3)))
    assert harness.wait("wants", gpu(2), vc="y") == ["-x1"]
    harness.leave("wants")
    assert harness.wait("next", gpu(1), vc="y") == []
    assert harness.awaited("next") == {"x1"}


def test_what_is_being_freed_is_kept_for_the_job_it_is_freed_for_also_from_higher_priorities() -> None:
    harness = Harness()
    harness.hold("x0", (gpu(2), on("a", 0, 1)))
    harness.hold("x1", (gpu(1), on("a", 2)))
    harness.hold("x2", (gpu(1), on("a", 3)))
    assert harness.wait("wants", gpu(2), vc="y") == ["-x2", "-x1"]
    assert harness.wait("urgent", gpu(1), vc="y", priority=50) == []
    assert harness.end("x2") == []
    assert harness.end("x1") == ["+wants"]


def test_after_a_restart_the_same_job_gets_what_was_being_freed_and_nobody_else_is_stopped() -> None:
    harness = Harness()
    harness.hold("x0", (gpu(1), on("a", 0)))
    harness.hold("x1", (gpu(1), on("a", 1)))
    harness.hold("x2", (gpu(1), on("a", 2)), ending=True, preempted=True)
    harness.hold("x3", (gpu(1), on("a", 3)), ending=True, preempted=True)
    harness.queue("wants", gpu(2), vc="y")
    assert harness.decide() == []
    assert harness.awaited("wants") == {"x2", "x3"}
    assert harness.end("x2") == []
    assert harness.end("x3") == ["+wants"]


def test_overtaking_is_still_bounded_after_a_restart() -> None:
    harness = Harness(clusters=WHOLE, limit=3)
    harness.hold("r", (gpu(3), on("a", 0, 1, 2)))
    harness.queue("not yet", gpu(3), overtaken=2)
    harness.queue("due", gpu(4), overtaken=3)
    assert harness.decide() == []
    assert harness.reserved() == ["due"]


def test_who_has_no_task_any_more_holds_nothing() -> None:
    harness = Harness()
    harness.hold("nothing")
    assert not harness.state.holdings
    harness.state.ending("nothing")
    harness.state.expect("nothing", 5)


# -- what happens to whom


def test_what_a_task_held_is_free_while_the_others_of_its_gang_still_run() -> None:
    harness = Harness(clusters=WHOLE)
    harness.hold("gang", (gpu(2), on("a", 0, 1)), (gpu(2), on("a", 2, 3)))
    harness.wait("waits", gpu(2))
    harness.state.release("gang", 1)
    assert harness.decide() == ["+waits"]
    assert harness.state.holdings["gang"].amounts["gpu:P100"] == 2
    harness.end("gang", "waits")
    assert not harness.state.holdings
    assert harness.state.quota_accounting.used("x") == {}


def test_somebody_of_another_virtual_cluster_has_what_becomes_free() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2))
    harness.hold("y0", (gpu(2), on("a", 0, 1)), vc="y")
    harness.hold("x0", (gpu(2), on("b", 0, 1)))
    assert harness.wait("more", gpu(2), vc="x") == []
    assert harness.end("y0") == ["~more"]


def test_a_gang_starts_when_one_of_its_tasks_has_room_and_the_others_had_it() -> None:
    harness = Harness(make_node("a", 10, gpus={"P100": 1}), make_node("b", 100))
    harness.hold("y0", (gpu(1), on("a", 0)), vc="y")
    assert harness.wait("gang", gpu(1), make_demand(60)) == []
    assert harness.end("y0") == ["~gang"]


def test_with_more_nodes_more_is_guaranteed() -> None:
    harness = Harness()
    assert harness.wait("waits", gpu(3), preemptible=False) == []
    harness.state.set_nodes([gpu_node("a"), gpu_node("b")])
    assert harness.decide() == ["+waits"]


def test_a_limit_that_is_freed_lets_somebody_start_elsewhere() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2), clusters=[VirtualCluster("x", 50, 50)])
    harness.hold("on a", (gpu(2), on("a", 0, 1)))
    harness.wait("waits", gpu(2))
    harness.state.set_nodes([make_node("a", 8), gpu_node("b", 2), gpu_node("c", 2)])
    assert harness.decide() == []
    assert harness.end("on a") == ["+waits"]


def test_what_becomes_free_beside_a_borrower_makes_its_end_worth_while() -> None:
    harness = Harness(gpu_node("a", 4), gpu_node("b", 4), clusters=THIRDS)
    harness.hold("z0", (gpu(2), on("a", 0, 1)), vc="z")
    harness.hold("x0", (gpu(2), on("b", 0, 1)))
    harness.hold("x1", (gpu(2), on("a", 2, 3)))
    assert harness.wait("wants", gpu(4), vc="y") == []
    assert harness.end("z0") == ["-x1"]
    assert harness.end("x1") == ["+wants"]


def test_a_port_that_all_nodes_share_lets_somebody_start_on_another_node() -> None:
    harness = Harness(make_node("a", 1), make_node("b", 50), shares_host_ports=True)
    harness.hold("y0", (make_demand(1), on("a", ports={"web": (80,)})), vc="y")
    assert harness.wait("waits", make_demand(4, ports=[port(80)])) == []
    assert harness.end("y0") == ["+waits"]
    assert harness.nodes_of("waits") == ["b"]


def test_tasks_whose_nodes_share_no_ports_may_have_the_same() -> None:
    harness = Harness(make_node("a", 50))
    harness.hold("y0", (make_demand(1), on("a", ports={"web": (80,)})), vc="y")
    assert harness.wait("also", make_demand(4, ports=[port(80)])) == ["+also"]


def test_a_job_that_leaves_is_gone_and_may_be_unknown() -> None:
    harness = Harness(clusters=WHOLE)
    harness.hold("r", (gpu(4), on("a", 0, 1, 2, 3)))
    harness.wait("j", gpu(1))
    assert harness.leave("j") == []
    assert harness.leave("j") == []
    assert harness.end("r") == []
    assert "j" not in harness.state.queue


def test_another_sort_key_lets_a_job_start_first_and_keeps_how_often_it_was_overtaken() -> None:
    harness = Harness(clusters=WHOLE)
    harness.hold("r", (gpu(4), on("a", 0, 1, 2, 3)))
    harness.queue("first", gpu(4))
    harness.queue("second", gpu(3), overtaken=7)
    harness.decide()
    harness.state.resort("second", SortKey(0, 0, 0))
    assert harness.state.queue.overtaken("second") == 7
    assert harness.end("r") == ["+second"]


def test_another_sort_key_costs_a_job_its_reservation_and_it_finds_another() -> None:
    harness = Harness(clusters=WHOLE, limit=0)
    harness.hold("r", (gpu(2), on("a", 0, 1)))
    harness.wait("large", gpu(3))
    harness.wait("second", gpu(3, cpus=2))
    assert harness.reserved() == ["large", "second"]
    harness.state.resort("large", SortKey(1, 0, 99))
    harness.decide()
    assert harness.reserved() == ["second", "large"]
    assert harness.state.quota_accounting.used("x")["gpu:P100"] == 8
    assert harness.end("r") == ["+second"]


def test_another_sort_key_gives_what_was_kept_for_a_job_to_those_that_are_before_it_now() -> None:
    harness = Harness(clusters=WHOLE)
    harness.hold("r", (gpu(1), on("a", 0)))
    harness.queue("large", gpu(4), overtaken=100)
    assert harness.decide() == []
    assert harness.wait("small", gpu(1)) == []
    harness.state.resort("large", SortKey(1, 0, 99))
    assert harness.decide() == ["+small"]
    assert harness.reserved() == ["large"]


# -- overtaking


def test_a_gang_is_overtaken_so_often_and_then_no_more() -> None:
    harness = Harness(clusters=WHOLE, limit=2)
    harness.hold("r", (gpu(2), on("a", 0, 1)))
    harness.wait("large", gpu(4))
    assert [harness.wait(name, gpu(1)) for name in ("s1", "s2", "s3")] == [["+s1"], ["+s2"], []]
    assert harness.reserved() == ["large"]
    assert harness.end("s1", "s2") == []
    assert harness.end("r") == ["+large"]


def test_a_job_that_is_first_by_priority_overtakes_nobody() -> None:
    harness = Harness(clusters=WHOLE, limit=1)
    harness.hold("r", (gpu(1), on("a", 0)))
    harness.wait("large", gpu(4))
    assert harness.wait("urgent", gpu(1), priority=1) == ["+urgent"]
    assert harness.reserved() == []
    assert harness.wait("later", gpu(1)) == ["+later"]
    assert harness.reserved() == ["large"]


def test_a_borrowing_job_counts_as_overtaken_by_borrowing_jobs_only() -> None:
    harness = Harness(gpu_node(gpus=8), limit=1)
    harness.hold("y0", (gpu(4), on("a", 0, 1, 2, 3)), vc="y")
    assert harness.wait("large", gpu(5), vc="y") == []
    assert harness.wait("within", gpu(3)) == ["+within"]
    assert harness.reserved() == []
    assert harness.state.queue.overtaken("large") == 0
    harness.end("within")
    harness.hold("x0", (gpu(4), on("a", 4, 5, 6, 7)))
    harness.state.set_nodes([gpu_node(gpus=9)])
    assert harness.wait("borrows", gpu(1)) == ["~borrows"]
    assert harness.reserved() == ["large"]


def test_for_what_must_not_borrow_and_would_have_to_nothing_is_kept() -> None:
    harness = Harness(limit=0)
    assert harness.wait("sure", gpu(3), preemptible=False) == []
    assert harness.reserved() == []
    assert harness.wait("other", gpu(4)) == ["~other"]


def test_for_what_can_never_fit_nothing_is_kept_until_there_is_more() -> None:
    harness = Harness(clusters=WHOLE, limit=0)
    harness.hold("r", (gpu(1), on("a", 0)))
    assert harness.wait("huge", gpu(5)) == []
    assert harness.wait("small", gpu(3)) == ["+small"]
    assert harness.reserved() == []
    harness.state.set_nodes([gpu_node("a"), gpu_node("b", 5, K80=1)])
    assert harness.decide() == ["+huge"]


def test_what_never_fitted_is_looked_at_again_when_nodes_or_shares_change() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 50, 50), VirtualCluster("y", 50)], limit=0)
    harness.hold("r", (gpu(1), on("a", 0)), vc="y")
    harness.wait("large", gpu(4))
    assert harness.reserved() == []
    harness.state.set_clusters([VirtualCluster("x", 50), VirtualCluster("y", 50)])
    harness.decide()
    assert harness.reserved() == ["large"]
    assert harness.end("r") == ["~large"]


def test_the_wait_is_for_the_jobs_that_end_first() -> None:
    harness = Harness(clusters=WHOLE, limit=0)
    for number in range(4):
        harness.hold(f"r{number}", (gpu(), on("a", number)), preemptible=number > 0)
    harness.state.expect("r0", 10)  # a notebook server
    harness.state.expect("r2", 500)
    harness.state.expect("r3", 400)
    harness.queue("one", gpu(1))
    assert [holding.job_id for holding in harness.state.awaits("one") or ()] == ["r3"]
    harness.state.expect("r3", None)
    assert [holding.job_id for holding in harness.state.awaits("one") or ()] == ["r2"]
    harness.state.ending("r1")
    assert [holding.job_id for holding in harness.state.awaits("one") or ()] == ["r1"]
    harness.queue("all", gpu(4))
    assert [holding.job_id for holding in harness.state.awaits("all") or ()] == ["r1", "r2", "r3", "r0"]
    harness.queue("never", gpu(5))
    assert harness.state.awaits("never") is None
    harness.decide()
    assert [holding.job_id for holding in harness.state.awaits("one") or ()] == ["r1"]


# -- limits


def test_a_quota_holds_one_user_back_and_not_the_next_in_line() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 100, gpus_per_user=2)])
    harness.hold("a0", (gpu(2), on("a", 0, 1)))
    harness.queue("a1", gpu(1))
    harness.queue("b1", gpu(1), user="bert")
    assert harness.decide() == ["+b1"]
    assert harness.end("a0") == ["+a1"]


def test_a_quota_that_comes_or_goes_is_heeded_at_once() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 100)])
    harness.hold("r", (gpu(3), on("a", 0, 1, 2)), user="alice")
    harness.queue("a1", gpu(2), overtaken=5)
    harness.queue("b1", gpu(2), user="bert")
    harness.decide()
    harness.state.set_clusters([VirtualCluster("x", 100, gpus_per_user=3)])
    assert harness.state.queue.overtaken("a1") == 5
    assert harness.wait("a2", gpu(1)) == []
    harness.hold("r2", (make_demand(1), on("a")))
    harness.state.release("r", 0)
    assert harness.decide() == ["+a1", "+b1"]
    harness.state.set_clusters([VirtualCluster("x", 100)])
    assert harness.end("b1") == ["+a2"]


def test_no_job_is_stopped_for_a_user_beyond_a_quota() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 50), VirtualCluster("y", 50, gpus_per_user=0)])
    harness.hold("x0", (gpu(4), on("a", 0, 1, 2, 3)))
    assert harness.wait("wants", gpu(1), vc="y") == []


def test_nothing_of_a_stopped_virtual_cluster_starts_and_nobody_is_stopped_for_it() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 50), VirtualCluster("y", 50, stopped=True)])
    assert harness.wait("y0", gpu(1), vc="y") == []
    harness.hold("x0", (gpu(4), on("a", 0, 1, 2, 3)))
    assert harness.wait("y1", gpu(1, cpus=2), vc="y") == []
    harness.state.set_clusters([VirtualCluster("x", 50), VirtualCluster("y", 50)])
    assert harness.decide() == ["-x0"]


# -- questions


def test_asking_about_fit_reserves_nothing() -> None:
    harness = Harness(limit=0)
    harness.hold("r", (gpu(1), on("a", 0)), vc="y")
    harness.wait("large", gpu(4))
    before = harness.scheduler_state()
    dispatcher = harness.dispatcher
    shape = dispatcher.state.shape("alice", "x", [gpu(3)], preemptible=True)
    assert dispatcher.state.fits("alice", "x", shape, Bound.MAXIMUM) is False
    with dispatcher.state.without_reservation("large"):
        assert dispatcher.state.fits("alice", "x", shape, Bound.MAXIMUM) is True
    assert dispatcher.state.ever_fits("x", shape, Bound.MAXIMUM)
    assert not dispatcher.state.ever_fits("x", shape, Bound.GUARANTEE)
    assert dispatcher.state.awaits("large") == [dispatcher.state.holdings["r"]]
    assert harness.scheduler_state() == before


def test_jobs_of_all_users_share_a_shape_unless_there_is_a_quota() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 50), VirtualCluster("y", 50, gpus_per_user=1)])
    shape = harness.state.shape
    assert shape("a", "x", [gpu()], True) == shape("b", "x", [gpu()], True)
    assert shape("a", "x", [gpu()], True) != shape("a", "x", [gpu()], False)
    assert shape("a", "y", [gpu()], True) != shape("b", "y", [gpu()], True)


def test_only_jobs_of_a_virtual_cluster_that_spreads_get_the_emptiest_nodes() -> None:
    clusters = (VirtualCluster("x", 50, spreads=True), VirtualCluster("y", 50))
    harness = Harness(*(gpu_node(name) for name in "abc"), clusters=clusters)
    for number in range(4):
        harness.queue(f"x{number}", gpu(), vc="x")
    harness.queue("y0", gpu(), vc="y")
    decisions = harness.dispatcher.decide(7)
    starts = {one.job_id: one.assignments[0].node for one in decisions if isinstance(one, Start)}
    assert starts == {"x0": "a", "x1": "b", "x2": "c", "x3": "a", "y0": "a"}
