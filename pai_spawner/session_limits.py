"""Whether a server may start beside those that its user, and its user's groups, have already."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pai_scheduler.i18n import Message

from .sessions.limits import refusal
from .sessions.policy import Session
from .sessions.policy_file import PolicyError
from .sessions.policy_source import PolicySource

if TYPE_CHECKING:
    from .choices import Options
    from .choosing import Choosing


def limit_refusal(spawner: Choosing, options: Options) -> Message | None:
    """Return why a server with such options may not start now; None: it may.

    Nothing is waited for in here: until the spawner that asks has a job's name, no other one is let pass.
    """
    if not spawner.sessions_file:
        return None
    try:
        policy = _source(spawner.sessions_file).refresh().policy
    except PolicyError as error:
        return error.message
    session = _session(spawner, options.gpus, options.profile)
    return refusal(policy, session, list(_others(spawner)), datetime.now(UTC))


@cache
def _source(path: str) -> PolicySource:
    return PolicySource(Path(path))


def _others(spawner: Choosing) -> Iterator[Session]:
    """Return the sessions of all users that run, or are being started, in this Hub."""
    everybody = spawner.user.settings.get("users")
    users = list(everybody.values()) if everybody is not None else [spawner.user]
    for user in users:
        for other in user.spawners.values():
            if other is not spawner and other.active and getattr(other, "job_name", ""):
                yield _session(other, other.gpus, str((other.user_options or {}).get("profile") or ""))


def _session(spawner: Choosing, gpus: int, profile: str) -> Session:
    groups = frozenset(group.name for group in spawner.user.groups)
    return Session(spawner.user.name, spawner.name, groups, gpus, profile)
