"""Shows beside a failure what the task that decided it wrote last: where a person would look next."""

from __future__ import annotations

from ..client import ApiError, Client
from ..job.messages import msg
from ..wire import JobDetail
from .tables import printable

#: So much of a log is asked for, and shown of that.
_LAST_BYTES, _LAST_LINES = 8192, 8


async def last_words(client: Client, detail: JobDetail, locale: str) -> str:
    """Give the last lines of the task that failed the job or its last attempt, with a line above them.

    Empty where nothing has failed, or no task is to blame.
    """
    status = detail["jobStatus"]
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
    try:
        output = await client.log(user, name, role, index, attempt=number, offset=-_LAST_BYTES)
    except ApiError:
        # a log may be gone before its job: what happened is told without it
        return ""
    lines = _lines(output)
    if not lines:
        return msg("{task} has written nothing.", task=f"{role}-{index}").in_locale(locale)
    above = msg("The last lines of {task}'s log:", task=f"{role}-{index}").in_locale(locale)
    return "\n".join([above, *(f"  {line}".rstrip() for line in lines)])


def _lines(output: bytes) -> list[str]:
    """Give the last lines as a terminal would show them: where one was written over, what came last."""
    text = output.decode(errors="replace").replace("\r\n", "\n").rstrip()
    written = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")] if text else []
    return [printable(line.replace("\t", "    ")) for line in written[-_LAST_LINES:]]
