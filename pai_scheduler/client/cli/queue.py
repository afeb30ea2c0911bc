"""`pai queue`, `pai move` and `pai priority`: who waits in which order, and changing that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pai_scheduler.i18n import msg
from pai_scheduler.rest.models import QueueEntry

from .session import OK, CliSession
from .tables import moment, table

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
