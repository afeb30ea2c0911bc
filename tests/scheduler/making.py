"""Makes jobs, nodes and demands for tests, each with as little said as matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pai_scheduler.cluster.node import Gpu, Node, NodeState
from pai_scheduler.cluster.resources import Demand
from pai_scheduler.job.spec import JobSpec, PortRequest
from pai_scheduler.job.validation import parse_job

#: kept apart from `None`, which means something for the completion policy
UNSAID: Any = object()


def make_node(
    name: str = "a",
    cpus: int = 8,
    memory_mb: int = 10_000,
    storage_gb: int = 1000,
    gpus: Mapping[str, int] | None = None,
    *,
    state: NodeState = NodeState.READY,
    rack: str = "",
    gpu_links: Sequence[tuple[int, ...]] = (),
) -> Node:
    types = [gpu_type for gpu_type, count in (gpus or {}).items() for _ in range(count)]
    found = tuple(Gpu(index, gpu_type) for index, gpu_type in enumerate(types))
    return Node(name, cpus, memory_mb, storage_gb, found, state, rack, gpu_links=tuple(gpu_links))


def make_demand(
    cpus: int = 1,
    memory_mb: int = 100,
    gpus: int = 0,
    gpu_type: str | None = None,
    ports: Sequence[PortRequest] = (),
    storage_gb: int = 0,
    spread: str = "",
) -> Demand:
    return Demand(cpus, memory_mb, storage_gb, gpus, gpu_type, tuple(ports), spread)


def make_role(
    name: str = "main",
    tasks: int = 1,
    *,
    command: str = "true",
    cpus: int = 1,
    memory_mb: int = 100,
    gpus: int = 0,
    storage_gb: int = 0,
    ports: Sequence[Mapping[str, Any]] = (),
    min_failed: int | None = UNSAID,
    min_succeeded: int | None = UNSAID,
) -> dict[str, Any]:
    role: dict[str, Any] = {
        "name": name,
        "taskNumber": tasks,
        "command": command,
        "cpuNumber": cpus,
        "memoryMB": memory_mb,
        "gpuNumber": gpus,
        "storageGB": storage_gb,
        "portList": list(ports),
    }
    if min_failed is not UNSAID:
        role["minFailedTaskCount"] = min_failed
    if min_succeeded is not UNSAID:
        role["minSucceededTaskCount"] = min_succeeded
    return role


def make_config(*roles: Mapping[str, Any], name: str = "job", **fields: Any) -> dict[str, Any]:
    return {
        "jobName": name,
        "image": "local/image",
        "taskRoles": [dict(role) for role in roles] or [make_role()],
        **fields,
    }


def make_spec(*roles: Mapping[str, Any], name: str = "job", **fields: Any) -> JobSpec:
    return parse_job(make_config(*roles, name=name, **fields))
