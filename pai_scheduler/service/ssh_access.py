"""Access to tasks by SSH: who may enter which, its address, and an audit of who did."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pai_scheduler.core.events import Accessed
from pai_scheduler.core.model import Attempt, Job, State, Task
from pai_scheduler.core.queries import waiting_reason
from pai_scheduler.engine.protocol import Engine, NoSshEndpointError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.ssh.keys import JobKeys, KeyPair, is_good, ppk, sign_link
from pai_scheduler.ssh.login import LoginName, SessionToken, readings

from .context import ServiceContext
from .ssh_authentication import Authentication, PublicKeys, Users, choose, named, nobody, running

# Through which addresses the running tasks of a job are reached, and why one is not.

#: tasks of which is asked at once, and the seconds after which one's answer is waited for no longer
_AT_ONCE, _SECONDS = 16, 10.0


@dataclass(frozen=True, slots=True)
class SshAddress:
    """A task's own SSH server. `published`: where others than this machine reach it; `off`: why it is not."""

    task: Task
    published: tuple[str, int] | None = None
    off: Message | None = None


async def ssh_addresses(engine: Engine, job: Job, name: str | None = None) -> list[SshAddress]:
    """List the SSH addresses of the running tasks of a job, in the order of its roles.

    `name`: only of the task that is called so (`worker-0`); others are not asked.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def look(task: Task) -> SshAddress:
        # where tasks have no machine of their own nothing is published, and to ask would start a server
        if engine.shares_host_ports:
            return SshAddress(task)
        try:
            async with slots, asyncio.timeout(_SECONDS):
                return SshAddress(task, (await engine.ssh_endpoint(task.ref)).published)
        except NoSshEndpointError as error:
            return SshAddress(task, off=error.message)
        except TimeoutError:
            return SshAddress(task, off=msg("Nobody could say in time whether its SSH server answers."))

    return list(
        await asyncio.gather(*(look(task) for task in running(job) if name in (None, task.ref.hostname)))
    )


# Who opened what in which task, when, from where and for how long: sentences for job events.

_log = logging.getLogger(__name__)

#: Entries of one job that are written at once, and ms after which there may be one more.
_MOST, _EVERY_MS = 300, 60_000
#: Jobs whose entries are counted; beyond that those that have been quiet longest begin anew.
_MOST_JOBS = 10_000
#: Characters of an address or a detail that are kept.
_LONGEST = 100


@dataclass(slots=True)
class _Room:
    """Number of entries that a job may still have at a time (ms); `told`: that there are more than it has."""

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


# Authorizes people to enter tasks, for the SSH gateway: which task is meant, how to reach it.

#: ms for which one may open with a session token
_WEEK_MS = 7 * 24 * 3_600_000
#: connections of which the task is remembered, for the note of their end
_MOST_REMEMBERED = 20_000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class TaskAccess:
    """A task that may be entered: where its SSH server listens, and the keys by which both are known.

    `forward`: the hosts to which it may forward. `notice`: what a user who opens a shell must know.
    `signals`: as the engine has it.
    """

    job: Job
    task: TaskRef
    host: str
    port: int
    identity: KeyPair
    host_key: KeyPair
    forward: Sequence[str]
    notice: Message | None = None
    signals: str | None = None


class SshAuthorization:
    """Decides who comes in."""

    def __init__(self, context: ServiceContext, keys: JobKeys, engine: Engine) -> None:
        self.keys = keys
        self._engine, self._writer, self._now = engine, context.writer, context.clock
        #: which keys users registered, and who logs in
        self.public_keys = PublicKeys(context)
        self.authentication = Authentication(
            keys, self.public_keys, lambda user: context.writer.core.unended(user), context.clock
        )
        self._audit = Audit(context.writer.request)
        #: which task was opened with which session token
        self._opened: OrderedDict[str, TaskRef] = OrderedDict()

    async def open(self, users: Users, login: str, sealed: str) -> TaskAccess:
        """Choose the task that is meant, for somebody who has logged in. RequestError says why not."""
        session_token = self.authentication.read_token(login, sealed)
        if session_token.issued + _WEEK_MS < self._now():
            raise nobody()
        principal = await self.authentication.still(users, session_token)
        core = self._writer.core
        names = [name for name in readings(login) if principal.may_act_for(name.user)]
        jobs = self._jobs_of(names, session_token)
        if session_token.proof == "job" and not jobs:
            raise RequestError(404, "NoJobError", msg("The job of this key has ended."))
        job, task = choose(names, jobs, lambda job: waiting_reason(core, job, self._now()))
        # (the job may be at another attempt once we have waited)
        attempt, ref = job.attempt, task.ref
        try:
            way = await self._engine.ssh_endpoint(ref)
        except NoSshEndpointError as error:
            raise RequestError(409, "NoJobSshInfoError", error.message) from error
        self._remember(sealed, ref)
        notice = None if way.isolated else _no_isolation(job.name)
        identity, host_key = self.keys.identity(job.id), self.keys.host(job.id)
        forward = _forward(attempt)
        return TaskAccess(job, ref, way.host, way.port, identity, host_key, forward, notice, way.signals)

    async def note(
        self, login: str, sealed: str, peer: str, event: str, what: Sequence[str], detail: str, seconds: float
    ) -> None:
        """Write down what somebody opened, or that all of it was closed; returns when it is durable.

        RequestError: it is nobody, or cannot be written down just now.
        """
        session_token = self.authentication.read_token(login, sealed)
        task = self._opened.get(sealed) or self._meant(session_token)
        if task is None:
            return
        if event == "opened":
            await self._audit.opened(session_token, task, peer, what, detail, self._now())
        else:
            await self._audit.closed(session_token, task, peer, what, seconds, self._now())
            self._opened.pop(sealed, None)

    def job_name(self, principal: Principal, user: str, name: str) -> str:
        """Return the name of the job that is meant: a server may be called as JupyterHub calls it."""
        if not principal.may_read(user):
            return name  # it is not theirs to know which there are
        live = (job for job in self._writer.core.jobs.values() if job.user == user and not job.is_decided)
        job = named(live, name)
        return name if job is None else job.name

    async def ssh_addresses(self, job: Job, name: str | None = None) -> list[SshAddress]:
        """List the running tasks of a job, or the one called `name`, and where they are reached."""
        return await ssh_addresses(self._engine, self._writer.core.jobs.get(job.id, job), name)

    def key(self, job_id: str, form: str, comment: str) -> bytes:
        """Return the key of a job as a file: "openssh", "ppk" or "public"."""
        pair = self.keys.identity(job_id)
        if form == "openssh":
            return pair.private
        return (ppk(pair, comment) if form == "ppk" else f"{pair.public} {comment}\n").encode()

    def key_link(self, job_id: str) -> dict[str, str]:
        """Return the parameters of a link to the key of a job."""
        return sign_link(job_id, self._now(), self.keys.signature)

    def is_key_link(self, job_id: str, expires: str, signature: str) -> bool:
        """Return whether these are such parameters, for this job and of now."""
        return is_good(job_id, expires, signature, self._now(), self.keys.signature)

    def _jobs_of(self, names: Sequence[LoginName], session_token: SessionToken) -> list[Job]:
        """List the jobs among which a login name chooses; for a job's key, that job."""
        users = dict.fromkeys(name.user for name in names)
        return [
            job
            for user in users
            for job in self._writer.core.unended(user)
            if session_token.job in ("", job.id)
        ]

    def _remember(self, sealed: str, task: TaskRef) -> None:
        self._opened[sealed] = task
        if len(self._opened) > _MOST_REMEMBERED:
            self._opened.popitem(last=False)

    def _meant(self, session_token: SessionToken) -> TaskRef | None:
        """Find the task again after a restart of ours."""
        principal = Principal(session_token.user, session_token.admin)
        names = [name for name in readings(session_token.login) if principal.may_act_for(name.user)]
        try:
            return choose(names, self._jobs_of(names, session_token), lambda _: None)[1].ref
        except RequestError:
            return None


def _no_isolation(job: str) -> Message:
    return msg(
        "Job {job} runs without a container: this is the scheduler's own machine and account.", job=job
    )


def _forward(attempt: Attempt | None) -> list[str]:
    """List the hosts of an attempt: names and addresses of its tasks, and each one's own."""
    tasks = attempt.tasks.values() if attempt is not None else ()
    names = [task.ref.hostname for task in tasks]
    addresses = [task.address for task in tasks if task.address and task.state is State.RUNNING]
    return list(dict.fromkeys([*_LOOPBACK, *names, *addresses]))
