from __future__ import annotations

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.feasibility import Available, available
from pai_scheduler.cluster.node import NodeState
from tests.scheduler.cluster.harness import Harness, gpu, gpu_node, on
from tests.scheduler.making import make_node


def found(harness: Harness, *, preemptible: bool = False, vc: str = "x", user: str = "alice") -> Available:
    before = harness.scheduler_state()
    result = available(harness.state, user, vc, preemptible=preemptible)
    assert harness.scheduler_state() == before
    return result


def gpus(amounts: dict[str, int] | object) -> dict[str, int]:
    assert isinstance(amounts, dict)
    return {key.removeprefix("gpu:"): count for key, count in amounts.items() if key.startswith("gpu:")}


def test_who_may_not_borrow_has_the_share_of_the_virtual_cluster_and_no_more() -> None:
    harness = Harness(gpu_node("a", 4), gpu_node("b", 0, K80=2))
    own = found(harness)
    assert (gpus(own.free), gpus(own.most)) == ({"P100": 2, "K80": 1}, {"P100": 2, "K80": 1})
    assert (own.free["cpus"], own.most["cpus"], own.free_on_one["cpus"]) == (100, 100, 100)
    harness.hold("mine", (gpu(1), on("a", 0)))
    assert gpus(found(harness).free) == {"P100": 1, "K80": 1}
    assert gpus(found(harness, preemptible=True).free) == {"P100": 3, "K80": 2}


def test_what_others_hold_is_not_free_though_it_is_within_the_share() -> None:
    harness = Harness(gpu_node("a", 4))
    harness.hold("borrows", (gpu(3), on("a", 0, 1, 2)), vc="y")
    assert gpus(found(harness).free) == {"P100": 1}
    assert gpus(found(harness).most) == {"P100": 2}


def test_one_machine_may_have_less_than_all_together() -> None:
    harness = Harness(gpu_node("a", 2), gpu_node("b", 2), clusters=[VirtualCluster("x", 100)])
    harness.hold("runs", (gpu(1), on("a", 0)))
    assert gpus(found(harness).free) == {"P100": 3}
    assert gpus(found(harness).free_on_one) == {"P100": 2}
    assert gpus(found(harness).most_on_one) == {"P100": 2}


def test_a_users_quota_is_all_that_the_user_can_have() -> None:
    harness = Harness(gpu_node("a", 4), clusters=[VirtualCluster("x", 100, gpus_per_user=3)])
    harness.hold("mine", (gpu(2), on("a", 0, 1)))
    assert gpus(found(harness).free) == {"P100": 1}
    assert gpus(found(harness, user="bob").free) == {"P100": 2}
    assert gpus(found(harness).most) == {"P100": 3}


def test_a_type_of_which_nothing_is_free_is_named_all_the_same() -> None:
    harness = Harness(gpu_node("a", 2), clusters=[VirtualCluster("x", 100)])
    harness.hold("runs", (gpu(2), on("a", 0, 1)))
    assert gpus(found(harness).free) == gpus(found(harness).free_on_one) == {"P100": 0}


def test_what_is_kept_for_a_waiting_job_is_not_free() -> None:
    harness = Harness(gpu_node("a", 4), clusters=[VirtualCluster("x", 100)], limit=0)
    harness.hold("runs", (gpu(1), on("a", 0)))
    harness.wait("large", gpu(4))
    assert harness.reserved() == ["large"]
    assert gpus(found(harness).free) == {"P100": 0}


def test_nothing_is_free_in_a_stopped_virtual_cluster_nor_on_a_machine_that_takes_nothing() -> None:
    stopped = Harness(gpu_node("a", 4), clusters=[VirtualCluster("x", 100, stopped=True)])
    assert gpus(found(stopped).free) == {"P100": 0}
    drained = Harness(make_node("a", gpus={"P100": 2}, state=NodeState.DRAINED), gpu_node("b", 0))
    assert gpus(found(drained).free) == {}
