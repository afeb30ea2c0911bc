from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import NodeState
from pai_scheduler.cluster.quota import Bound, QuotaAccounting, QuotaViolation
from tests.scheduler.making import make_node

GUARANTEE, MAXIMUM = Bound.GUARANTEE, Bound.MAXIMUM
HALVES = (VirtualCluster("x", 50, 75), VirtualCluster("y", 50))


def ledger_of(
    *clusters: VirtualCluster, gpus: Mapping[str, int] | None = None, **node: Any
) -> QuotaAccounting:
    node = {"cpus": 10, "memory_mb": 1000, "storage_gb": 100, **node}
    return QuotaAccounting([make_node(gpus=gpus or {"P100": 4, "K80": 2}, **node)], clusters or HALVES)


# -- shares


def test_a_share_of_each_resource_is_rounded_down_and_types_of_gpu_are_apart() -> None:
    quota_accounting = ledger_of(VirtualCluster("x", 33.4, 67), gpus={"P100": 4, "K80": 2})
    assert quota_accounting.limits("x", GUARANTEE) == {
        "cpus": 3, "memoryMB": 334, "storageGB": 33, "gpu:P100": 1, "gpu:K80": 0
    }  # fmt: skip
    assert quota_accounting.limits("x", MAXIMUM) == {
        "cpus": 6, "memoryMB": 670, "storageGB": 67, "gpu:P100": 2, "gpu:K80": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("total", "share", "part"), [(3000, 33.3, 999), (1500, 66.6, 999), (3000, 33.2, 996)]
)
def test_binary_fractions_take_nothing_from_a_decimal_share(total: int, share: float, part: int) -> None:
    limits = ledger_of(VirtualCluster("x", share), memory_mb=total).limits("x", GUARANTEE)
    assert limits is not None
    assert limits["memoryMB"] == part


def test_a_node_that_is_ill_counts_in_the_whole() -> None:
    nodes = [make_node("a", 8), make_node("b", 8, state=NodeState.LOST)]
    limits = QuotaAccounting(nodes, HALVES).limits("x", GUARANTEE)
    assert limits is not None
    assert limits["cpus"] == 8


def test_a_share_of_a_hundred_per_cent_is_no_limit() -> None:
    quota_accounting = ledger_of(VirtualCluster("x", 100))
    asked = {"cpus": 99, "gpu:A100": 99, "gpu:": 99}
    quota_accounting.book("x", "alice", asked)
    for bound in Bound:
        assert quota_accounting.limits("x", bound) is None
        assert quota_accounting.gpu_room("x", bound) is None
        assert quota_accounting.violation("x", "alice", asked, bound) is None
        assert quota_accounting.never_within("x", "alice", asked, bound) is None
    assert not quota_accounting.is_over_guarantee("x")


def test_a_share_just_below_a_hundred_is_a_limit() -> None:
    quota_accounting = ledger_of(VirtualCluster("x", 99.9))
    assert quota_accounting.violation("x", "alice", {"cpus": 10}, GUARANTEE) is not None
    assert quota_accounting.violation("x", "alice", {"cpus": 10}, MAXIMUM) is None


def test_what_is_asked_comes_on_top_of_what_is_used_up_to_the_limit_and_not_beyond() -> None:
    quota_accounting = ledger_of()
    quota_accounting.book("x", "alice", {"cpus": 3, "gpu:P100": 1})
    assert quota_accounting.violation("x", "alice", {"cpus": 2, "gpu:P100": 1}, GUARANTEE) is None
    assert quota_accounting.violation("x", "alice", {"cpus": 3}, GUARANTEE) == QuotaViolation(
        "x", GUARANTEE, "cpus", 3, 3, 5
    )
    assert quota_accounting.violation("x", "bert", {"gpu:P100": 2}, GUARANTEE) == QuotaViolation(
        "x", GUARANTEE, "gpu:P100", 2, 1, 2
    )
    assert quota_accounting.violation("x", "alice", {"cpus": 4}, MAXIMUM) is None
    assert quota_accounting.violation("x", "alice", {"cpus": 5}, MAXIMUM) == QuotaViolation(
        "x", MAXIMUM, "cpus", 5, 3, 7
    )
    assert quota_accounting.violation("y", "alice", {"cpus": 5, "gpu:P100": 2}, GUARANTEE) is None


def test_a_share_of_a_resource_that_no_node_has_is_zero() -> None:
    quota_accounting = ledger_of()
    assert quota_accounting.violation("x", "alice", {"gpu:A100": 1}, MAXIMUM) == QuotaViolation(
        "x", MAXIMUM, "gpu:A100", 1, 0, 0
    )
    assert quota_accounting.violation("x", "alice", {"gpu:A100": 0, "cpus": 1}, MAXIMUM) is None


def test_a_resource_that_is_not_asked_for_may_be_used_beyond_its_limit() -> None:
    quota_accounting = ledger_of()
    quota_accounting.book("x", "alice", {"memoryMB": 900})
    assert quota_accounting.violation("x", "alice", {"cpus": 1, "memoryMB": 0}, GUARANTEE) is None


def test_what_would_never_be_within_is_found_however_little_is_used() -> None:
    quota_accounting = ledger_of()
    quota_accounting.book("x", "alice", {"cpus": 7})
    assert quota_accounting.never_within("x", "alice", {"cpus": 7}, MAXIMUM) is None
    assert quota_accounting.never_within("x", "alice", {"cpus": 8}, MAXIMUM) == QuotaViolation(
        "x", MAXIMUM, "cpus", 8, 0, 7
    )


def test_a_virtual_cluster_that_is_gone_may_hold_nothing() -> None:
    quota_accounting = ledger_of()
    assert quota_accounting.limits("gone", MAXIMUM) == {}
    assert quota_accounting.gpu_room("gone", MAXIMUM) == {}
    assert quota_accounting.violation("gone", "alice", {"cpus": 1}, MAXIMUM) == QuotaViolation(
        "gone", MAXIMUM, "cpus", 1, 0, 0
    )
    assert quota_accounting.violation("gone", "alice", {"gpu:": 1}, MAXIMUM) == QuotaViolation(
        "gone", MAXIMUM, "gpu:", 1, 0, 0
    )
    assert not quota_accounting.is_over_guarantee("gone")
    quota_accounting.book("gone", "alice", {"cpus": 1})
    assert quota_accounting.is_over_guarantee("gone")


def test_nothing_is_left_for_a_stopped_virtual_cluster() -> None:
    quota_accounting = ledger_of(VirtualCluster("x", 100, stopped=True))
    quota_accounting.book("x", "alice", {"cpus": 2})
    assert quota_accounting.violation("x", "alice", {"cpus": 1}, MAXIMUM) == QuotaViolation(
        "x", MAXIMUM, "cpus", 1, 2, 0
    )
    assert quota_accounting.never_within("x", "alice", {"cpus": 1}, MAXIMUM) is None


# -- GPUs of any type


def test_gpus_of_any_type_may_be_taken_up_to_what_is_left_of_all_types_together() -> None:
    quota_accounting = ledger_of()  # x is guaranteed 2 P100 and 1 K80
    assert quota_accounting.violation("x", "alice", {"gpu:": 3}, GUARANTEE) is None
    assert quota_accounting.violation("x", "alice", {"gpu:": 4}, GUARANTEE) == QuotaViolation(
        "x", GUARANTEE, "gpu:", 4, 0, 3
    )
    quota_accounting.book("x", "alice", {"gpu:P100": 1, "cpus": 1})
    assert quota_accounting.violation("x", "alice", {"gpu:": 3}, GUARANTEE) == QuotaViolation(
        "x", GUARANTEE, "gpu:", 3, 1, 3
    )


def test_what_is_borrowed_of_one_type_takes_nothing_from_what_is_guaranteed_of_another() -> None:
    quota_accounting = ledger_of()
    quota_accounting.book("x", "alice", {"gpu:P100": 4})
    assert quota_accounting.violation("x", "alice", {"gpu:": 1}, GUARANTEE) is None
    assert quota_accounting.violation("x", "alice", {"gpu:": 2}, GUARANTEE) == QuotaViolation(
        "x", GUARANTEE, "gpu:", 2, 2, 3
    )


def test_the_room_on_each_type_is_what_is_left_of_its_limit_and_never_negative() -> None:
    quota_accounting = ledger_of()
    quota_accounting.book("x", "alice", {"gpu:P100": 3, "cpus": 4})
    assert quota_accounting.gpu_room("x", GUARANTEE) == {"P100": 0, "K80": 1}
    assert quota_accounting.gpu_room("x", MAXIMUM) == {"P100": 0, "K80": 1}
    assert quota_accounting.gpu_room("x", GUARANTEE, empty=True) == {"P100": 2, "K80": 1}


# -- quotas


def test_a_users_quota_counts_gpus_of_all_types_in_one_virtual_cluster() -> None:
    quota_accounting = ledger_of(
        VirtualCluster("x", 50, gpus_per_user=2), VirtualCluster("y", 50, gpus_per_user=2)
    )
    quota_accounting.book("x", "alice", {"gpu:P100": 1, "cpus": 5})
    assert quota_accounting.violation("x", "alice", {"gpu:K80": 1}, GUARANTEE) is None
    assert quota_accounting.violation("x", "alice", {"gpu:K80": 1, "gpu:P100": 1}, MAXIMUM) == QuotaViolation(
        "x", MAXIMUM, "gpu:", 2, 1, 2, "alice"
    )
    assert quota_accounting.violation("x", "bert", {"gpu:K80": 1, "gpu:P100": 1}, MAXIMUM) is None
    assert quota_accounting.violation("y", "alice", {"gpu:K80": 1, "gpu:P100": 1}, GUARANTEE) is None


def test_a_used_up_gpu_quota_still_allows_jobs_without_gpus() -> None:
    quota_accounting = ledger_of(VirtualCluster("x", 100, gpus_per_user=0))
    assert quota_accounting.violation("x", "alice", {"cpus": 1}, GUARANTEE) is None
    assert quota_accounting.violation("x", "alice", {"cpus": 1, "gpu:": 1}, GUARANTEE) == QuotaViolation(
        "x", GUARANTEE, "gpu:", 1, 0, 0, "alice"
    )


def test_a_user_beyond_a_lowered_gpu_quota_may_still_run_jobs_without_gpus() -> None:
    quota_accounting = ledger_of(VirtualCluster("x", 100, gpus_per_user=1))
    quota_accounting.book("x", "alice", {"gpu:P100": 2})
    assert quota_accounting.violation("x", "alice", {"cpus": 1}, GUARANTEE) is None


def test_a_quota_is_named_before_the_share_and_for_ever_where_it_is_for_ever() -> None:
    quota_accounting = ledger_of(VirtualCluster("x", 50, gpus_per_user=2))
    quota_accounting.book("x", "alice", {"gpu:P100": 2})
    violation = quota_accounting.violation("x", "alice", {"gpu:P100": 1}, GUARANTEE)
    assert violation is not None
    assert violation.user == "alice"
    assert quota_accounting.never_within("x", "alice", {"gpu:P100": 2}, GUARANTEE) is None
    assert quota_accounting.never_within("x", "alice", {"gpu:P100": 3}, GUARANTEE) == QuotaViolation(
        "x", GUARANTEE, "gpu:", 3, 0, 2, "alice"
    )


# -- accounts


def test_what_is_unbooked_leaves_no_trace() -> None:
    quota_accounting = ledger_of(VirtualCluster("x", 50, gpus_per_user=3))
    quota_accounting.book("x", "alice", {"cpus": 2, "gpu:P100": 1})
    before = dict(quota_accounting.used("x"))
    quota_accounting.book("x", "alice", {"cpus": 1, "gpu:K80": 2})
    quota_accounting.unbook("x", "alice", {"cpus": 1, "gpu:K80": 2})
    assert quota_accounting.used("x") == before == {"cpus": 2, "gpu:P100": 1}
    assert quota_accounting.violation("x", "alice", {"gpu:": 2}, MAXIMUM) is None
    quota_accounting.unbook("x", "alice", {"cpus": 2, "gpu:P100": 1})
    assert not quota_accounting.used("x")
    assert not quota_accounting.used("y")


def test_a_virtual_cluster_at_exactly_its_guarantee_borrows_nothing() -> None:
    quota_accounting = ledger_of()
    quota_accounting.book("x", "alice", {"cpus": 5, "gpu:P100": 2})
    assert not quota_accounting.is_over_guarantee("x")
    quota_accounting.book("x", "alice", {"gpu:K80": 2})
    assert quota_accounting.is_over_guarantee("x")
    assert not quota_accounting.is_over_guarantee("y")


def test_holding_what_no_node_has_any_more_is_borrowing() -> None:
    quota_accounting = ledger_of()
    quota_accounting.book("x", "alice", {"gpu:gone": 1})
    assert quota_accounting.is_over_guarantee("x")


def test_shares_follow_the_nodes_and_what_administrators_say() -> None:
    quota_accounting = ledger_of()
    assert quota_accounting.violation("x", "alice", {"cpus": 6}, GUARANTEE) is not None
    quota_accounting.set_nodes([make_node(cpus=12)])
    assert quota_accounting.violation("x", "alice", {"cpus": 6}, GUARANTEE) is None
    quota_accounting.set_clusters([VirtualCluster("x", 25)])
    assert quota_accounting.violation("x", "alice", {"cpus": 4}, GUARANTEE) == QuotaViolation(
        "x", GUARANTEE, "cpus", 4, 0, 3
    )
    assert quota_accounting.clusters.keys() == {"x"}
