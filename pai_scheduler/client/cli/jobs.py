"""`pai jobs`, `show`, `watch`, `stop` and others: each asks the scheduler, prints, and returns."""

from __future__ import annotations

import asyncio
import fnmatch
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import msg
from pai_scheduler.rest.models import JobDetail

from .logs import Patience, copy_log, pick_task, show_usage
from .session import (
    OK,
    REFUSED,
    CliSession,
    complain,
    moment,
    printable,
    printable_lines,
    read_job_file,
)
from .show import jobs_table, limits_in_words, nodes_table, show_job, virtual_clusters_table

# Follows a job to its end: prints its events as they happen, then how it came out and what it wrote.

JOB_FAILED = 4
#: Bytes of the log shown after a job that failed.
LAST_BYTES = 4000


async def watch(client: Client, user: str, name: str, locale: str, *, as_json: bool) -> int:
    """Return what happens until the job has ended; return the exit code for its outcome."""
    await _report_events(client, user, name, locale, quiet=as_json)
    detail = await client.job(user, name)
    status = detail["jobStatus"]
    if as_json:
        print(json.dumps(detail, ensure_ascii=False, indent=2))
    else:
        await _print_log(client, user, name, locale)
        outcome = msg(
            "Job {name}: {state}. {reason}",
            name=name,
            state=status["state"],
            reason=status["appExitDiagnostics"],
        )
        print(printable_lines(outcome.in_locale(locale).rstrip()), file=sys.stderr)
    return OK if status["state"] == "SUCCEEDED" else JOB_FAILED


async def _report_events(client: Client, user: str, name: str, locale: str, *, quiet: bool) -> None:
    seen = 0
    patience = Patience(locale)
    while True:
        try:
            async for event in client.events(user, name, after=seen):
                patience.renew()
                seen = event["id"]
                if quiet:
                    continue
                _tell(event["time"], event["message"])
                if event["type"] == "submitted":
                    reason = (await client.job(user, name))["jobStatus"]["waitingReason"]
                    if reason:
                        _tell(event["time"], reason)
            return
        except UnreachableError as error:
            await patience.wait(error)


def _tell(time: int, text: str) -> None:
    print(f"{moment(time)}  {printable(text)}", file=sys.stderr, flush=True)


async def _print_log(client: Client, user: str, name: str, locale: str) -> None:
    role, index = await pick_task(client, user, name, None, locale)
    sys.stdout.buffer.write(await client.log(user, name, role, index, offset=-LAST_BYTES))
    sys.stdout.flush()


# Shows beside a failure what the task to blame wrote last: where a person would look next.

#: So much of a log is asked for, and shown of that.
_LAST_BYTES, _LAST_LINES = 8192, 8


async def last_words(client: Client, detail: JobDetail, locale: str) -> str:
    """Return the last lines of the task that failed the job or its last attempt, with a line above them.

    Of a debugged job whose containers are kept, what failed and for how long it stays stands above.
    Empty where nothing has failed, or no task is to blame.
    """
    status = detail["jobStatus"]
    if status["subState"] == "DEBUG_HELD":
        return await _held(client, detail, locale)
    if status["state"] != "FAILED" and not (status["state"] == "WAITING" and status["retries"]):
        return ""
    user, name = status["username"], detail["name"]
    failed = [attempt for attempt in await client.attempts(user, name) if attempt["state"] == "FAILED"]
    if not failed or failed[-1]["trigger"] is None:
        return ""
    number, trigger = failed[-1]["attempt"], failed[-1]["trigger"]
    role, index = trigger["taskRole"], trigger["taskIndex"]
    if not failed[-1]["taskRoles"][role]["taskStatuses"][index]["containerId"]:
        return ""  # it never ran
    return await _log_end(client, detail, role, index, number, locale)


async def _held(client: Client, detail: JobDetail, locale: str) -> str:
    """Return why and how long each kept task stays, how to end that, and what the first wrote last."""
    user, name = detail["jobStatus"]["username"], detail["name"]
    attempt = detail["jobStatus"]["retries"]
    held = [
        event
        for event in await client.list_events(user, name)
        if event["type"] == "held" and event["attempt"] == attempt
    ]
    if not held or held[0]["taskRole"] is None or held[0]["taskIndex"] is None:
        return ""
    stop = msg("When you have seen enough: pai stop {name}", name=name).in_locale(locale)
    sentences = [printable(event["message"]) for event in held]
    end = await _log_end(client, detail, held[0]["taskRole"], held[0]["taskIndex"], attempt, locale)
    return "\n".join([*sentences, stop, *(["", end] if end else [])])


async def _log_end(
    client: Client, detail: JobDetail, role: str, index: int, attempt: int, locale: str
) -> str:
    user, name = detail["jobStatus"]["username"], detail["name"]
    try:
        output = await client.log(user, name, role, index, attempt=attempt, offset=-_LAST_BYTES)
    except ApiError:
        # a log may be gone before its job: what happened is told without it
        return ""
    lines = _lines(output)
    if not lines:
        return msg("{task} has written nothing.", task=f"{role}-{index}").in_locale(locale)
    above = msg("The last lines of {task}'s log:", task=f"{role}-{index}").in_locale(locale)
    return "\n".join([above, *(f"  {line}".rstrip() for line in lines)])


def _lines(output: bytes) -> list[str]:
    """Return the last lines as a terminal would show them: where one was written over, what came last."""
    text = output.decode(errors="replace").replace("\r\n", "\n").rstrip()
    written = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")] if text else []
    return [printable(line.replace("\t", "    ")) for line in written[-_LAST_LINES:]]


# The commands of `pai`: each asks the scheduler and prints; each gives the exit code.

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
