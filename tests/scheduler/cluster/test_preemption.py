from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.preemption import JobHolding, PreemptionPlanner
from pai_scheduler.cluster.quota import Bound, QuotaAccounting
from pai_scheduler.cluster.resources import Assignment, Demand, of_task
from pai_scheduler.job.spec import PortRequest
from tests.scheduler.cluster.harness import port
from tests.scheduler.making import make_demand, make_node

NODES = [make_node("a", cpus=20, gpus={"P100": 4}), make_node("b", cpus=20)]


class Table:
    """A cluster, its accounts and what jobs hold of them."""

    def __init__(self) -> None:
        self.cluster = Cluster(NODES, shares_host_ports=True)
        self.quota_accounting = QuotaAccounting(NODES, [VirtualCluster("x", 50, gpus_per_user=2)])
        self.what_if = PreemptionPlanner(self.cluster, self.quota_accounting)
        self.nodes = {node.name: node for node in NODES}

    def hold(self, job_id: str, *tasks: tuple[Demand, Assignment], vc: str = "x") -> JobHolding:
        holding = JobHolding(job_id, "alice", vc, preemptible=True, since=0)
        for place, (demand, assignment) in enumerate(tasks):
            amounts = of_task(demand, assignment, self.nodes)
            holding.tasks[place] = (demand, assignment, amounts)
            self.cluster.occupy(demand, assignment)
            self.quota_accounting.book(vc, "alice", amounts)
        return holding

    def cores(self, job_id: str, count: int, node: str = "a") -> JobHolding:
        return self.hold(job_id, (make_demand(count), Assignment(node)))

    def free(self, count: int, node: str = "a") -> Callable[[], bool]:
        return lambda: self.cluster.uses[node].cpus >= count

    def state(self) -> object:
        return (
            [
                (use.cpus, use.memory_mb, use.storage_gb, dict(use.gpus), set(use.ports))
                for use in self.cluster.uses.values()
            ],
            dict(self.quota_accounting.used("x")),
            self.quota_accounting.violation("x", "alice", {"gpu:": 2}, Bound.MAXIMUM),
        )

    def needed(self, fits: Callable[[], bool], *ends: JobHolding) -> list[str] | None:
        """Ask, and see that everything is as it was."""
        before = self.state()
        found = self.what_if.needed(fits, ends)
        assert self.state() == before
        return None if found is None else [holding.job_id for holding in found]


def test_where_it_fits_already_nothing_has_to_end() -> None:
    table = Table()
    assert table.needed(table.free(19), table.cores("a", 1)) == []


def test_only_as_many_jobs_are_stopped_as_needed_the_preferred_first() -> None:
    table = Table()
    ends = [table.cores(name, 2) for name in "abcdefgh"]  # 4 cores are free
    assert table.needed(table.free(6), *ends) == ["a"]
    assert table.needed(table.free(7), *ends) == ["a", "b"]
    assert table.needed(table.free(10), *ends) == ["a", "b", "c"]
    assert table.needed(table.free(12), *ends) == ["a", "b", "c", "d"]
    assert table.needed(table.free(20), *ends) == list("abcdefgh")


def test_a_preferred_victim_that_does_not_help_is_not_stopped() -> None:
    table = Table()
    ends = [table.cores("elsewhere", 9, "b"), table.cores("small", 1), table.cores("large", 8)]
    assert table.needed(table.free(19), *ends) == ["large"]
    assert table.needed(table.free(20), *ends) == ["small", "large"]


def test_those_found_are_in_the_order_of_preference() -> None:
    table = Table()
    ends = [table.cores(name, size) for name, size in (("a", 1), ("b", 9), ("c", 1), ("d", 9))]
    assert table.needed(table.free(18), *ends) == ["b", "d"]


def test_where_the_end_of_all_of_them_does_not_do_none_is_named() -> None:
    table = Table()
    table.cores("stays", 1)
    assert table.needed(table.free(20), *(table.cores(name, 5) for name in "abc")) is None
    assert table.needed(table.free(20)) is None


def test_all_tasks_of_a_job_end_with_it_on_all_nodes() -> None:
    table = Table()
    one, other = (make_demand(15), Assignment("a")), (make_demand(15), Assignment("b"))
    gang = table.hold("gang", one, other)
    assert table.needed(lambda: table.free(20)() and table.free(20, "b")(), gang) == ["gang"]


def test_what_a_job_holds_is_off_the_accounts_too() -> None:
    table = Table()
    demand = make_demand(1, gpus=2)
    holding = table.hold("gpus", (demand, Assignment("a", (1, 3))))
    other = table.hold("cores", (make_demand(1), Assignment("a")), vc="elsewhere")

    def within() -> bool:
        return table.quota_accounting.violation("x", "alice", {"gpu:P100": 2}, Bound.MAXIMUM) is None

    assert table.needed(within, other, holding) == ["gpus"]


def test_gpus_and_ports_are_put_back_exactly() -> None:
    table = Table()
    demand = make_demand(3, 500, gpus=2, storage_gb=7, ports=[port(8080)])
    holding = table.hold("j", (demand, Assignment("a", (0, 2), {"web": (8080,)})))
    seen = []

    def fits() -> bool:
        use = table.cluster.uses["a"]
        seen.append((use.cpus, use.storage_gb, list(use.gpus["P100"]), 8080 in use.ports))
        return False

    assert table.needed(fits, holding) is None
    assert seen == [(17, 993, [1, 3], True), (20, 1000, [0, 1, 2, 3], False)]


def test_the_planner_restores_everything_even_when_it_fails() -> None:
    table = Table()
    ends = [table.cores(name, 5) for name in "abc"]
    before = table.state()

    def fits() -> bool:
        if table.free(15)():
            raise ArithmeticError
        return False

    with pytest.raises(ArithmeticError):
        table.what_if.needed(fits, ends)
    assert table.state() == before


@given(st.lists(st.integers(1, 3), min_size=1, max_size=5), st.integers(1, 14))
def test_the_last_look_that_succeeds_is_the_one_at_exactly_those_found(sizes: list[int], wanted: int) -> None:
    table = Table()
    ends = [table.cores(f"j{number}", size) for number, size in enumerate(sizes)]
    before = table.cluster.uses["a"].cpus
    seen: list[int] = []

    def fits() -> bool:
        if table.cluster.uses["a"].cpus < wanted:
            return False
        seen.append(table.cluster.uses["a"].cpus)
        return True

    lifted: list[int] = []
    needed = table.what_if.needed(fits, ends, lambda: lifted.append(table.cluster.uses["a"].cpus))
    if needed is not None:
        freed = sum(demand.cpus for holding in needed for demand, _, _ in holding.tasks.values())
        assert seen[-1] == before + freed
        assert lifted == [before + freed]
    else:
        assert lifted == []


@given(st.lists(st.integers(1, 6), min_size=1, max_size=9), st.integers(1, 60))
def test_none_of_those_found_can_be_left_out(sizes: list[int], wanted: int) -> None:
    node = make_node(cpus=60)
    cluster = Cluster([node])
    quota_accounting = QuotaAccounting([node], [VirtualCluster("x", 100)])
    ends = []
    for number, size in enumerate(sizes):
        demand, assignment = make_demand(size), Assignment("a")
        cluster.occupy(demand, assignment)
        quota_accounting.book("x", "alice", {"cpus": size})
        holding = JobHolding(str(number), "alice", "x", preemptible=True, since=0)
        holding.tasks[0] = (demand, assignment, {"cpus": size})
        ends.append(holding)
    free = 60 - sum(sizes)
    found = PreemptionPlanner(cluster, quota_accounting).needed(
        lambda: cluster.uses["a"].cpus >= wanted, ends
    )
    assert found is not None
    freed = [sizes[int(holding.job_id)] for holding in found]
    assert free + sum(freed) >= wanted
    assert all(free + sum(freed) - one < wanted for one in freed)


def test_what_a_gang_holds_is_the_sum_of_its_tasks() -> None:
    holding = JobHolding("j", "alice", "x", preemptible=True, since=0)
    worker, server = {"cpus": 2, "gpu:K80": 1}, {"cpus": 1}
    for place, amounts in enumerate((worker, worker, server, worker)):
        holding.tasks[place] = (make_demand(), Assignment("a"), amounts)
    assert holding.amounts == {"cpus": 7, "gpu:K80": 3}


def test_tasks_on_one_node_are_lifted_and_put_back_together() -> None:
    cluster = Cluster([make_node(cpus=8, gpus={"K80": 4}), make_node("b", cpus=8)], shares_host_ports=True)
    quota_accounting = QuotaAccounting(cluster.nodes, [VirtualCluster("x", 100)])
    demand = make_demand(2, gpus=1, ports=[PortRequest("web", 0, 1)])
    placed = cluster.place([demand] * 3)
    assert placed is not None
    holding = JobHolding("j", "alice", "x", preemptible=True, since=0)
    for place, assignment in enumerate(placed):
        holding.tasks[place] = (demand, assignment, {"cpus": 2, "gpu:K80": 1})
        quota_accounting.book("x", "alice", {"cpus": 2, "gpu:K80": 1})

    def seen() -> tuple[object, ...]:
        use = cluster.uses["a"]
        free = {gpu_type: list(indices) for gpu_type, indices in use.gpus.items()}
        return use.cpus, use.memory_mb, free, set(use.ports), dict(quota_accounting.used("x"))

    before, lifted = seen(), []
    found = PreemptionPlanner(cluster, quota_accounting).needed(
        lambda: cluster.uses["a"].cpus == 8, [holding], lambda: lifted.append(seen())
    )
    assert found == [holding]
    assert lifted == [(8, 10_000, {"K80": [0, 1, 2, 3]}, set(), {})]
    assert seen() == before
