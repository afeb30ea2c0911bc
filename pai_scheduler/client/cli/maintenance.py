"""`pai maintenance`: when machines are down, as administrators have planned."""

from __future__ import annotations

from collections.abc import Sequence

from pai_scheduler.i18n import msg
from pai_scheduler.rest.cluster import MaintenanceInfo

from .session import OK, CliSession
from .tables import moment, table


async def list_(session: CliSession) -> int:
    """List what is planned or under way."""
    found = await session.client.maintenance()
    if session.as_json:
        session.print_json(found)
    elif found:
        print(maintenance_table(found, session.locale))
    else:
        session.say("No maintenance is planned.")
    return OK


async def set_(
    session: CliSession, *, name: str, nodes: Sequence[str], begin: int, end: int, reason: str
) -> int:
    """Plan maintenance, or change it."""
    await session.client.set_maintenance(name, nodes, begin=begin, end=end, reason=reason)
    if session.as_json:
        session.print_json({"name": name, "begin": begin, "end": end})
    else:
        session.say(
            "Maintenance {name} is planned from {begin} to {end}.",
            name=name,
            begin=moment(begin),
            end=moment(end),
        )
    return OK


async def delete(session: CliSession, *, name: str) -> int:
    """Forget maintenance."""
    await session.client.delete_maintenance(name)
    if session.as_json:
        session.print_json({"name": name})
    else:
        session.say("Maintenance {name} is deleted.", name=name)
    return OK


def maintenance_table(found: Sequence[MaintenanceInfo], locale: str) -> str:
    """Lay out what is planned."""
    header = [msg("NAME"), msg("MACHINES"), msg("BEGINS"), msg("ENDS"), msg("REASON"), msg("PLANNED BY")]
    rows = [
        [
            one["name"],
            " ".join(one["nodes"]),
            moment(one["begin"]),
            moment(one["end"]),
            one["reason"],
            one["by"],
        ]
        for one in found
    ]
    return table([word.in_locale(locale) for word in header], rows)
