"""What a person needs to reach a task with a program of theirs, and whether that works."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container
from urllib.parse import quote, urlencode

from pai_labextension.answers import Address, ConnectCheck, ConnectInfo, PortLink
from pai_labextension.messages import msg
from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.client.ssh.connection import RemoteError, why_nothing_runs
from pai_scheduler.i18n import Message
from pai_scheduler.rest.models import SshContainer

from .code_server import run_script, start_code_server
from .connections import TaskConnections, TaskName
from .handlers import TASK_ERRORS, reason_of
from .ports import Ports

#: Seconds after which a task that does not answer is given up.
_CHECK_SECONDS = 30.0
#: The label of the task's own SSH server, which is no application.
_SSH = "ssh"
#: The label of a notebook server's own port. Its page knows only the address that JupyterHub gives it.
_HTTP = "http"
#: Prints the path of the Python that commands find, if there is one, and on the lines below it the folder.
_PLACES = """command -v python3 || command -v python || echo -
printf %s "${PAI_WORK_DIR:-$PWD}"
"""


class Connect:
    """Knows the addresses of tasks; `base_url` is the notebook server's, with a slash at its end."""

    def __init__(self, connections: TaskConnections, ports: Ports, base_url: str) -> None:
        self._connections, self._ports, self._base_url = connections, ports, base_url
        self._starting = asyncio.Lock()

    async def describe(self, task: TaskName, locale: str) -> ConnectInfo:
        """Return how to connect; `off`: why one cannot. Raises `ApiError`, `UnreachableError`."""
        self._connections.locale = locale
        async with self._connections.client() as client:
            about = await client.about()
            try:
                info = await client.ssh(task.user, task.job, task.task)
            except ApiError as error:
                if error.code != "NoJobSshInfoError":
                    raise
                info = None
            containers = info["containers"] if info is not None else []
            found = next((one for one in containers if one["task"] == task.task), None)
            off = found["off"] if found is not None else (await self._off(client, task)).in_locale(locale)
            config = await client.config(task.user, task.job) if found is not None else {}
        python, work_dir = await self._places(task) if found is not None and off is None else ("", "")
        hidden = {_SSH, _HTTP} if "session" in (config.get("extras") or {}) else {_SSH}
        return {
            "login": f"{task.user}+{task.job}+{task.task}",
            "user": task.user,
            "job": task.job,
            "task": task.task,
            "gateway": about["ssh"],
            "published": _published(found),
            "off": off,
            "workDir": work_dir,
            "python": python,
            "ports": await self._links(task, hidden) if found is not None else [],
            "isolated": about["engine"] != "process",
        }

    async def check(self, task: TaskName, locale: str) -> ConnectCheck:
        """Log in and run a command; tell how that went."""
        begin = time.monotonic()
        self._connections.locale = locale
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                connection = await self._connections.open(task)
                try:
                    done = await run_script(connection, "true\n")
                finally:
                    connection.close()
        except TimeoutError:
            message = msg("No answer within {seconds} seconds.", seconds=round(_CHECK_SECONDS)).in_locale(
                locale
            )
            return _checked(False, message, begin)
        except TASK_ERRORS as error:
            return _checked(False, reason_of(error).in_locale(locale), begin)
        if done.status == 0:
            return _checked(True, msg("It works: logged in and ran a command.").in_locale(locale), begin)
        reason = done.stderr or str(done.status)
        return _checked(
            False, msg("Logged in, but no command ran: {reason}", reason=reason).in_locale(locale), begin
        )

    async def code_server(self, task: TaskName) -> str:
        """Start code-server in a task, unless it runs; return its address below this server.

        RefusedError where there is none or it is not theirs, RemoteError, asyncssh.Error, `ApiError`,
        `UnreachableError`.
        """
        await self._ports.check_owner(task)
        async with self._starting, self._connections.connection(task).use() as connection:
            port, folder = await start_code_server(connection)
        return f"{self._url(task, str(port))}?{urlencode({'folder': folder})}"

    async def _off(self, client: Client, task: TaskName) -> Message:
        detail = await client.job(task.user, task.job)
        if detail["jobStatus"]["subState"] == "RUNNING":
            return msg("{task} of job {job} does not run.", task=task.task, job=task.job)
        return await why_nothing_runs(client, task.user, task.job)

    async def _places(self, task: TaskName) -> tuple[str, str]:
        """Ask the task for its Python, and for the folder in which sessions begin; "" where that fails."""
        try:
            async with asyncio.timeout(_CHECK_SECONDS), self._connections.connection(task).use() as way:
                python, _, folder = (await run_script(way, _PLACES)).stdout.partition("\n")
        except TASK_ERRORS:
            # the check says what is wrong, to those who ask
            return "", ""
        return python if python.startswith("/") else "", folder

    async def _links(self, task: TaskName, hidden: Container[str]) -> list[PortLink]:
        try:
            if task.user != await self._connections.owner():
                return []
            ports = await self._ports.of(task)
        except RemoteError:
            # it has just ended
            return []
        return [
            {"label": label, "port": port, "url": self._url(task, label)}
            for label, port in ports.listed()
            if label not in hidden
        ]

    def _url(self, task: TaskName, label: str) -> str:
        parts = (task.user, task.job, task.task, label)
        return f"{self._base_url}pai/ports/{'/'.join(quote(part, safe='') for part in parts)}/"


def _published(container: SshContainer | None) -> Address | None:
    if container is None or not container["published"]:
        return None
    return {"host": container["sshIp"], "port": int(container["sshPort"])}


def _checked(ok: bool, message: str, begin: float) -> ConnectCheck:
    return {"ok": ok, "message": message, "milliseconds": round((time.monotonic() - begin) * 1000)}
