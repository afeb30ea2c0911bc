"""Prints a task's log, and goes on where it stopped when the connection breaks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import BinaryIO

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import msg
from pai_scheduler.rest.log_position import STAMP_LENGTH, LogPart

#: How long (seconds) a followed log waits for a scheduler that is being restarted, and how often it asks.
PATIENCE_SECONDS = 120.0
_AGAIN_SECONDS = 1.0


async def pick_task(client: Client, user: str, job: str, wanted: str | None, locale: str) -> tuple[str, int]:
    """Return role and index: as written (`worker-0`), else the task that decided the job, else the first."""
    if wanted is not None:
        role, _, number = wanted.rpartition("-")
        if role and number.isascii() and number.isdigit():
            return role, int(number)
        message = msg("{task} is no task; write role and index, for example worker-0.", task=wanted)
        raise ApiError(400, "InvalidParametersError", message.in_locale(locale))
    detail = await client.job(user, job)
    status = detail["jobStatus"]
    tasks = [
        (role, task["taskIndex"])
        for role, tasks in detail["taskRoles"].items()
        for task in tasks["taskStatuses"]
    ]
    trigger = (status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"])
    role, index = next((task for task in tasks if task == trigger), tasks[0])
    if len(tasks) > 1:
        text = msg(
            "This is {task}, one of {count} tasks; name another one to see that.",
            task=f"{role}-{index}",
            count=len(tasks),
        )
        print(text.in_locale(locale), file=sys.stderr)
    return role, index


async def copy_log(
    client: Client,
    user: str,
    job: str,
    role: str,
    index: int,
    stream: str,
    *,
    attempt: int | None,
    follow: bool,
    timestamps: bool,
    to: BinaryIO,
    locale: str,
) -> None:
    """Write a log to `to`; followed, until the task has ended."""

    def parts(offset: int) -> AsyncIterator[LogPart]:
        return client.log_stream(
            user,
            job,
            role,
            index,
            stream,
            attempt=attempt,
            offset=offset,
            follow=follow,
            timestamps=timestamps,
        )

    if not follow:
        async for part in parts(0):
            to.write(part.data)
        to.flush()
        return
    position, within_line = 0, False
    patience = Patience(locale)
    while True:
        try:
            # an answer begins with a time, which a line that goes on has already
            unwanted = STAMP_LENGTH if timestamps and within_line else 0
            async for part in parts(position):
                patience.renew()
                position = part.next_offset
                data, unwanted = part.data[unwanted:], max(0, unwanted - len(part.data))
                if data:
                    within_line = not data.endswith(b"\n")
                    to.write(data)
                    to.flush()
            return
        except UnreachableError as error:
            await patience.wait(error)


class Patience:
    """Waits for a scheduler that was there a moment ago: tasks run on while it is restarted."""

    def __init__(self, locale: str) -> None:
        self._locale = locale
        self._clock = asyncio.get_running_loop().time
        self._since: float | None = None
        self._answered = False

    def renew(self) -> None:
        """The scheduler has answered."""
        self._since, self._answered = None, True

    async def wait(self, error: UnreachableError) -> None:
        """Sleep before another try; raises `error` where there never was an answer, or none for too long."""
        if not self._answered:
            raise error
        if self._since is None:
            self._since = self._clock()
            text = msg("The scheduler does not answer; what runs goes on. Waiting for it to come back.")
            print(text.in_locale(self._locale), file=sys.stderr, flush=True)
        if self._clock() - self._since > PATIENCE_SECONDS:
            raise error
        await asyncio.sleep(_AGAIN_SECONDS)
