"""Why jobs wait, as the scheduler says it: small situations, played through on its real core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import Gpu, Node
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.events import Started, Submitted
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.queries import waiting_reason
from pai_scheduler.core.state_machine import Core, CoreSettings
from pai_scheduler.job.validation import parse_job

_SHARES = (
    VirtualCluster("default", 50.0),
    VirtualCluster("vision", 25.0, 75.0),
    VirtualCluster("students", 25.0, gpus_per_user=2),
)
_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Ask:
    """A job: so many tasks with so many GPUs each; `cpus` of one task."""

    user: str
    tasks: int = 1
    gpus: int = 1
    cpus: int = 1
    vc: str = "default"
    extras: dict[str, Any] = field(default_factory=dict)
    gpu_type: str = ""


@dataclass(frozen=True)
class Situation:
    """What was submitted, in this order, and what that is an example of; `waits`: whose place in it waits."""

    about: str
    asks: Sequence[Ask]
    waits: int = -1
    shares: Sequence[VirtualCluster] = _SHARES
    overtake_limit: int = CoreSettings().overtake_limit


SITUATIONS = (
    Situation(
        "One GPU is wanted, and all four are taken; the jobs that have them name a time limit:",
        [Ask("bob", 4, extras={"maxRunSeconds": 7200}), Ask("alice")],
    ),
    Situation(
        "Two GPUs on one machine are wanted; two are free, on different machines:",
        [Ask("bob", 2, cpus=9), Ask("alice", gpus=2)],
    ),
    Situation(
        "A GPU type that no machine has:",
        [Ask("alice", gpu_type="V100")],
    ),
    Situation(
        "More GPUs for one task than any machine has:",
        [Ask("alice", gpus=4)],
    ),
    Situation(
        "More than the virtual cluster's `maxCapacity` allows:",
        [Ask("alice", 4, vc="vision")],
    ),
    Situation(
        "The virtual cluster's `maxCapacity` is reached:",
        [Ask("bob", 2, vc="vision"), Ask("carol", vc="vision"), Ask("alice", vc="vision")],
    ),
    Situation(
        "A user's share of the virtual cluster (`gpusPerUser`) is used up:",
        [Ask("alice", 2, vc="students"), Ask("alice", vc="students")],
    ),
    Situation(
        "A job that must not be preempted never borrows, and its virtual cluster's guarantee is used:",
        [Ask("bob", 2), Ask("alice", extras={"preemptible": False})],
    ),
    Situation(
        "A large job that was overtaken as often as it may be:",
        [Ask("bob"), Ask("alice", 4), Ask("carol")],
        waits=1,
        shares=[VirtualCluster("default", 100.0)],
        overtake_limit=0,
    ),
)


def reasons() -> Iterator[tuple[str, str]]:
    """Return each situation and what the job that waits is told."""
    for situation in SITUATIONS:
        yield situation.about, _told(situation)


def _told(situation: Situation) -> str:
    core = Core(
        Cluster([_node("node-a"), _node("node-b")]),
        CoreSettings(overtake_limit=situation.overtake_limit),
        situation.shares,
    )
    for number, ask in enumerate(situation.asks, 1):
        _submit(core, f"j{number}", ask, number)
    waiting = list(core.jobs.values())[situation.waits]
    reason = waiting_reason(core, waiting, now=_HOUR_MS)
    if reason is None:
        raise ValueError(f"nothing waits: {situation.about}")
    return str(reason)


def _node(name: str) -> Node:
    return Node(name, 16, 64000, 500, tuple(Gpu(index, "P100") for index in range(2)))


def _submit(core: Core, job_id: str, ask: Ask, order: int) -> None:
    role = {
        "name": "main",
        "command": "x",
        "taskNumber": ask.tasks,
        "gpuNumber": ask.gpus,
        "cpuNumber": ask.cpus,
    }
    spec = parse_job(
        {
            "jobName": job_id,
            "image": "x",
            "virtualCluster": ask.vc,
            "gpuType": ask.gpu_type,
            "taskRoles": [role],
            "extras": ask.extras,
        }
    )
    outcome = Outcome()
    core.handle(Submitted(_HOUR_MS, job_id, ask.user, spec, order), outcome)
    for task in outcome.tasks:
        core.handle(Started(task, _HOUR_MS, "10.0.0.1", task.name), outcome)
