"""What a whole job needs: one demand per task, in the order of its roles and indices."""

from __future__ import annotations

from pai_scheduler.job.spec import JobSpec, TaskRole

from .demand import Demand

#: OpenPAI gave a container no disk limit; ours is the cluster's default, set in its definition.
DEFAULT_STORAGE_GB = 20


def role_demand(spec: JobSpec, role: TaskRole, default_storage_gb: int = DEFAULT_STORAGE_GB) -> Demand:
    """Return what each task of a role needs."""
    return Demand(
        cpus=role.cpu_number,
        memory_mb=role.memory_mb,
        storage_gb=default_storage_gb if role.storage_gb is None else role.storage_gb,
        gpus=role.gpu_number,
        gpu_type=spec.gpu_type if role.gpu_number else None,
        ports=role.all_ports,
        spread=role.name if spec.spread and spec.total_tasks > 1 else "",
    )


def gang_of(spec: JobSpec, default_storage_gb: int = DEFAULT_STORAGE_GB) -> list[Demand]:
    """Return the demands of all tasks of a job."""
    return [
        demand
        for role in spec.task_roles
        for demand in [role_demand(spec, role, default_storage_gb)] * role.task_number
    ]
