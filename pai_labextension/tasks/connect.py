"""Ways into a task for *Connect*: SSH, ports, code-server; its handlers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote, urlencode

import asyncssh

from pai_labextension.callers import RefusedError
from pai_labextension.messages import msg
from pai_labextension.models import Address, CodeServerInfo, ConnectCheck, ConnectInfo, PortLink
from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError, why_nothing_runs
from pai_scheduler.i18n import Message
from pai_scheduler.rest.models import SshContainer

from .connections import TaskConnections, TaskName
from .ports import Ports
from .terminals import TASK_ERRORS, TaskHandler, reason_of

# VS Code in a browser: starts code-server in a task whose image has it.

#: Seconds after which a task that does not answer is given up; the script waits for less.
_START_SECONDS = 60.0
_SHELL = "exec sh"
#: Starts code-server once in a task, and prints `<its port> <the work folder>`. It listens where the task
#: alone reaches it, so that it asks for no password of its own.
_SCRIPT = r"""
command -v code-server >/dev/null 2>&1 || exit 90
umask 077
place="${HOME:-/}/.cache/pai-code-server/${PAI_CONTAINER_ID:-task}"
mkdir -p "$place" 2>/dev/null || place=$(mktemp -d) || exit 91
runs() { pid=$(cat "$place/pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null; }
cd "${PAI_WORK_DIR:-.}" || exit 91
if ! runs; then
  nohup code-server --auth none --bind-addr 127.0.0.1:0 --disable-telemetry --disable-update-check \
    </dev/null >"$place/log" 2>&1 &
  echo $! >"$place/pid"
fi
says='.*HTTP server listening on http://127\.0\.0\.1:\([0-9][0-9]*\).*'
turn=0
while [ $turn -lt 45 ]; do
  port=$(sed -n "s|$says|\1|p" "$place/log" | tail -n 1)
  if [ -n "$port" ]; then printf '%s %s' "$port" "$PWD"; exit 0; fi
  if ! runs; then tail -n 5 "$place/log" >&2; exit 92; fi
  turn=$((turn + 1))
  sleep 1
done
exit 93
"""
_NOT_THERE = 90


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """Exit status and output of a script; `status` None: unknown."""

    status: int | None
    stdout: str
    stderr: str


async def start_code_server(connection: asyncssh.SSHClientConnection) -> tuple[int, str]:
    """Start it, unless it runs; return its port and the folder to open. RefusedError, asyncssh.Error."""
    try:
        async with asyncio.timeout(_START_SECONDS):
            done = await run_script(connection, _SCRIPT)
    except TimeoutError:
        done = ScriptResult(None, "", "")
    port, _, folder = done.stdout.partition(" ")
    if done.status == 0 and port.isdecimal():
        return int(port), folder
    if done.status == _NOT_THERE:
        raise RefusedError(
            HTTPStatus.CONFLICT,
            msg(
                "There is no code-server in this task. Take an image that has it, or install it in the task: "
                "https://coder.com/docs/code-server/install"
            ),
        )
    reason = done.stderr or msg("it says nothing")
    raise RefusedError(HTTPStatus.CONFLICT, msg("code-server does not start: {reason}", reason=reason))


async def run_script(connection: asyncssh.SSHClientConnection, script: str) -> ScriptResult:
    """Run lines of a shell, which are read by it and no part of any command line."""
    result = await connection.run(_SHELL, input=script, encoding="utf-8", errors="replace")
    return ScriptResult(
        result.exit_status, str(result.stdout or "").strip(), str(result.stderr or "").strip()
    )


# What a person needs to reach a task with a program of theirs, and whether that works.

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
    """Knows for one person the addresses of tasks; ports are below `ports_url`, with a slash at its end."""

    def __init__(self, connections: TaskConnections, ports: Ports, ports_url: str) -> None:
        self._connections, self._ports, self._ports_url = connections, ports, ports_url
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
        """Start code-server in a task, unless it runs; return its address.

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
        return f"{self._ports_url}{'/'.join(quote(part, safe='') for part in parts)}/"


def _published(container: SshContainer | None) -> Address | None:
    if container is None or not container["published"]:
        return None
    return {"host": container["sshIp"], "port": int(container["sshPort"])}


def _checked(ok: bool, message: str, begin: float) -> ConnectCheck:
    return {"ok": ok, "message": message, "milliseconds": round((time.monotonic() - begin) * 1000)}


# `connect/<user>/<job>/<role>-<index>`: how to reach a task, for the page that shows it.


class _ConnectHandler(TaskHandler):
    @property
    def connect(self) -> Connect:
        """Return what knows the caller's ways."""
        access: CallerConnections = self._people.of(self.caller)
        return access.connect


class DescribeHandler(_ConnectHandler):
    """Answers how to connect to a task."""

    async def get(self, *_names: str) -> None:
        """Answer with addresses, or why there are none."""
        await self.check_permission("read")
        try:
            self.finish_json(await self.connect.describe(self.task(), self.locale_asked))
        except ApiError as error:
            raise RefusedError(error.status, error.message) from error
        except UnreachableError as error:
            raise RefusedError(HTTPStatus.BAD_GATEWAY, reason_of(error)) from error


class CheckHandler(_ConnectHandler):
    """Tries a connection to a task, step by step."""

    async def post(self, *_names: str) -> None:
        """Answer with how it went."""
        await self.check_permission("write")
        self.finish_json(await self.connect.check(self.task(), self.locale_asked))


class CodeServerHandler(_ConnectHandler):
    """Starts code-server."""

    async def post(self, *_names: str) -> None:
        """Answer with where it is, or how to get it."""
        await self.check_permission("write")
        try:
            info: CodeServerInfo = {"url": await self.connect.code_server(self.task())}
            self.finish_json(info)
        except TASK_ERRORS as error:
            raise RefusedError(HTTPStatus.BAD_GATEWAY, reason_of(error)) from error


class CallerConnections(TaskConnections):
    """One person's connections to tasks, with the ports that they reach, and what *Connect* says of them."""

    def __init__(self, api_url: str, token: str, ports_url: str) -> None:
        super().__init__(api_url, token)
        self.ports = Ports(self)
        self.connect = Connect(self, self.ports, ports_url)

    async def close(self) -> None:
        """Close all that is open."""
        await self.ports.close()
        await super().close()
