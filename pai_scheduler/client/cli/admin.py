"""Commands of `pai` for administrators: maintenance, nodes, virtual clusters, queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pai_scheduler.i18n import msg
from pai_scheduler.rest.cluster import MaintenanceInfo
from pai_scheduler.rest.models import QueueEntry

from .session import OK, CliSession, moment, table

# `pai maintenance`: when machines are down, as administrators have planned.


async def maintenance_list(session: CliSession) -> int:
    """List what is planned or under way."""
    found = await session.client.maintenance()
    if session.as_json:
        session.print_json(found)
    elif found:
        print(maintenance_table(found, session.locale))
    else:
        session.say("No maintenance is planned.")
    return OK


async def maintenance_set(
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


async def maintenance_delete(session: CliSession, *, name: str) -> int:
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


# `pai nodes`: what administrators do to machines.


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


# `pai vc`: what administrators do to virtual clusters.


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


# `pai queue`, `pai move` and `pai priority`: who waits in which order, and changing that.

#: Places of each virtual cluster; a person's own jobs are shown wherever they are.
_SHOWN = 1000


async def queue(session: CliSession, *, virtual_cluster: str | None) -> int:
    """Show who waits, first come first."""
    queues = await session.client.queue(virtual_cluster, limit=_SHOWN)
    if session.as_json:
        session.print_json(queues)
    elif any(queues.values()):
        print(queue_table(queues, session.locale))
    else:
        session.say("No job waits for resources.")
    return OK


async def move(session: CliSession, *, name: str, place: int, user: str | None) -> int:
    """Move a waiting job."""
    owner = await session.owner(user)
    await session.client.reorder(owner, name, place=place)
    done = await _tell_place(session, owner, name)
    if not session.as_json:
        await _tell_how_far(session, owner, name, place)
    return done


async def priority(session: CliSession, *, name: str, priority: int, user: str | None) -> int:
    """Return a job another priority."""
    owner = await session.owner(user)
    await session.client.reorder(owner, name, priority=priority)
    return await _tell_place(session, owner, name)


def queue_table(queues: Mapping[str, Sequence[QueueEntry]], locale: str) -> str:
    """Lay out the queues; a job's name and why it waits stand at those that one may see."""
    header = [
        msg("VIRTUAL CLUSTER"),
        msg("PLACE"),
        msg("PRIORITY"),
        msg("USER"),
        msg("NAME"),
        msg("TASKS"),
        msg("GPUS"),
        msg("CREATED"),
        msg("OVERTAKEN"),
        msg("WHY IT WAITS"),
    ]
    kept = msg("(what becomes free is kept for it)").in_locale(locale)
    rows = [
        [
            name,
            str(entry["place"]),
            str(entry["priority"]),
            entry["user"],
            entry["name"] or "-",
            str(entry["totalTaskNumber"]),
            str(entry["totalGpuNumber"]),
            moment(entry["createdTime"]),
            str(entry["overtaken"]),
            " ".join(filter(None, (entry["waitingReason"], kept if entry["reserved"] else ""))) or "-",
        ]
        for name, entries in queues.items()
        for entry in entries
    ]
    return table([title.in_locale(locale) for title in header], rows)


async def _tell_how_far(session: CliSession, owner: str, name: str, place: int) -> None:
    """Print a hint where there are fewer jobs to move among than the place that was asked for."""
    status = (await session.client.job(owner, name))["jobStatus"]
    if status["queuePlace"] is None:
        return
    cluster, priority = status["virtualCluster"], status["priority"]
    of_priority = [
        entry
        for entry in (await session.client.queue(cluster)).get(cluster, [])
        if entry["priority"] == priority
    ]
    all_of_them = (await session.client.whoami())["admin"]
    count = sum(all_of_them or entry["user"] == owner for entry in of_priority)
    if place <= count:
        return
    if all_of_them:
        session.say(
            "Jobs with priority {priority} in that queue: {count}. pai priority moves a job past others.",
            count=count,
            priority=priority,
        )
    else:
        session.say(
            "Jobs of yours with priority {priority} in that queue: {count}. "
            "pai priority moves a job past others.",
            count=count,
            priority=priority,
        )


async def _tell_place(session: CliSession, owner: str, name: str) -> int:
    status = (await session.client.job(owner, name))["jobStatus"]
    values = {"name": name, "priority": status["priority"], "place": status["queuePlace"]}
    if session.as_json:
        session.print_json(values)
    elif status["queuePlace"] is None:
        session.say("Job {name} has priority {priority}; it is not waiting in line.", **values)
    else:
        session.say("Job {name} has priority {priority}, and is at place {place} in the queue.", **values)
    return OK
