from __future__ import annotations

from pai_scheduler.cluster.resources import gang_of, role_demand
from pai_scheduler.job.spec import PortRequest
from tests.scheduler.making import make_role, make_spec


def test_a_gang_has_one_demand_for_each_task_in_the_order_of_roles() -> None:
    spec = make_spec(make_role("ps", 2, cpus=1), make_role("worker", 3, cpus=4))
    assert [demand.cpus for demand in gang_of(spec)] == [1, 1, 4, 4, 4]


def test_a_demand_has_everything_that_the_role_asks_for() -> None:
    ports = [{"label": "web", "beginAt": 8080, "portNumber": 2}]
    spec = make_spec(make_role(cpus=2, memory_mb=300, gpus=4, storage_gb=7, ports=ports), gpuType="P100")
    demand = role_demand(spec, spec.role("main"))
    assert (demand.cpus, demand.memory_mb, demand.gpus, demand.gpu_type) == (2, 300, 4, "P100")
    assert demand.storage_gb == 7
    assert PortRequest("web", 8080, 2) in demand.ports


def test_every_task_asks_for_the_ports_that_every_role_has() -> None:
    spec = make_spec()
    assert {port.label for port in role_demand(spec, spec.role("main")).ports} == {"http", "ssh"}


def test_a_role_that_says_nothing_of_storage_reserves_the_clusters_default_and_others_what_they_say() -> None:
    silent = make_role("silent")
    del silent["storageGB"]
    spec = make_spec(silent, make_role("none", storage_gb=0), make_role("much", storage_gb=50))
    assert [demand.storage_gb for demand in gang_of(spec, 3)] == [3, 0, 50]
    assert [demand.storage_gb for demand in gang_of(spec)] == [1, 0, 50]
    assert role_demand(spec, spec.role("silent"), 3) == gang_of(spec, 3)[0]


def test_roles_without_gpus_do_not_care_for_the_jobs_gpu_type() -> None:
    spec = make_spec(make_role("ps"), make_role("worker", gpus=1), gpuType="P100")
    assert [demand.gpu_type for demand in gang_of(spec)] == [None, "P100"]


def test_only_a_job_that_asks_for_it_has_the_tasks_of_each_role_spread() -> None:
    roles = make_role("ps", 2), make_role("worker", 2)
    for extras in ({}, {"placement": "near"}):
        assert {demand.spread for demand in gang_of(make_spec(*roles, extras=extras))} == {""}
    spread = make_spec(*roles, extras={"placement": "spread"})
    assert [demand.spread for demand in gang_of(spread)] == ["ps", "ps", "worker", "worker"]
    assert gang_of(make_spec(extras={"placement": "spread"})) == gang_of(make_spec())


def test_two_tasks_that_are_to_be_spread_are_kept_apart_and_one_alone_is_not() -> None:
    extras = {"placement": "spread"}
    pair = make_spec(make_role("worker", 2), extras=extras)
    alone = make_spec(make_role("worker", 1), extras=extras)
    assert [demand.spread for demand in gang_of(pair)] == ["worker", "worker"]
    assert role_demand(pair, pair.role("worker")).spread == "worker"
    assert role_demand(alone, alone.role("worker")).spread == ""
