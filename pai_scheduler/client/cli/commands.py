"""The commands of `pai`: each asks the scheduler and prints; each gives the exit code."""

from __future__ import annotations

import asyncio
import fnmatch
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

from pai_scheduler.client.rest import ApiError
from pai_scheduler.i18n import msg

from .ending import last_words
from .files import read_job_file
from .logs import copy_log, pick_task
from .session import OK, REFUSED, CliSession, complain
from .show import jobs_table, limits_in_words, nodes_table, show_job, virtual_clusters_table
from .tables import moment, printable_lines
from .usage import show_usage

#: What no job's name has in it, so that it makes a pattern.
_PATTERN = re.compile(r"[*?\[]")
#: ms: who has stopped a job is told for how long its tasks may run on where that is more.
_NOTABLE_MS = 30_000


async def jobs(session: CliSession, *, user: str | None, state: str, limit: int | None) -> int:
    """List jobs."""
    states = state.upper().split(",") if state else ()
    listed = await session.client.jobs(user, states=states, limit=limit)
    if session.as_json:
        session.print_json(listed)
    elif listed:
        print(jobs_table(listed, session.locale))
    else:
        session.say("There are no jobs.")
    return OK


async def show(session: CliSession, *, name: str, user: str | None) -> int:
    """Show a job."""
    detail = await session.client.job(await session.owner(user), name)
    if session.as_json:
        session.print_json(detail)
    else:
        print(show_job(detail, session.locale))
        if said := await last_words(session.client, detail, session.locale):
            print(f"\n{said}")
    return OK


async def logs(
    session: CliSession,
    *,
    name: str,
    user: str | None,
    task: str | None,
    follow: bool,
    timestamps: bool,
    stream: str,
    attempt: int | None,
) -> int:
    """Print a task's log."""
    owner = await session.owner(user)
    role, index = await pick_task(session.client, owner, name, task, session.locale)
    await copy_log(
        session.client,
        owner,
        name,
        role,
        index,
        stream,
        attempt=attempt,
        follow=follow,
        timestamps=timestamps,
        to=sys.stdout.buffer,
        locale=session.locale,
    )
    return OK


async def metrics(
    session: CliSession, *, name: str, user: str | None, task: str | None, follow: bool, attempt: int | None
) -> int:
    """Show what a task uses."""
    owner = await session.owner(user)
    role, index = await pick_task(session.client, owner, name, task, session.locale)
    await show_usage(
        session.client,
        owner,
        name,
        role,
        index,
        attempt=attempt,
        follow=follow,
        as_json=session.as_json,
        locale=session.locale,
    )
    return OK


async def stop(
    session: CliSession, *, names: Sequence[str], user: str | None, reason: str | None, now: bool
) -> int:
    """Stop jobs, or say how they had ended before."""
    owner = await session.owner(user)

    async def stop_one(name: str) -> None:
        await session.client.stop(owner, name, reason=reason, force=now)
        status = (await session.client.job(owner, name))["jobStatus"]
        if session.as_json:
            return
        if status["state"] == "FAILED":
            session.say("Job {name} had failed already; nothing was left to stop.", name=name)
            if status["appExitDiagnostics"]:
                print(printable_lines(status["appExitDiagnostics"]))
        elif status["state"] == "SUCCEEDED":
            session.say("Job {name} had succeeded already; nothing was left to stop.", name=name)
        else:
            session.say("Job {name} is stopped.", name=name)
            until = status["endingUntil"]
            if until is not None and until - 1000 * time.time() > _NOTABLE_MS:
                session.say(
                    "Its tasks have until {time} to end by themselves; pai stop --now {name} kills "
                    "them at once.",
                    name=name,
                    time=moment(until),
                )

    return await _each(session, owner, names, stop_one, states=("WAITING", "RUNNING"))


async def delete(session: CliSession, *, names: Sequence[str], user: str | None) -> int:
    """Delete jobs."""
    owner = await session.owner(user)

    async def delete_one(name: str) -> None:
        await session.client.delete(owner, name)
        if not session.as_json:
            session.say("Job {name} is deleted.", name=name)

    return await _each(session, owner, names, delete_one)


async def _each(
    session: CliSession,
    owner: str,
    names: Sequence[str],
    act: Callable[[str], Awaitable[None]],
    states: Sequence[str] = (),
) -> int:
    """Act on each job that is named or that a pattern means (`*`, `?`, `[…]`), also after one is refused.

    `states`: patterns mean jobs in these (none: in any).
    """
    code, done, chosen = OK, [], dict[str, None]()
    listed: list[str] | None = None
    for name in names:
        if not _PATTERN.search(name):
            chosen[name] = None
            continue
        if listed is None:
            listed = [job["name"] for job in await session.client.jobs(owner, states=states)]
        found = fnmatch.filter(listed, name)
        chosen.update(dict.fromkeys(found))
        if not found:
            complain(msg("No job matches {pattern}.", pattern=name).in_locale(session.locale))
            code = REFUSED
    for name in chosen:
        try:
            await act(name)
            done.append({"name": name})
        except ApiError as error:
            from .failures import tell  # late: it loads SSH

            code = tell(error, session.client.url, session.locale)
    if session.as_json and done:
        session.print_json(done[0] if list(chosen) == list(names) and len(done) == 1 else done)
    return code


async def nodes(session: CliSession) -> int:
    """List the machines."""
    listed = await session.client.nodes()
    if session.as_json:
        session.print_json(listed)
    else:
        print(nodes_table(listed, session.locale))
    return OK


async def vcs(session: CliSession) -> int:
    """List the virtual clusters."""
    listed = await session.client.virtual_clusters()
    if session.as_json:
        session.print_json(listed)
    else:
        print(virtual_clusters_table(listed, session.locale))
    return OK


async def validate(session: CliSession, *, file: str) -> int:
    """Return what is wrong with a job, or whether it fits."""
    validation = await session.client.validate(await asyncio.to_thread(read_job_file, file))
    if session.as_json:
        session.print_json(validation)
        return REFUSED if validation["errors"] else OK
    for found in (*validation["errors"], *validation["warnings"]):
        complain(f"{found['path']}: {found['message']}")
    if not validation["errors"]:
        fits = {
            "now": msg("The job is right, and fits now."),
            "later": msg("The job is right, and will have to wait."),
            "never": msg("The job is right, but cannot run here as it is."),
        }[validation["fits"]]
        limits = [words.in_locale(session.locale) for words in limits_in_words(validation)]
        parts = [fits.in_locale(session.locale), validation["reason"], *limits]
        print(printable_lines(" ".join(filter(None, parts))))
    return REFUSED if validation["errors"] else OK
