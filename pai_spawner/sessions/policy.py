"""What an administrator lets sessions do, and which of it holds for one of them now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from .hours import DAYS, Hours


@dataclass(frozen=True, slots=True)
class Session:
    """A notebook server, as far as rules ask about it. `profile`: with which it was started; empty: none."""

    user: str
    server: str
    groups: frozenset[str] = frozenset()
    gpus: int = 0
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for one session. None: no limit, or never."""

    idle_after: timedelta | None = None
    #: per cent; at and above it, GPUs (of all of them) or processors (of one core) count as used
    gpu_below: float | None = 5.0
    cpu_below: float | None = None
    busy_counts: bool = True
    terminals_count: bool = True
    connections_count: bool = False
    warn_before: timedelta = timedelta(minutes=10)
    lifetime: timedelta | None = None
    extend_by: timedelta = timedelta()
    extend_times: int = 0
    #: empty: at all hours
    hours: tuple[Hours, ...] = ()
    #: at most, of one user at once
    sessions: int | None = None
    gpus: int | None = None


#: The names of what a rule may set, as `Settings` has them.
SETTING_NAMES = frozenset(setting.name for setting in fields(Settings))


@dataclass(frozen=True, slots=True)
class Condition:
    """For which sessions, and when, a rule holds; what is None is not asked for."""

    users: frozenset[str] | None = None
    groups: frozenset[str] | None = None
    profiles: frozenset[str] | None = None
    gpus: bool | None = None
    hours: tuple[Hours, ...] | None = None
    days: frozenset[str] | None = None

    def fits(self, session: Session, local: datetime) -> bool:
        """Return whether a session meets all of it at a time in the administrator's zone."""
        return (
            (self.users is None or session.user in self.users)
            and (self.groups is None or not session.groups.isdisjoint(self.groups))
            and (self.profiles is None or session.profile in self.profiles)
            and (self.gpus is None or (session.gpus > 0) == self.gpus)
            and (self.days is None or DAYS[local.weekday()] in self.days)
            and (self.hours is None or any(part.contain(local) for part in self.hours))
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """What is set, for sessions that meet the condition."""

    when: Condition = Condition()
    sets: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """What the members of a group may have at once, all together; None: no limit."""

    sessions: int | None = None
    gpus: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """All rules, in their order; of two that set the same, the later one counts.

    `zone`: the time zone of all hours; None: the machine's own.
    """

    rules: tuple[Rule, ...] = ()
    groups: Mapping[str, GroupLimit] = field(default_factory=dict)
    zone: tzinfo | None = None

    def local(self, now: datetime) -> datetime:
        """Return a time in the administrator's zone."""
        return now.astimezone(self.zone)

    def settings(self, session: Session, now: datetime) -> Settings:
        """Return what holds for a session now."""
        local, settings = self.local(now), Settings()
        for rule in self.rules:
            if rule.when.fits(session, local):
                settings = replace(settings, **rule.sets)
        return settings
