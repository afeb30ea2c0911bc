"""Writes sessions as JSON, for one reader."""

from __future__ import annotations

from datetime import datetime

from pai_scheduler.rest.sessions import SessionInfo, SessionRow

from . import words
from .decide import Action
from .keeper import SessionKeeper, Watched


def info(keeper: SessionKeeper, watched: Watched, locale: str, now: datetime) -> SessionInfo:
    """Write what a session's user is told of it."""
    decision, server = watched.decision, watched.server
    warned = decision.action is not Action.KEEP
    why = words.warning(decision, watched.settings, server.started, now).in_locale(locale) if warned else ""
    return {
        "user": server.user,
        "server": server.name,
        "job": server.job,
        "gpus": watched.session.gpus,
        "now": ms(now),
        "startedTime": ms(server.started),
        "warned": warned,
        "cause": None if decision.cause is None else decision.cause.value,
        "endTime": None if decision.end is None else ms(decision.end),
        "idleSince": None if decision.idle_since is None else ms(decision.idle_since),
        "why": why,
        "mayKeep": decision.may_keep,
        "extensionsLeft": decision.extensions_left,
        "messages": list(keeper.records.of(server.key, server.job).messages),
    }


def row(keeper: SessionKeeper, watched: Watched, locale: str, now: datetime) -> SessionRow:
    """Write what an administrator sees of it."""
    usage = keeper.usage.known(watched.server.user, watched.server.job)
    return {**info(keeper, watched, locale, now), "use": usage.latest}


def ms(time: datetime) -> int:
    """Write a time as ms since the epoch."""
    return int(time.timestamp() * 1000)
