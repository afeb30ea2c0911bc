from __future__ import annotations

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.preemption import Allowance, JobHolding
from pai_scheduler.cluster.quota import Bound, QuotaAccounting
from pai_scheduler.cluster.resources import Assignment, of_gang
from tests.scheduler.making import make_demand, make_node


def test_a_task_may_run_on_types_of_which_the_share_has_enough_and_more_when_a_job_is_counted_out() -> None:
    nodes = [make_node("a", gpus={"A100": 4}), make_node("b", gpus={"K80": 4})]
    quota = QuotaAccounting(nodes, [VirtualCluster("x", 50), VirtualCluster("y", 50)])
    held, demand = make_demand(gpus=2, gpu_type="K80"), make_demand(gpus=1)
    mine, other = (JobHolding(name, "alice", name, preemptible=True, since=0) for name in ("x", "y"))
    for holding in (mine, other):
        holding.tasks[0] = held, Assignment("b", (0, 1)), of_gang([held])
        quota.book(holding.virtual_cluster, "alice", holding.amounts)
    allowance = Allowance(quota, "x", "alice", of_gang([demand]), Bound.GUARANTEE)
    types = ["A100", "K80"]
    assert allowance.gpu_types(demand, types) == ["A100"]
    assert not allowance.may_gain([other])
    assert allowance.may_gain([other, mine])
    assert not allowance.count(other, 1)
    with allowance.restored():
        assert allowance.count(mine, 1)
        assert allowance.gpu_types(demand, types) == types
        assert allowance.count(mine, -1)
        assert allowance.gpu_types(demand, types) == ["A100"]
        allowance.count(mine, 1)
    assert allowance.gpu_types(demand, types) == ["A100"]
    large = make_demand(gpus=3)
    assert Allowance(quota, "x", "alice", of_gang([large]), Bound.GUARANTEE).gpu_types(large, types) is None
