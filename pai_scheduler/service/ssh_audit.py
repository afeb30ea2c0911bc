"""Who opened what in which task, when, from where and for how long: sentences for job events."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pai_scheduler.core.events import Accessed
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.keys.session_token import SessionToken

_log = logging.getLogger(__name__)

#: Entries of one job that are written at once, and ms after which there may be one more.
_MOST, _EVERY_MS = 300, 60_000
#: Jobs whose entries are counted; beyond that those that have been quiet longest begin anew.
_MOST_JOBS = 10_000
#: Characters of an address or a detail that are kept.
_LONGEST = 100


@dataclass(slots=True)
class _Room:
    """How many entries a job may still have at a time (ms); `told`: that there are more than it has."""

    left: float
    since: int
    told: bool = False


class Audit:
    """Writes job events, and everything into the log.

    `report` returns when an event is durable: the caller tries again where it is not.
    """

    def __init__(self, report: Callable[[Accessed], Awaitable[None]]) -> None:
        self._report = report
        self._rooms: dict[str, _Room] = {}

    async def opened(
        self, who: SessionToken, task: TaskRef, peer: str, what: Sequence[str], detail: str, now: int
    ) -> None:
        """Somebody has begun to do `what` in a task."""
        things = [_thing(kind, _plain(detail)) for kind in what]
        message = msg(
            "{user} opened {what} in {task} from {peer} ({by}).",
            user=who.user,
            what=_joined(things),
            task=task.hostname,
            peer=_plain(peer),
            by=who.by,
        )
        await self._write(
            who, task, now, message, {"event": "opened", "what": list(what), "from": _plain(peer)}
        )

    async def closed(
        self, who: SessionToken, task: TaskRef, peer: str, what: Sequence[str], seconds: float, now: int
    ) -> None:
        """Everything that somebody did in a task over one connection is over."""
        message = msg(
            "{user} left {task} after {seconds:.0f} s: {what}, from {peer}.",
            user=who.user,
            task=task.hostname,
            seconds=seconds,
            what=_joined([_thing(kind, "") for kind in what]),
            peer=_plain(peer),
        )
        data = {"event": "closed", "what": list(what), "from": _plain(peer), "seconds": round(seconds, 1)}
        await self._write(who, task, now, message, data)

    async def _write(
        self, who: SessionToken, task: TaskRef, now: int, message: Message, data: dict[str, object]
    ) -> None:
        _log.info("%s", message, extra={"user": who.user, "task": task.name})
        room = self._rooms.pop(task.job_id, None) or _Room(_MOST, now)
        self._rooms[task.job_id] = room
        if len(self._rooms) > _MOST_JOBS:
            del self._rooms[next(iter(self._rooms))]
        room.left = min(_MOST, room.left + max(0, now - room.since) / _EVERY_MS)
        room.since = now
        if room.left >= 1:
            room.left -= 1
            room.told = False
        elif room.told:
            return
        else:
            room.told = True
            message = msg(
                "More is opened here than is written down one by one; the scheduler's log has it all."
            )
            data = {"event": "more"}
        await self._report(Accessed(task, now, message, {**data, "user": who.user, "by": who.proof}))


def _thing(kind: str, detail: str) -> Message:
    match kind:
        case "shell":
            return msg("a terminal")
        case "exec":
            return msg("a command")
        case "sftp":
            return msg("files (SFTP)")
        case "agent":
            return msg("the SSH agent")
        case "forward" if detail:
            return msg("a way to {where}", where=detail)
        case "forward":
            return msg("forwarded ports")
        case _ if detail:
            return msg("a way back from {where}", where=detail)
        case _:
            return msg("ports back")


def _joined(things: Sequence[Message]) -> Message:
    if not things:
        return msg("nothing")
    joined = things[0]
    for thing in things[1:]:
        joined = msg("{first}, {second}", first=joined, second=thing)
    return joined


def _plain(text: str) -> str:
    """Return what may stand in a sentence of what a stranger sent."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST])
