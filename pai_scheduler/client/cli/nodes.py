"""`pai nodes`: what administrators do to machines."""

from __future__ import annotations

from .session import OK, CliSession


async def cordon(session: CliSession, *, name: str, reason: str) -> int:
    """Close a machine for new tasks."""
    await session.client.close_node(name, reason)
    if session.as_json:
        session.print_json({"name": name, "schedulable": False})
    else:
        session.say("Node {name} is closed: what runs goes on, nothing else starts there.", name=name)
    return OK


async def uncordon(session: CliSession, *, name: str) -> int:
    """Open a machine for new tasks again."""
    await session.client.open_node(name)
    if session.as_json:
        session.print_json({"name": name, "schedulable": True})
    else:
        session.say("Node {name} is open.", name=name)
    return OK
