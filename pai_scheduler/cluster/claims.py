"""What is kept for waiting jobs: a place is chosen, and what becomes free there is booked for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .amounts import Amounts
from .placement import Assignment, Cluster, Demand, fixed_ports


@dataclass(frozen=True, slots=True)
class Target:
    """Where a task of a waiting job will run, and on GPUs of which type."""

    demand: Demand
    node: str
    gpu_type: str | None


@dataclass(slots=True)
class Claim:
    """One waiting job's places. `within`: it stays within its guaranteed share.

    `awaits`: the jobs that have to end before it fits; `amounts`: what it will hold.
    """

    job_id: str
    user: str
    virtual_cluster: str
    targets: Sequence[Target]
    amounts: Amounts
    awaits: frozenset[str]
    within: bool
    #: what is booked for it right now
    kept: list[tuple[Demand, Assignment]] = field(default_factory=list)


class Claims:
    """All claims, first come first served."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}

    def __len__(self) -> int:
        return len(self._claims)

    def __iter__(self) -> Iterator[Claim]:
        return iter(list(self._claims.values()))

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._claims

    def get(self, job_id: str) -> Claim | None:
        """Find the claim of a job."""
        return self._claims.get(job_id)

    def add(self, claim: Claim) -> None:
        """Take a claim, behind all others."""
        self._claims[claim.job_id] = claim

    def pop(self, job_id: str) -> Claim | None:
        """Drop a claim for which nothing is booked."""
        return self._claims.pop(job_id, None)

    @contextmanager
    def lacking(self, some: Sequence[Claim]) -> Iterator[None]:
        """Leave some claims out for a while; they keep their places."""
        claims, out = self._claims, {claim.job_id for claim in some}
        self._claims = {job_id: claim for job_id, claim in claims.items() if job_id not in out}
        try:
            yield
        finally:
            self._claims = claims

    def keep(self, cluster: Cluster, claim: Claim) -> None:
        """Book what is free of a claim's places."""
        for target in claim.targets:
            use = cluster.uses.get(target.node)
            if use is None or not use.node.healthy:
                continue
            demand = target.demand
            gpus = tuple(use.gpus.get(target.gpu_type, ())[: demand.gpus]) if target.gpu_type else ()
            ports = [port for port in fixed_ports(demand.ports) if port not in use.ports]
            part = Demand(
                max(0, min(demand.cpus, use.cpus)),
                max(0, min(demand.memory_mb, use.memory_mb)),
                max(0, min(demand.storage_gb, use.storage_gb)),
                len(gpus),
                target.gpu_type,
            )
            assignment = Assignment(target.node, gpus, {"": tuple(ports)} if ports else {})
            cluster.occupy(part, assignment)
            claim.kept.append((part, assignment))

    def let_go(self, cluster: Cluster, claim: Claim) -> None:
        """Undo `keep`."""
        for part, assignment in claim.kept:
            cluster.release(part, assignment)
        claim.kept.clear()
