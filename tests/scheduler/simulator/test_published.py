"""Traces and lists of machines are read as they were published."""

from __future__ import annotations

import pytest

from pai_scheduler.simulator.traces import TraceError, TraceRole, read_any_trace, read_nodes
from tests.scheduler.making import make_node

MURI = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,priority\n"
)
ALIBABA = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
NODES = [make_node("a", gpus={"t": 8})]


def test_a_job_of_muri_runs_as_long_as_its_iterations_take() -> None:
    [job] = read_any_trace([MURI, "7,4,1500,1000,dqn,128,99,99,490,1\n"], NODES)
    assert (job.name, job.submitted, job.run_ms) == ("7", 1500, round(1000 * 490 * 1.015))
    assert job.roles == (TraceRole(1, 4),)


@pytest.mark.parametrize(
    ("gpus", "roles"),
    [
        (8, (TraceRole(1, 8),)),
        (32, (TraceRole(4, 8),)),
        (20, (TraceRole(2, 8), TraceRole(1, 4))),
    ],
)
def test_a_job_larger_than_a_machine_is_split(gpus: int, roles: tuple[TraceRole, ...]) -> None:
    [job] = read_any_trace([MURI, f"0,{gpus},0,1,dqn,1,1,1,1,1\n"], NODES)
    assert job.roles == roles


def test_a_task_of_alibaba_takes_whole_gpus_and_cores() -> None:
    [shares, waits] = read_any_trace(
        [
            ALIBABA,
            "p0,6500,12288,1,460,,LS,Running,100,500,120\n",
            "p1,1000,100,0,0,P100|T4,BE,Pending,200,300,\n",
        ],
        NODES,
    )
    assert (shares.name, shares.submitted, shares.run_ms) == ("p0", 100_000, 380_000)
    assert (shares.roles, shares.gpu_type) == ((TraceRole(1, 1, 7, 12288),), None)
    assert (waits.run_ms, waits.gpu_type) == (100_000, None)


def test_a_list_of_alibabas_machines_is_a_cluster() -> None:
    nodes = read_nodes(["sn,cpu_milli,memory_mib,gpu,model\n", "n0,64000,262144,2,P100\n"])
    assert nodes is not None
    [node] = nodes
    assert (node.name, node.cpus, node.memory_mb, dict(node.gpu_counts)) == ("n0", 64, 262144, {"P100": 2})
    assert node.ready


def test_a_cluster_file_is_no_list_of_machines() -> None:
    assert read_nodes(["nodes:\n", "- {name: a}\n"]) is None
    assert read_nodes([]) is None


def test_any_other_file_must_have_the_columns_of_a_trace() -> None:
    assert len(read_any_trace(["submitSeconds,runSeconds\n", "0,1\n"], NODES)) == 1
    with pytest.raises(TraceError, match="it has no column submitSeconds"):
        read_any_trace(["x,y\n", "0,1\n"], NODES)


def test_a_wrong_cell_is_named_by_its_published_name() -> None:
    with pytest.raises(TraceError, match="line 2: num_gpu must be a whole number, 1 or more"):
        read_any_trace([MURI, "0,none,0,1,dqn,1,1,1,1,1\n"], NODES)
