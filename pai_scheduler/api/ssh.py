"""SSH over REST: how tasks are reached, their keys and ports, and what the gateway asks."""

from __future__ import annotations

import hmac
import math
from typing import cast, get_args
from urllib.parse import quote, urlencode

from pai_scheduler.api.webhdfs.transfer import attachment
from pai_scheduler.core.model import Job
from pai_scheduler.i18n import Message, choose_locale, msg
from pai_scheduler.job.validation import SpecError
from pai_scheduler.principal import AnonymousReader, Principal
from pai_scheduler.rest.errors import RequestError, invalid_parameters
from pai_scheduler.rest.models import SshContainer, SshInfo, TaskPort
from pai_scheduler.service.ssh_access import SshAddress, SshAuthorization
from pai_scheduler.service.ssh_authentication import HeldLogin
from pai_scheduler.ssh.gateway.protocol import MOST_HELD, Kind, LoginAnswer, StillAnswer, TaskTarget
from pai_scheduler.ssh.keys import key_folder, key_name
from pai_scheduler.ssh.login import LoginName

from .auth import bearer_token, unauthorized
from .base import ApiHandler, Route, routes
from .body import missing, read_fields, read_object
from .operations import NO_JOB, TEXT, Answer, DocumentedRefusal, operation, query

# How a job's tasks are reached by SSH, and the key that opens them.

#: forms of a key, and what the names of their files end in
_FORMS = {"openssh": "", "ppk": ".ppk", "public": ".pub"}
_MISSING = ["NoJobSshInfoError", "NoJobError", "NoApiError"]


class SshHandler(ApiHandler):
    """`…/ssh`: how to reach a job's tasks."""

    public_in_openpai = True

    @operation(
        "GET /user/{user}/jobs/{job}/ssh",
        "ssh",
        "jobs",
        "How to reach a job's running tasks by SSH",
        {200: Answer("The running tasks, and the key that opens them.", SshInfo)},
        description="Through the SSH gateway, or where the administrator publishes the ports of tasks, "
        "directly. A notebook server that runs may also be called by its name in JupyterHub, or `notebook`. "
        "The link to the key is good for ten minutes and needs no token; it is empty for who reads without "
        "one.",
        parameters=[query("task", str, "Only the task that is called so (`worker-0`); no other is asked")],
        refusals=[DocumentedRefusal(404, _MISSING, "Nothing of the job runs, or there is no such job.")],
    )
    async def get(self, user: str, name: str) -> None:
        """List the running tasks, or the one that `task` names; refused where none of them runs."""
        ssh_authorization = self.service.ssh_authorization
        job = await self.service.jobs.get(
            self.principal, user, ssh_authorization.job_name(self.principal, user, name)
        )
        task = self.query_text("task")
        ssh_addresses = await ssh_authorization.ssh_addresses(job, task)
        if not ssh_addresses and task is not None:
            raise _no_ssh(msg("Task {task} of job {name} does not run now.", task=task, name=name))
        if not ssh_addresses:
            raise _no_ssh(msg("Nothing of job {name} runs, so there is nothing to reach by SSH.", name=name))
        key = key_name(job.user, job.name)
        answer: SshInfo = {
            "containers": [self._container(job, ssh_address) for ssh_address in ssh_addresses],
            "keyPair": {
                "folderPath": "/" + "/".join(key_folder(job.user, job.name)),
                "publicKeyFileName": f"{key}.pub",
                "privateKeyFileName": key,
                "privateKeyDirectDownloadLink": self._link(job),
            },
            "gateway": self.context.ssh,
        }
        self.answer(answer)

    def _container(self, job: Job, ssh_address: SshAddress) -> SshContainer:
        gateway, task, off = self.context.ssh, ssh_address.task.ref, ssh_address.off
        host, port, user = "", "", ""
        if ssh_address.published is not None:
            host, port, user = ssh_address.published[0], str(ssh_address.published[1]), "root"
        elif gateway is not None:
            host = gateway["host"] or self.request.host_name
            port, user = str(gateway["port"]), str(LoginName(job.user, job.name, task.hostname))
        else:
            off = off or msg("This scheduler has no SSH gateway.")
        return {
            "id": ssh_address.task.shown_container_id,
            "task": task.hostname,
            "sshIp": host,
            "sshPort": port,
            "sshUser": user,
            "published": ssh_address.published is not None,
            "off": None if off is None else self.in_words(off),
        }

    def _link(self, job: Job) -> str:
        """Return where the key is downloaded; nobody gets it who has not said who it is."""
        if isinstance(self.principal, AnonymousReader):
            return ""
        parameters = urlencode(self.service.ssh_authorization.key_link(job.id))
        place = f"user/{quote(job.user, safe='')}/jobs/{quote(job.name, safe='')}/ssh/key"
        return f"{self.api_url}/{place}?{parameters}"


class SshKeyHandler(ApiHandler):
    """`…/ssh/key`: the key that opens a job's tasks; with a token, or by a link of `…/ssh`."""

    async def identify(self) -> Principal:
        """Find out who asks: by a token, or by the link alone."""
        signature = self.query_text("signature")
        if signature is None or "Authorization" in self.request.headers:
            return await super().identify()
        user, name = self.path_args
        if await self._is_link(user, name, self.query_text("expires") or "", signature):
            return Principal(user)
        # the same for a job that there is not
        raise unauthorized(
            msg(
                "This link is not good, or not any more: links to keys are good for ten minutes. Get another."
            )
        )

    @operation(
        "GET /user/{user}/jobs/{job}/ssh/key",
        "sshKey",
        "jobs",
        "The key that opens a job's tasks, as a file",
        {200: Answer("The key.", others={"text/plain": TEXT})},
        description="Good until the job ends. With a token, or with what a link of `…/ssh` says.",
        token_optional=True,
        parameters=[
            query(
                "format",
                {"enum": [*_FORMS]},
                "openssh; ppk: for PuTTY and WinSCP; public: the public key",
                "openssh",
            ),
            query("expires", str, "Of a link: until when it is good, in seconds since the epoch"),
            query("signature", str, "Of a link: what makes it good without a token"),
        ],
        refusals=[DocumentedRefusal(404, _MISSING, "The job has ended, or there is no such job.")],
    )
    async def get(self, user: str, name: str) -> None:
        """Return the key as a file."""
        form = self.query_text("format") or "openssh"
        if form not in _FORMS:
            message = msg("There is no format {form}, only {forms}.", form=form, forms=", ".join(_FORMS))
            raise invalid_parameters(message, [SpecError("format", message)])
        name = self.service.ssh_authorization.job_name(self.principal, user, name)
        job = await self.service.jobs.get(self.principal, user, name)
        if job.state.ended:
            raise _no_ssh(msg("Job {name} has ended: its key opens nothing any more.", name=name))
        file = key_name(job.user, job.name)
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        self.set_header("Content-Disposition", attachment(file + _FORMS[form]))
        self.finish(self.service.ssh_authorization.key(job.id, form, comment=file))

    async def _is_link(self, user: str, name: str, expires: str, signature: str) -> bool:
        try:
            # a link is made for one job; it says nothing of another's
            job = await self.service.jobs.get(Principal(user), user, name)
        except RequestError as error:
            if error.status >= 500:
                raise
            return False
        return self.service.ssh_authorization.is_key_link(job.id, expires, signature)


def _no_ssh(message: Message) -> RequestError:
    return RequestError(404, "NoJobSshInfoError", message)


# Where the scheduler's machine reaches a port of a task, for what runs there too: the Hub's proxy.


class TaskPortHandler(ApiHandler):
    """`…/tasks/{index}/ports/{port}`."""

    @operation(
        "GET /user/{user}/jobs/{job}/taskRoles/{role}/tasks/{index}/ports/{port}",
        "taskPort",
        "jobs",
        "Where the scheduler's machine reaches a port of a task",
        {200: Answer("An address of that machine, or of the task.", TaskPort)},
        description="A task on another machine gets a port of the scheduler's loopback address, which stays "
        "for as long as the task is there.",
        refusals=[NO_JOB],
    )
    async def get(self, user: str, name: str, role: str, index: str, port: str) -> None:
        """Return where the port is."""
        task = await self.service.tasks.find(self.principal, user, name, role, int(index))
        found = await self.service.tasks.reach(task, int(port))
        answer: TaskPort = {
            "host": None if found is None else found[0],
            "port": int(port) if found is None else found[1],
        }
        self.answer(answer)


# What the SSH gateway asks : who logs in, which task is meant; nobody else asks.

#: who asks, as the log has it
_GATEWAY = Principal("ssh-gateway")


class GatewayHandler(ApiHandler):
    """An address for the gateway alone: no user's token opens it."""

    async def identify(self) -> Principal:
        """Check that the gateway asks, by the token that it was started with."""
        token = bearer_token(self.request.headers.get("Authorization", ""))
        known = self.ssh_authorization.keys.gateway_token()
        if not hmac.compare_digest(known.encode(), token.encode("utf-8", "surrogatepass")):
            raise unauthorized(msg("This is for the SSH gateway only."))
        return _GATEWAY

    @property
    def ssh_authorization(self) -> SshAuthorization:
        """Return who decides; 404 where nobody can log into tasks."""
        return self.service.ssh_authorization


class LoginHandler(GatewayHandler):
    """`/access/login`."""

    async def post(self) -> None:
        """Return who logs in."""
        body = read_fields(self.request, "login", "method", "credential", "peer")
        users = self.context.authenticator
        found = await self.ssh_authorization.authentication.login(
            users, body["login"], body["method"], body["credential"]
        )
        if found is None:
            # (without the challenge that says that the gateway itself is not known)
            self.answer(self.error_body(unauthorized(msg("Nobody is let in with this."))), 401)
            return
        who, sealed = found
        answer: LoginAnswer = {"user": who.user, "by": str(who.by), "session_token": sealed}
        self.answer(answer)


class OpenHandler(GatewayHandler):
    """`/access/open`."""

    async def post(self) -> None:
        """Return which task is meant, and how to reach it."""
        body = read_fields(self.request, "login", "session_token")
        self.language = choose_locale(str(body.get("language", "")))
        way = await self.ssh_authorization.open(
            self.context.authenticator, body["login"], body["session_token"]
        )
        target: TaskTarget = {
            "user": way.job.user,
            "job": way.job.name,
            "task": way.task.hostname,
            "host": way.host,
            "port": way.port,
            "privateKey": way.identity.private.decode(),
            "hostKey": way.host_key.public,
            "forward": list(way.forward),
            "isolated": way.notice is None,
        }
        if way.notice is not None:
            target["notice"] = self.in_words(way.notice)
        if way.signals is not None:
            target["signals"] = way.signals
        self.answer(target)


class NoteHandler(GatewayHandler):
    """`/access/note`."""

    async def post(self) -> None:
        """Write down what was opened or closed."""
        body = read_fields(self.request, "login", "session_token", "peer", "event")
        what = body.get("what")
        if not isinstance(what, list) or not set(map(str, what)) <= set(get_args(Kind)):
            raise missing("what")
        seconds = body.get("seconds", 0.0)
        if not isinstance(seconds, int | float) or not math.isfinite(seconds):
            raise missing("seconds")
        await self.ssh_authorization.note(
            body["login"],
            body["session_token"],
            body["peer"],
            body["event"],
            cast(list[str], what),
            str(body.get("detail", "")),
            float(seconds),
        )
        self.set_status(204)
        self.finish()


class StillHandler(GatewayHandler):
    """`/access/still`."""

    async def post(self) -> None:
        """Return who may not stay."""
        asked = read_object(self.request).get("held")
        if not isinstance(asked, list) or len(asked) > MOST_HELD:
            raise missing("held")
        names = ("login", "session_token", "method", "credential")
        held = []
        for each in asked:
            if not isinstance(each, dict) or not all(isinstance(each.get(name), str) for name in names):
                raise missing("held")
            held.append(HeldLogin(*(each[name] for name in names)))
        answer: StillAnswer = {
            "gone": await self.ssh_authorization.authentication.revoked(self.context.authenticator, held)
        }
        self.answer(answer)


#: below the prefix, not below the API
INNER_ROUTES: list[Route] = [
    ("access/login", LoginHandler),
    ("access/open", OpenHandler),
    ("access/note", NoteHandler),
    ("access/still", StillHandler),
]


ROUTES: list[Route] = routes(SshHandler, SshKeyHandler, TaskPortHandler)
