"""Shows beside a failure what the task to blame wrote last: where a person would look next."""

from __future__ import annotations

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.i18n import msg
from pai_scheduler.rest.models import JobDetail

from .tables import printable

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
