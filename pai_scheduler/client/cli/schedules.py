"""`pai schedule`: jobs that run again and again."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.schedules import (
    ScheduleInfo,
    ScheduleRun,
)

from .session import OK, CliSession, moment, pairs, printable_lines, read_job_file, table


async def list_(session: CliSession, *, user: str | None) -> int:
    """List schedules."""
    found = await session.client.schedules(await session.owner(user))
    if session.as_json:
        session.print_json(found)
    elif found:
        print(schedules_table(found, session.locale))
    else:
        session.say("There are no schedules.")
    return OK


async def create(
    session: CliSession,
    *,
    file: str,
    cron: str,
    timezone: str,
    name: str | None,
    overlap: Literal["skip", "allow"],
    user: str | None,
) -> int:
    """Make a schedule, or change it."""
    config = await asyncio.to_thread(read_job_file, file)
    called = name or str(config.get("jobName", ""))
    owner = await session.owner(user)
    made = await session.client.set_schedule(
        owner, called or "schedule", config, cron=cron, zone=timezone, overlap=overlap
    )
    return _tell(session, made)


async def show(session: CliSession, *, name: str, user: str | None) -> int:
    """Show a schedule and its job."""
    found = await session.client.schedule(await session.owner(user), name)
    if session.as_json:
        session.print_json(found)
        return OK

    def words(message: Message) -> str:
        return message.in_locale(session.locale)

    rows = [
        (words(msg("name")), found["name"]),
        (words(msg("user")), found["username"]),
        (words(msg("runs at")), f"{found['cron']} ({found['timeZone']})"),
        (words(msg("next run")), _next(found, session.locale)),
        (words(msg("last run")), last_in_words(found["lastRun"], session.locale)),
        (words(msg("while one runs")), found["overlap"]),
        (words(msg("created")), moment(found["createdTime"])),
    ]
    print(pairs(rows))
    print()
    print(printable_lines(json.dumps(found["job"], ensure_ascii=False, indent=2)))
    return OK


async def pause(session: CliSession, *, name: str, user: str | None) -> int:
    """Pause a schedule."""
    return _tell(session, await session.client.pause_schedule(await session.owner(user), name))


async def resume(session: CliSession, *, name: str, user: str | None) -> int:
    """Let a schedule go on."""
    return _tell(session, await session.client.pause_schedule(await session.owner(user), name, paused=False))


async def run(session: CliSession, *, name: str, user: str | None) -> int:
    """Submit a schedule's job now."""
    job = await session.client.run_schedule(await session.owner(user), name)
    if session.as_json:
        session.print_json({"job": job})
    else:
        session.say("Job {name} is submitted.", name=job)
    return OK


async def delete(session: CliSession, *, name: str, user: str | None) -> int:
    """Delete a schedule."""
    await session.client.remove_schedule(await session.owner(user), name)
    if session.as_json:
        session.print_json({"name": name})
    else:
        session.say("Schedule {name} is deleted; its jobs stay as they are.", name=name)
    return OK


def schedules_table(found: list[ScheduleInfo], locale: str) -> str:
    """Lay out schedules."""
    header = [
        *(msg("NAME"), msg("CRON"), msg("TIME ZONE"), msg("NEXT RUN"), msg("LAST RUN")),
    ]
    rows = [
        [
            one["name"],
            one["cron"],
            one["timeZone"],
            _next(one, locale),
            last_in_words(one["lastRun"], locale),
        ]
        for one in found
    ]
    return table([title.in_locale(locale) for title in header], rows)


def last_in_words(last: ScheduleRun | None, locale: str) -> str:
    """Say what came of a schedule last."""
    if last is None:
        return "-"
    values: dict[str, Any] = {"job": last["job"], "time": moment(last["time"]), "reason": last["message"]}
    said = {
        "submitted": msg("{time}: job {job}", **values),
        "refused": msg("{time}: refused: {reason}", **values),
        "skipped": msg("{time}: left out: {reason}", **values),
    }
    return said[last["outcome"]].in_locale(locale)


def _next(schedule: ScheduleInfo, locale: str) -> str:
    return msg("paused").in_locale(locale) if schedule["paused"] else moment(schedule["nextTime"])


def _tell(session: CliSession, schedule: ScheduleInfo) -> int:
    if session.as_json:
        session.print_json(schedule)
    elif schedule["paused"]:
        session.say("Schedule {name} is paused.", name=schedule["name"])
    elif schedule["nextTime"] is None:
        session.say("Schedule {name} never runs: there is no such day.", name=schedule["name"])
    else:
        session.say(
            "Schedule {name} runs next at {time}.",
            name=schedule["name"],
            time=moment(schedule["nextTime"]),
        )
    return OK
