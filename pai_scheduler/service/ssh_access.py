"""Authorizes people to enter tasks, for the SSH gateway: which task is meant, how to reach it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pai_scheduler.core.model import Attempt, Job, State
from pai_scheduler.core.queries import waiting_reason
from pai_scheduler.engine.protocol import Engine, NoSshEndpointError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.ssh.keys.job_keys import JobKeys, KeyPair
from pai_scheduler.ssh.keys.login_name import LoginName, readings
from pai_scheduler.ssh.keys.ppk import ppk
from pai_scheduler.ssh.keys.session_token import SessionToken
from pai_scheduler.ssh.keys.signed_link import is_good, sign_link
from pai_scheduler.store.store import Store

from .reader import Reader
from .ssh_addresses import SshAddress, ssh_addresses
from .ssh_audit import Audit
from .ssh_authentication import Authentication, Users, nobody
from .ssh_public_keys import PublicKeys
from .ssh_task_choice import choose, named
from .writer import Writer

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
    """Decides who comes in. `clock` gives ms since the epoch."""

    def __init__(
        self,
        keys: JobKeys,
        engine: Engine,
        store: Store,
        reader: Reader,
        writer: Writer,
        clock: Callable[[], int],
    ) -> None:
        self.keys = keys
        self._engine, self._writer = engine, writer
        #: which keys users registered, and who logs in
        self.public_keys = PublicKeys(store, reader, writer, clock)
        self.authentication = Authentication(
            keys, self.public_keys, lambda user: writer.core.unended(user), clock
        )
        self._now = clock
        self._audit = Audit(writer.request)
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
