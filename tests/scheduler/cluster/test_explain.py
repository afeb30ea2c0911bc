from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.explain import missing, never_fits
from pai_scheduler.cluster.node import Node
from pai_scheduler.cluster.placement import Cluster, Demand
from pai_scheduler.job.spec import PortRequest

from ..making import make_demand, make_node
from .test_placement import DEMANDS, NODES, could_be_placed

LAB = [make_node("a", gpus={"P100": 2}), make_node("b", cpus=4, memory_mb=5000, gpus={"K80": 1})]


@pytest.mark.parametrize(
    ("gang", "words"),
    [
        ([make_demand(gpus=1, gpu_type="V100")], "there is no GPU of type V100; there are: K80, P100."),
        ([make_demand(gpus=3)], "a task asks for 3 × GPU, the largest node has 2."),
        ([make_demand(gpus=2, gpu_type="K80")], "a task asks for 2 × K80, the largest node has 1."),
        ([make_demand(cpus=9)], "a task asks for 9 CPUs, the largest node has 8."),
        ([make_demand(cpus=5, gpus=1, gpu_type="K80")], "a task asks for 5 CPUs, the largest node has 4."),
        ([make_demand(memory_mb=10_001)], "a task asks for 10001 MB of memory, the largest node has 10000."),
        ([make_demand(storage_gb=1001)], "a task asks for 1001 GB of storage, the largest node has 1000."),
        ([make_demand(gpus=2)] * 2, "4 × GPU are asked for, 3 free (a: 2, b: 1)."),
        ([make_demand(cpus=4)] * 4, "16 CPUs are asked for, 12 are free."),
        ([make_demand(memory_mb=5000)] * 4, "20000 MB of memory are asked for, 15000 are free."),
        ([make_demand(storage_gb=900)] * 3, "2700 GB of storage are asked for, 2000 are free."),
        ([make_demand(cpus=5)] * 2, "even the empty nodes cannot hold all of its tasks together."),
    ],
)
def test_what_never_fits_is_said_with_what_is_asked_for_and_what_there_is(
    gang: list[Demand], words: str
) -> None:
    reason = never_fits(Cluster(LAB), gang)
    assert reason is not None
    assert str(reason) == f"Never fits at present: {words}"


def test_a_cluster_without_nodes_says_so() -> None:
    assert str(never_fits(Cluster([]), [make_demand()])) == (
        "Never fits at present: the cluster has no nodes."
    )


def test_a_cluster_without_a_healthy_node_says_so() -> None:
    reason = never_fits(Cluster([make_node(healthy=False)]), [make_demand()])
    assert str(reason) == "Never fits at present: no node is healthy."


def test_a_cluster_without_gpus_says_that_there_are_none() -> None:
    reason = never_fits(Cluster([make_node()]), [make_demand(gpus=1, gpu_type="P100")])
    assert str(reason) == "Never fits at present: there is no GPU of type P100; there are: none."


def test_what_is_only_taken_now_fits_some_time() -> None:
    cluster = Cluster(LAB)
    assert cluster.place([make_demand(cpus=8)]) is not None
    assert never_fits(cluster, [make_demand(cpus=8)]) is None


@pytest.mark.parametrize(
    ("running", "gang", "words"),
    [
        ([make_demand(gpus=2)], [make_demand(gpus=2)], "2 × GPU are asked for, 1 free (b: 1)."),
        (
            [make_demand(gpus=1, gpu_type="P100")],
            [make_demand(gpus=2, gpu_type="P100")],
            "2 × P100 are asked for, 1 free (a: 1).",
        ),
        (
            [make_demand(gpus=2, gpu_type="P100")],
            [make_demand(gpus=1, gpu_type="P100")],
            "1 × P100 are asked for, none is free.",
        ),
        ([make_demand(cpus=8), make_demand(cpus=4)], [make_demand()], "1 CPUs are asked for, 0 are free."),
        (
            [make_demand(cpus=6), make_demand(cpus=1)],
            [make_demand(cpus=4)],
            "enough is free in all, but no node has 4 CPUs and 100 MB at once.",
        ),
        (
            [make_demand(gpus=1, gpu_type="P100", cpus=8)],
            [make_demand(gpus=1, gpu_type="P100", cpus=2)],
            "enough is free in all, but no node has 1 × P100, 2 CPUs and 100 MB at once.",
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


def test_a_job_that_waits_for_its_fixed_port_is_told_so() -> None:
    cluster = Cluster([make_node()], shares_host_ports=True)
    gang = [make_demand(ports=[PortRequest("web", 8080, 2)])]
    assert cluster.place(gang) is not None
    reason = missing(cluster, gang)
    assert str(reason) == "its fixed ports (8080, 8081) are taken on the nodes that have room."


@given(NODES, DEMANDS, st.integers(1, 3), st.booleans())
def test_a_job_of_one_role_is_told_never_exactly_when_that_is_so(
    nodes: list[Node], demand: Demand, count: int, shares_host_ports: bool
) -> None:
    gang = [demand] * count
    cluster = Cluster(nodes, shares_host_ports=shares_host_ports)
    # what runs now changes nothing about it
    cluster.place([make_demand()])
    possible = could_be_placed(nodes, gang, shares_host_ports=shares_host_ports)
    assert (never_fits(cluster, gang) is None) == possible


@given(NODES, st.lists(DEMANDS, min_size=1, max_size=3), st.lists(DEMANDS, max_size=2))
def test_whatever_does_not_fit_there_is_a_sentence_about_it(
    nodes: list[Node], gang: list[Demand], running: list[Demand]
) -> None:
    cluster = Cluster(nodes, shares_host_ports=True)
    cluster.place(running)
    if not cluster.fits(gang):
        assert str(never_fits(cluster, gang) or missing(cluster, gang)).endswith(".")
