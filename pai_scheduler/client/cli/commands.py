"""The commands of `pai`: each asks the scheduler and prints; each gives the exit code."""

from __future__ import annotations

import asyncio
import sys

from pai_scheduler.job.messages import msg

from .ending import last_words
from .files import read_job_file
from .logs import copy_log, pick_task
from .session import OK, REFUSED, CliSession
from .show import jobs_table, limits_in_words, nodes_table, show_job, virtual_clusters_table
from .tables import printable_lines
from .usage import show_usage


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


async def stop(session: CliSession, *, name: str, user: str | None, reason: str | None) -> int:
    """Stop a job, or say how it had ended before."""
    owner = await session.owner(user)
    await session.client.stop(owner, name, reason=reason)
    status = (await session.client.job(owner, name))["jobStatus"]
    if status["state"] == "FAILED":
        _done(session, "Job {name} had failed already; nothing was left to stop.", name)
        if status["appExitDiagnostics"] and not session.as_json:
            print(printable_lines(status["appExitDiagnostics"]))
    elif status["state"] == "SUCCEEDED":
        _done(session, "Job {name} had succeeded already; nothing was left to stop.", name)
    else:
        _done(session, "Job {name} is stopped.", name)
    return OK


async def delete(session: CliSession, *, name: str, user: str | None) -> int:
    """Delete a job."""
    await session.client.delete(await session.owner(user), name)
    _done(session, "Job {name} is deleted.", name)
    return OK


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
    elif validation["errors"]:
        for error in validation["errors"]:
            print(printable_lines(f"{error['path']}: {error['message']}"), file=sys.stderr)
    else:
        fits = {
            "now": msg("The job is right, and fits now."),
            "later": msg("The job is right, and will have to wait."),
            "never": msg("The job is right, but cannot run here as it is."),
        }[validation["fits"]]
        limits = [words.in_locale(session.locale) for words in limits_in_words(validation)]
        for told in validation["warnings"]:
            print(printable_lines(f"{told['path']}: {told['message']}"), file=sys.stderr)
        parts = [fits.in_locale(session.locale), validation["reason"], *limits]
        print(printable_lines(" ".join(filter(None, parts))))
    return REFUSED if validation["errors"] else OK


def _done(session: CliSession, template: str, name: str) -> None:
    if session.as_json:
        session.print_json({"name": name})
    else:
        session.say(template, name=name)
