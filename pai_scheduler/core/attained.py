"""What a job has had so far, and in which level that is: least attained service in levels.

After Gu et al., Tiresias (NSDI 2019): levels make sure that jobs do not stop each other in turn. What was had
is told in eighths of a GPU for one ms.
"""

from __future__ import annotations

from bisect import bisect_right

from pai_scheduler.cluster.definition import LeastAttained
from pai_scheduler.cluster.gang import gang_of
from pai_scheduler.cluster.usage import CORES_PER_GPU, weight
from pai_scheduler.job.spec import JobSpec

#: in the unit in which it is told
GPU_HOUR = CORES_PER_GPU * 3_600_000


def weight_of(spec: JobSpec, default_storage_gb: int) -> int:
    """Return what a job has in one ms in which it has its resources; 1 or more."""
    return max(1, round(sum(weight(demand) for demand in gang_of(spec, default_storage_gb))))


def level(policy: LeastAttained, attained: int) -> int:
    """Return the level, from 0, of a job that has had so much."""
    return bisect_right(policy.gpu_hours, attained / GPU_HOUR)


def next_level_at(policy: LeastAttained, attained: int, began: int, weight: int) -> list[int]:
    """Return when a job that began then (ms) with so much comes to the levels that it has not reached."""
    missing = [round(hours * GPU_HOUR) - attained for hours in policy.gpu_hours]
    return [began - (-one // weight) for one in missing if one > 0]
