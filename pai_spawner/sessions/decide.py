"""Whether a session goes on, is warned, or is ended, and why. Pure: facts, policy and the time go in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from .policy import Settings


class Action(StrEnum):
    """What is to be done with a session."""

    KEEP = "keep"
    WARN = "warn"
    END = "end"


class Cause(StrEnum):
    """Why a session ends."""

    IDLE = "idle"
    LIFETIME = "lifetime"
    HOURS = "hours"
    #: of its job, chosen with it: the scheduler ends it, but nobody else warns
    TIME_LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a running session. Times have a zone."""

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
class Record:
    """What people did about a session, and when it was first warned of the end that comes next."""

    kept: datetime | None = None
    extensions: int = 0
    warned: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do. `end`: when the session ends if nothing changes; None: not by itself.

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


def decide(facts: Facts, settings: Settings, record: Record, now: datetime, local: datetime) -> Decision:
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


def _idle_since(facts: Facts, settings: Settings, record: Record, now: datetime) -> datetime:
    """Return when a session was used last; `now` where it is being used."""
    if facts.kernels_busy and settings.busy_counts:
        return now
    if facts.connections and settings.connections_count:
        return now
    terminal_used = facts.terminal_used if settings.terminals_count else None
    programs_used = (facts.kernel_used, terminal_used, facts.service_used)
    signs = (facts.started, record.kept, *programs_used, facts.gpu_used, facts.cpu_used)
    return min(now, max(sign for sign in signs if sign is not None))


def _idle_end(settings: Settings, idle_since: datetime | None) -> datetime | None:
    if settings.idle_after is None or idle_since is None:
        return None
    return idle_since + settings.idle_after


def _life_end(facts: Facts, settings: Settings, record: Record) -> datetime | None:
    if settings.lifetime is None:
        return None
    # what was promised stays, also where an administrator has set fewer extensions since
    return facts.started + settings.lifetime + record.extensions * settings.extend_by


def _hours_end(settings: Settings, local: datetime) -> datetime | None:
    """Return when the hours in which such sessions may run are over; at once outside of them."""
    end = local
    # one part may go on where another ends
    for _ in settings.hours:
        ends = [later for part in settings.hours if (later := part.end_after(end)) is not None]
        if not ends:
            return end
        end = max(ends)
    return end if settings.hours and not any(part.contain(end) for part in settings.hours) else None
