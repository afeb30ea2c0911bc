"""How many sessions and GPUs one may have at once: checked before a session is submitted. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from pai_scheduler.i18n import Message

from ..messages import counted, msg
from .policy import Policy, Session


def refusal(policy: Policy, session: Session, others: Collection[Session], now: datetime) -> Message | None:
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
    policy: Policy, group: str, session: Session, others: Collection[Session]
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
