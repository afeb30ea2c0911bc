"""What a whole job needs: one demand per task, in the order of its roles and indices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pai_scheduler.job.spec import JobSpec, PortRequest, TaskRole

from .demand import Demand

#: GB of disk that a task reserves which names none; its limit is another matter (`Definition`)
DEFAULT_STORAGE_REQUEST_GB = 1


def role_demand(
    spec: JobSpec, role: TaskRole, storage_request_gb: int = DEFAULT_STORAGE_REQUEST_GB
) -> Demand:
    """Return what each task of a role needs."""
    return Demand(
        cpus=role.cpu_number,
        memory_mb=role.memory_mb,
        storage_gb=storage_request_gb if role.storage_gb is None else role.storage_gb,
        gpus=role.gpu_number,
        gpu_type=spec.gpu_type if role.gpu_number else None,
        ports=role.all_ports,
        spread=role.name if spec.spread and spec.total_tasks > 1 else "",
    )


def gang_of(spec: JobSpec, storage_request_gb: int = DEFAULT_STORAGE_REQUEST_GB) -> Sequence[Demand]:
    """Return the demands of all tasks of a job: of many jobs that ask for the same, the same object."""
    spreads = spec.spread and spec.total_tasks > 1
    asked = tuple(
        (
            role.task_number,
            role.cpu_number,
            role.memory_mb,
            storage_request_gb if role.storage_gb is None else role.storage_gb,
            role.gpu_number,
            role.ports,
            role.name if spreads else "",
        )
        for role in spec.task_roles
    )
    return _gang(asked, spec.gpu_type)


#: `role_demand`'s facts about a role, after the number of its tasks
_Asked = tuple[int, int, int, int, int, tuple[PortRequest, ...], str]


@lru_cache(maxsize=512)
def _gang(asked: tuple[_Asked, ...], gpu_type: str | None) -> tuple[Demand, ...]:
    demands: list[Demand] = []
    for tasks, cpus, memory_mb, storage_gb, gpus, ports, spread in asked:
        every = TaskRole("", "", ports=ports).all_ports
        demand = Demand(cpus, memory_mb, storage_gb, gpus, gpu_type if gpus else None, every, spread)
        demands += [demand] * tasks
    return tuple(demands)
