"""Principals: users, programs and administrators, and whom and what they may act for and use."""

from __future__ import annotations

from dataclasses import dataclass

from pai_scheduler.cluster.definition import VirtualCluster


@dataclass(frozen=True, slots=True)
class Principal:
    """Caller of a request: a user of the Hub or of the tokens file, or a service that acts for users."""

    name: str
    admin: bool = False
    groups: tuple[str, ...] = ()
    #: it is a job of theirs that asks, whose programs they may not have written: it is not given their keys
    is_job: bool = False

    def __post_init__(self) -> None:
        """Refuse an administrator whom nobody could name."""
        if self.admin and not self.name:
            raise ValueError("nobody without a name is an administrator")

    @property
    def reads_all(self) -> bool:
        """Return whether everybody's jobs may be read."""
        return self.admin

    def may_read(self, owner: str) -> bool:
        """Return whether `owner`'s jobs may be read."""
        return self.reads_all or self.name == owner

    def may_act_for(self, owner: str) -> bool:
        """Return whether this caller sees and touches what is `owner`'s: their own, admins everybody's."""
        return self.admin or self.name == owner

    def may_use(self, cluster: VirtualCluster) -> bool:
        """Return whether a virtual cluster is open to this caller; one that names nobody is open to all."""
        if self.admin or not (cluster.users or cluster.groups):
            return True
        return self.name in cluster.users or not set(self.groups).isdisjoint(cluster.groups)

    def sees_holder(self, owner: str, cluster: VirtualCluster) -> bool:
        """Return whether this caller is told that a job of `owner` in a virtual cluster holds GPUs."""
        if self.may_read(owner) or cluster.holders_visible == "everybody":
            return True
        return cluster.holders_visible == "members" and self.may_use(cluster)


@dataclass(frozen=True, slots=True)
class AnonymousReader(Principal):
    """Somebody who reads without a token where that is allowed: all jobs, as in OpenPAI; changes nothing."""

    name: str = ""

    @property
    def reads_all(self) -> bool:
        """Return that all jobs may be read."""
        return True

    def may_act_for(self, owner: str) -> bool:  # noqa: ARG002 (for nobody at all)
        """Return that this reader acts for nobody."""
        return False
