"""`pai vc`: what administrators do to virtual clusters."""

from __future__ import annotations

from collections.abc import Sequence

from .session import OK, CliSession


async def vc_set(
    session: CliSession,
    *,
    name: str,
    capacity: float,
    most: float | None,
    users: Sequence[str] | None,
    groups: Sequence[str] | None,
    everybody: bool,
) -> int:
    """Make a virtual cluster, or change it."""
    if everybody:
        users = groups = ()
    await session.client.set_virtual_cluster(
        name, capacity, max_capacity=most, users=_listed(users), groups=_listed(groups)
    )
    return _done(session, "Virtual cluster {name} is guaranteed {capacity:g} %.", name, capacity=capacity)


async def vc_delete(session: CliSession, *, name: str) -> int:
    """Delete a virtual cluster."""
    await session.client.delete_virtual_cluster(name)
    return _done(session, "Virtual cluster {name} is deleted; its share went to default.", name)


async def vc_stop(session: CliSession, *, name: str) -> int:
    """Stop a virtual cluster: what runs goes on, nothing else starts."""
    await session.client.stop_virtual_cluster(name)
    return _done(session, "Virtual cluster {name} is stopped: what runs goes on, nothing else starts.", name)


async def vc_start(session: CliSession, *, name: str) -> int:
    """Start a stopped virtual cluster again."""
    await session.client.start_virtual_cluster(name)
    return _done(session, "Virtual cluster {name} runs.", name)


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)


def _done(session: CliSession, template: str, name: str, **values: object) -> int:
    if session.as_json:
        session.print_json({"name": name, **values})
    else:
        session.say(template, name=name, **values)
    return OK
