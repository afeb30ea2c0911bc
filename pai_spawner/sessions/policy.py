"""The policy of sessions: conditions and limits, and what is to be done by them; pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any

from pai_scheduler.i18n import Message

from ..messages import counted, msg

# Hours of the day, as an administrator writes them: "08:00-20:00", also past midnight ("20:00-07:00").

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|(24:00))")
_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class Hours:
    """A part of every day, in minutes since midnight; `end` may be the next day's."""

    begin: int
    end: int

    def contain(self, local: datetime) -> bool:
        """Return whether a time of day is in it; `local` is in the administrator's time zone."""
        return self._minutes_left(local) is not None

    def end_after(self, local: datetime) -> datetime | None:
        """Return when the part that a time is in is over; None where the time is in none."""
        left = self._minutes_left(local)
        if left is None:
            return None
        # by the clock on the wall: where clocks are set meanwhile, that is what people mean
        return local.replace(second=0, microsecond=0) + timedelta(minutes=left)

    def _minutes_left(self, local: datetime) -> int | None:
        now = local.hour * 60 + local.minute
        # as yesterday's, which may last until today, and as today's
        for moment in (now + _DAY_MINUTES, now):
            if self.begin <= moment < self.end:
                return self.end - moment
        return None

    def __str__(self) -> str:
        end = self.end if self.end == _DAY_MINUTES else self.end % _DAY_MINUTES
        return f"{_clock(self.begin)}-{_clock(end)}"


def parse_hours(text: str) -> Hours:
    """Read "08:00-20:00"; ValueError where it is none."""
    found = _HOURS.fullmatch(text)
    if found is None:
        raise ValueError(text)
    begin = int(found[1]) * 60 + int(found[2])
    end = _DAY_MINUTES if found[5] else int(found[3]) * 60 + int(found[4])
    return Hours(begin, end if end > begin else end + _DAY_MINUTES)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


# What an administrator lets sessions do, and which of it holds for one of them now. Pure.


@dataclass(frozen=True, slots=True)
class Session:
    """A notebook server, as far as rules ask about it. `profile`: with which it was started; empty: none."""

    user: str
    server: str
    groups: frozenset[str] = frozenset()
    gpus: int = 0
    profile: str = ""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The policy settings of one session. None: no limit, or never."""

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
SETTING_NAMES = frozenset(setting.name for setting in fields(SessionSettings))


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
    """Settings for the sessions that meet the condition."""

    when: Condition = Condition()
    sets: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """Limits on what the members of a group may have at once, all together; None: no limit."""

    sessions: int | None = None
    gpus: int | None = None


@dataclass(frozen=True, slots=True)
class SessionPolicy:
    """All rules, in their order; of two that set the same, the later one counts.

    `zone`: the time zone of all hours; None: the machine's own.
    """

    rules: tuple[Rule, ...] = ()
    groups: Mapping[str, GroupLimit] = field(default_factory=dict)
    zone: tzinfo | None = None

    def local(self, now: datetime) -> datetime:
        """Return a time in the administrator's zone."""
        return now.astimezone(self.zone)

    def settings(self, session: Session, now: datetime) -> SessionSettings:
        """Return what holds for a session now."""
        local, settings = self.local(now), SessionSettings()
        for rule in self.rules:
            if rule.when.fits(session, local):
                settings = replace(settings, **rule.sets)
        return settings


# How many sessions and GPUs one may have at once: checked before a session is submitted. Pure.


def refusal(
    policy: SessionPolicy, session: Session, others: Collection[Session], now: datetime
) -> Message | None:
    """Return why a session may not start; None: it may.

    `others`: the sessions of all users that run or start, without this one.
    """
    settings = policy.settings(session, now)
    own = [other for other in others if other.user == session.user]
    if settings.hours and not any(part.contain(policy.local(now)) for part in settings.hours):
        return msg(
            "Such a session may run only at certain hours: {hours}. Start it then, or choose another one.",
            hours=", ".join(map(str, settings.hours)),
        )
    if settings.sessions == 0:
        return msg(
            "You may not start such a session on this Hub. Choose another one, or ask your administrator."
        )
    if settings.sessions is not None and len(own) >= settings.sessions:
        return counted(
            "You may have {count} session at once, and have {names}. Stop one first.",
            "You may have {count} sessions at once, and have {names}. Stop one first.",
            count=settings.sessions,
            names=_names(own),
        )
    if settings.gpus is not None and session.gpus and _gpus(own) + session.gpus > settings.gpus:
        return counted(
            "Your sessions may have {count} GPU together. They have {have}, and this one asks for {asked}. "
            "Choose fewer, or stop another session.",
            "Your sessions may have {count} GPUs together. They have {have}, and this one asks for {asked}. "
            "Choose fewer, or stop another session.",
            count=settings.gpus,
            have=_gpus(own),
            asked=session.gpus,
        )
    for group in sorted(session.groups & policy.groups.keys()):
        if (message := _group_refusal(policy, group, session, others)) is not None:
            return message
    return None


def _group_refusal(
    policy: SessionPolicy, group: str, session: Session, others: Collection[Session]
) -> Message | None:
    limit, members = policy.groups[group], [other for other in others if group in other.groups]
    if limit.sessions is not None and len(members) >= limit.sessions:
        return counted(
            "The group {group} may have {count} session at once, and has it. Try again when it is over.",
            "The group {group} may have {count} sessions at once, and has them. Try again when one is over.",
            count=limit.sessions,
            group=group,
        )
    if limit.gpus is not None and session.gpus and _gpus(members) + session.gpus > limit.gpus:
        return counted(
            "The sessions of the group {group} may have {count} GPU together. They have {have}, and this one "
            "asks for {asked}. Choose fewer, or try again when another session is over.",
            "The sessions of the group {group} may have {count} GPUs together. They have {have}, and this "
            "one asks for {asked}. Choose fewer, or try again when another session is over.",
            count=limit.gpus,
            group=group,
            have=_gpus(members),
            asked=session.gpus,
        )
    return None


def _gpus(sessions: Collection[Session]) -> int:
    return sum(session.gpus for session in sessions)


def _names(sessions: Collection[Session]) -> Message | str:
    names = sorted(session.server for session in sessions)
    if names == [""]:
        return msg("your default server")
    return ", ".join(name or "default" for name in names) or "0"


# Whether a session goes on, is warned, or is ended, and why. Pure: facts, policy and the time go in.


class Action(StrEnum):
    """The action to take on a session."""

    KEEP = "keep"
    WARN = "warn"
    END = "end"


class Cause(StrEnum):
    """The cause of a session's end."""

    IDLE = "idle"
    LIFETIME = "lifetime"
    HOURS = "hours"
    #: of its job, chosen with it: the scheduler ends it, but nobody else warns
    TIME_LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The observed state of a running session. Times have a zone."""

    started: datetime
    #: whether its kernels and use could be asked for; where not, nothing is concluded from its silence
    known: bool
    kernels_busy: bool = False
    #: browsers that are connected to its kernels
    connections: int = 0
    #: when a kernel, or a terminal, was used last
    kernel_used: datetime | None = None
    terminal_used: datetime | None = None
    #: when a service was, in whose place there is no JupyterLab
    service_used: datetime | None = None
    #: when GPUs, or processors, were last used as much as the settings ask for
    gpu_used: datetime | None = None
    cpu_used: datetime | None = None
    #: when the scheduler ends it; None: its job has no time limit
    limit: datetime | None = None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """User actions on a session, and the time of the first warning of its next end."""

    kept: datetime | None = None
    extensions: int = 0
    warned: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The action to take. `end`: when the session ends if nothing changes; None: not by itself.

    `idle_since`: None where that is not known. `extensions_left`: how often its life may still be prolonged.
    """

    action: Action
    cause: Cause | None = None
    end: datetime | None = None
    idle_since: datetime | None = None
    extensions_left: int = 0

    @property
    def may_keep(self) -> bool:
        """Return whether its user can put the end off."""
        return self.cause is Cause.IDLE or (self.cause is Cause.LIFETIME and self.extensions_left > 0)


def decide(
    facts: SessionFacts, settings: SessionSettings, record: SessionRecord, now: datetime, local: datetime
) -> Decision:
    """Decide about a session; `local` is `now` in the administrator's time zone.

    Nobody is ended without having been warned for as long as the settings say, also where the settings have
    just changed, or where nobody looked for a while.
    """
    idle_since = _idle_since(facts, settings, record, now) if facts.known else None
    left = max(0, settings.extend_times - record.extensions) if settings.extend_by else 0
    ends = [
        (end, cause)
        for end, cause in (
            (_idle_end(settings, idle_since), Cause.IDLE),
            (_life_end(facts, settings, record), Cause.LIFETIME),
            (_hours_end(settings, local), Cause.HOURS),
            (facts.limit, Cause.TIME_LIMIT),
        )
        if end is not None
    ]
    if not ends:
        return Decision(Action.KEEP, None, None, idle_since, left)
    end, cause = min(ends)
    if now < end - settings.warn_before:
        return Decision(Action.KEEP, cause, end, idle_since, left)
    if cause is Cause.TIME_LIMIT:
        return Decision(Action.WARN, cause, end, idle_since, left)
    end = max(end, (record.warned or now) + settings.warn_before)
    return Decision(Action.END if now >= end else Action.WARN, cause, end, idle_since, left)


def _idle_since(
    facts: SessionFacts, settings: SessionSettings, record: SessionRecord, now: datetime
) -> datetime:
    """Return when a session was used last; `now` where it is being used."""
    if facts.kernels_busy and settings.busy_counts:
        return now
    if facts.connections and settings.connections_count:
        return now
    terminal_used = facts.terminal_used if settings.terminals_count else None
    programs_used = (facts.kernel_used, terminal_used, facts.service_used)
    signs = (facts.started, record.kept, *programs_used, facts.gpu_used, facts.cpu_used)
    return min(now, max(sign for sign in signs if sign is not None))


def _idle_end(settings: SessionSettings, idle_since: datetime | None) -> datetime | None:
    if settings.idle_after is None or idle_since is None:
        return None
    return idle_since + settings.idle_after


def _life_end(facts: SessionFacts, settings: SessionSettings, record: SessionRecord) -> datetime | None:
    if settings.lifetime is None:
        return None
    # what was promised stays, also where an administrator has set fewer extensions since
    return facts.started + settings.lifetime + record.extensions * settings.extend_by


def _hours_end(settings: SessionSettings, local: datetime) -> datetime | None:
    """Return when the hours in which such sessions may run are over; at once outside of them."""
    end = local
    # one part may go on where another ends
    for _ in settings.hours:
        ends = [later for part in settings.hours if (later := part.end_after(end)) is not None]
        if not ends:
            return end
        end = max(ends)
    return end if settings.hours and not any(part.contain(end) for part in settings.hours) else None
