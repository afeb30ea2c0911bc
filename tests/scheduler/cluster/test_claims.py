"""What is kept for waiting jobs, as the dispatcher does it.

With a limit of 0 whoever cannot start is due at once: things are kept for it.
"""

from __future__ import annotations

import pytest

from pai_scheduler.cluster.definition import VirtualCluster

from ..making import make_demand
from .desk import Desk, gpu, gpu_node, on

WHOLE = (VirtualCluster("x", 100),)


def test_what_becomes_free_is_kept_until_the_whole_gang_fits() -> None:
    desk = Desk(gpu_node(gpus=3), clusters=WHOLE, limit=0)
    for number in range(3):
        desk.hold(f"r{number}", (gpu(), on("a", number)))
    assert desk.wait("large", gpu(3)) == []
    assert desk.awaited("large") == {"r0", "r1", "r2"}
    assert desk.end("r1") == []
    assert desk.wait("small", gpu(1)) == []
    assert desk.end("r0") == []
    assert desk.end("r2") == ["+large"]
    assert desk.claimed() == ["small"]
    assert desk.end("large") == ["+small"]


def test_others_start_beside_what_is_kept() -> None:
    desk = Desk(gpu_node("a", 2), gpu_node("b", 1), clusters=WHOLE, limit=0)
    desk.hold("r", (gpu(), on("a", 0)))
    desk.wait("large", gpu(2))
    assert desk.wait("small", gpu(1)) == ["+small"]
    assert desk.nodes_of("small") == ["b"]
    assert desk.wait("cores", make_demand(1)) == ["+cores"]
    assert desk.wait("another", gpu(1)) == []


def test_who_has_a_claim_may_start_elsewhere_and_what_was_kept_is_free_then() -> None:
    desk = Desk(gpu_node("a", 2), gpu_node("b", 2), clusters=WHOLE, limit=0)
    desk.hold("first", (gpu(), on("a", 0)))
    desk.hold("second", (gpu(), on("b", 0)))
    desk.wait("large", gpu(2))
    assert desk.awaited("large") == {"first"}
    assert desk.wait("small", gpu(1)) == ["+small"]  # on b, beside `second`
    assert desk.wait("another", gpu(1)) == []
    assert desk.end("second", "small") == ["+large", "+another"]
    assert desk.nodes_of("large") == ["b"]


def test_who_stays_within_a_guarantee_comes_before_a_claim_that_goes_beyond() -> None:
    desk = Desk(gpu_node("a", 2), gpu_node("b", 2), limit=0)
    desk.hold("x1", (gpu(), on("a", 0)))
    desk.hold("x2", (gpu(), on("b", 0)))
    assert desk.wait("beyond", gpu(2)) == []  # x is guaranteed two, and holds them
    assert desk.wait("within", gpu(2), vc="y") == []
    assert sorted(desk.claimed()) == ["beyond", "within"]
    assert desk.awaited("beyond") == desk.awaited("within") == {"x1"}
    assert desk.end("x1") == ["+within"]


def test_who_starts_within_a_guarantee_takes_even_what_is_kept_for_a_claim_beyond() -> None:
    desk = Desk(gpu_node("a", 2), gpu_node("b", 2), limit=0)
    desk.hold("x1", (gpu(), on("a", 0)))
    desk.hold("x2", (gpu(), on("b", 0)))
    desk.wait("beyond", gpu(2))
    assert desk.wait("within", gpu(1), vc="y") == ["+within"]
    assert desk.claimed() == ["beyond"]


def test_a_claim_within_a_guarantee_is_respected_by_all() -> None:
    desk = Desk(gpu_node("a", 2), gpu_node("b", 2), limit=0)
    desk.hold("x1", (gpu(), on("a", 0)))
    desk.hold("x2", (gpu(), on("b", 0)))
    desk.wait("within", gpu(2), vc="y")
    # (the two that y is guaranteed are kept: anything else that it gets is borrowed)
    assert desk.wait("small", gpu(1), vc="y") == ["~small"]
    assert desk.nodes_of("small") == ["b"]
    assert desk.wait("more", gpu(1), vc="x") == []


def test_a_claim_whose_jobs_have_ended_without_use_is_made_anew() -> None:
    desk = Desk(gpu_node("a", 2), gpu_node("b", 2), limit=0)
    desk.hold("x1", (gpu(), on("a", 0)))
    desk.hold("x2", (gpu(), on("b", 0)))
    desk.wait("beyond", gpu(2))
    desk.wait("within", gpu(2), vc="y")
    desk.end("x1")
    assert desk.awaited("beyond") == {"x2"}
    assert desk.end("x2") == ["+beyond"]


def test_a_claim_ends_when_its_job_leaves_and_others_have_what_was_kept() -> None:
    desk = Desk(gpu_node(gpus=2), clusters=WHOLE, limit=0)
    desk.hold("r", (gpu(), on("a", 0)))
    desk.wait("large", gpu(2))
    desk.wait("small", gpu(1))
    books = desk.books()
    assert desk.leave("large") == ["+small"]
    assert desk.claimed() == []
    assert desk.end("small") == []
    assert desk.books() != books
    assert desk.dispatcher.ledger.used("x")["gpu:P100"] == 1


def test_a_claim_is_made_anew_when_nodes_change() -> None:
    desk = Desk(gpu_node("a", 2), clusters=WHOLE, limit=0)
    desk.hold("r", (gpu(), on("a", 0)))
    desk.wait("large", gpu(2))
    desk.dispatcher.set_nodes([gpu_node("a", 2), gpu_node("b", 1)])
    assert desk.decide() == []
    assert desk.claimed() == ["large"]
    assert desk.dispatcher.ledger.used("x")["gpu:P100"] == 3
    desk.dispatcher.set_nodes([gpu_node("a", 2), gpu_node("b", 2)])
    assert desk.decide() == ["+large"]
    assert desk.nodes_of("large") == ["b"]


def test_a_claim_ends_where_shares_change_and_leave_no_room_for_it() -> None:
    desk = Desk(gpu_node("a", 4), limit=0)
    desk.hold("r", (gpu(2), on("a", 0, 1)), vc="y")
    desk.wait("large", gpu(3))
    assert desk.claimed() == ["large"]
    desk.dispatcher.set_clusters([VirtualCluster("x", 50, 50), VirtualCluster("y", 50)])
    assert desk.decide() == []
    assert desk.claimed() == []
    assert not desk.dispatcher.ledger.used("x")
    assert desk.wait("small", gpu(2)) == ["+small"]


@pytest.mark.parametrize("capacity", [50, 25])
def test_two_claims_of_one_virtual_cluster_do_not_wait_for_each_other(capacity: float) -> None:
    desk = Desk(
        gpu_node(gpus=4), clusters=[VirtualCluster("x", capacity, 50), VirtualCluster("y", 50)], limit=0
    )
    desk.hold("r", (gpu(2), on("a", 0, 1)))
    desk.wait("first", gpu(2))
    desk.wait("second", gpu(2))
    assert desk.claimed() == ["first", "second"]
    assert desk.end("r") in (["+first"], ["~first"])
    assert desk.end("first") in (["+second"], ["~second"])
    assert desk.end("second") == []
    assert not desk.dispatcher.ledger.used("x")


def test_two_claims_of_one_users_quota_do_not_wait_for_each_other() -> None:
    desk = Desk(gpu_node(gpus=4), clusters=[VirtualCluster("x", 100, gpus_per_user=2)], limit=0)
    desk.hold("r", (gpu(2), on("a", 0, 1)))
    desk.wait("first", gpu(2))
    desk.wait("second", gpu(2), preemptible=False)
    assert desk.claimed() == ["first", "second"]
    assert desk.end("r") == ["+first"]
    assert desk.end("first") == ["+second"]


def test_of_equal_jobs_that_wait_only_the_first_has_a_claim() -> None:
    desk = Desk(gpu_node(gpus=2), clusters=WHOLE, limit=0)
    desk.hold("r", (gpu(2), on("a", 0, 1)))
    desk.queue("first", gpu(2))
    desk.queue("second", gpu(2))
    assert desk.wait("third", gpu(2)) == []
    assert desk.claimed() == ["first"]
    assert desk.leave("first") == []
    assert desk.claimed() == ["second"]
    assert desk.end("r") == ["+second"]
