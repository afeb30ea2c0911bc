"""Messages about the end of a session: before it, and with it."""

from __future__ import annotations

from datetime import datetime, timedelta

from pai_scheduler.i18n import Message

from ..messages import counted, msg
from .policy import Cause, Decision, SessionSettings


def warning(decision: Decision, settings: SessionSettings, started: datetime, now: datetime) -> Message:
    """Return why a session is to end, for its user while it still runs."""
    match decision.cause:
        case Cause.IDLE:
            return msg(
                "This session is idle: no kernel, terminal or GPU was used for {time}.",
                time=duration(now - (decision.idle_since or now)),
            )
        case Cause.LIFETIME:
            return msg(
                "This session has run for {time}, and is to end after {limit}.",
                time=duration(now - started),
                limit=duration((decision.end or now) - started),
            )
        case Cause.TIME_LIMIT:
            return msg(
                "This session has a time limit, which was chosen with it: {limit}.",
                limit=duration((decision.end or now) - started),
            )
        case _:
            return msg(
                "Sessions like this one may run only at certain hours: {hours}.", hours=_hours(settings)
            )


def reason(decision: Decision, settings: SessionSettings, started: datetime, now: datetime) -> Message:
    """Return why a session was ended, as it is kept with its job."""
    match decision.cause:
        case Cause.IDLE:
            return msg(
                "the session was idle for {time} (no kernel, terminal or GPU was used). "
                "Your files are kept; start it again when you need it.",
                time=duration(now - (decision.idle_since or now)),
            )
        case Cause.LIFETIME:
            return msg(
                "the session had run for {time}, as long as it may. "
                "Your files are kept; start it again when you need it.",
                time=duration(now - started),
            )
        case _:
            return msg(
                "sessions like this one may run only at certain hours: {hours}. Your files are kept.",
                hours=_hours(settings),
            )


def by_administrator(name: str, why: str) -> Message:
    """Return why a session was ended by a person."""
    if why:
        return msg("ended by the administrator {name}: {why}", name=name, why=why)
    return msg("ended by the administrator {name}.", name=name)


def duration(time: timedelta) -> Message:
    """Say how long something takes: in minutes, in hours and minutes, in days and hours."""
    minutes = max(0, round(time.total_seconds() / 60))
    hours, days = minutes // 60, minutes // (24 * 60)
    if hours < 1:
        return counted("{count} minute", "{count} minutes", count=minutes)
    if hours < 48:
        return msg("{hours} h {minutes} min", hours=hours, minutes=minutes % 60)
    return msg("{days} d {hours} h", days=days, hours=hours % 24)


def _hours(settings: SessionSettings) -> str:
    return ", ".join(map(str, settings.hours))
