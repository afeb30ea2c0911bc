"""Sessions of clients (shells, commands, SFTP), each with one in the task behind it; the way to that task."""

from __future__ import annotations

import asyncio
import logging
import secrets
import shlex
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import asyncssh

from pai_scheduler.i18n import choose_locale
from pai_scheduler.ssh.task_files import SESSION_VARIABLE

from .protocol import KEEPALIVE_SECONDS, Kind, TaskTarget
from .relay import PACKET_BYTES, ChannelEnd, PeerConnection

# The connection to a task's own SSH server, over which the channels of one client are passed on.


# Which connections may be forwarded: to the task and the tasks of its job, by the names that they have.

_MOST_OF_PORT = 65535
#: how a listener in the task is asked for, whatever the client said: nobody else is to reach it
LOOPBACK = "localhost"


class NotForwardedError(Exception):
    """This is not forwarded; the text says why, for the client and the log."""


def check_port(port: int, least: int = 1) -> None:
    """Refuse what is no port."""
    if not least <= port <= _MOST_OF_PORT:
        raise NotForwardedError(f"{port} is no port")


def check(host: str, allowed: Sequence[str]) -> None:
    """Refuse every host but those that are named, letter by letter: an address has many spellings."""
    if host.lower() not in {name.lower() for name in allowed}:
        shown = ascii(host)[1:-1][:100]
        raise NotForwardedError(f"connections are forwarded to the task and its job only, not to {shown}")


# The connection to a task's own SSH server, over which the channels of one client are passed on.

#: Seconds: until a server that does not answer is given up; for one whose task has just begun to appear.
_CONNECT_SECONDS, _APPEAR_SECONDS, _AGAIN_SECONDS = 15.0, 5.0, 0.2
#: Signs of life that a server may owe; seconds for what is left to send at the end, and between two looks.
_KEEPALIVE_TIMES, _FLUSH_SECONDS, _LOOK_SECONDS = 3, 10.0, 0.05
#: quick ones first; both sides are ours
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "chacha20-poly1305@openssh.com")


class TaskServerUnreachableError(Exception):
    """The task's server cannot be reached; the text says why, for the log."""


class TaskServerConnection(asyncssh.SSHClient):
    """A connection to a task's server; made by `reach`. `when_lost` is called when it ends."""

    def __init__(self, when_lost: Callable[[], None]) -> None:
        self.ssh: asyncssh.SSHClientConnection
        self.line: PeerConnection
        self._when_lost = when_lost

    # what asyncssh calls

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Note the connection."""
        self.ssh = conn
        self.line = PeerConnection(conn.get_extra_info("socket"))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Report that the connection to the task is lost."""
        self.line.outlet.close()
        self._when_lost()

    # what we do

    @property
    def usable(self) -> bool:
        """Return whether channels may be opened in it."""
        # it has no socket any more as soon as it is known to be lost
        return not self.ssh.is_closed() and self.ssh.get_extra_info("socket") is not None

    def finish(self) -> None:
        """End it, when what waits to be sent has been."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FLUSH_SECONDS

        def look() -> None:
            # a peer that takes nothing any more is cut off
            if self.line.sent or loop.time() > deadline:
                self.ssh.close()
            else:
                loop.call_later(_LOOK_SECONDS, look)

        look()

    async def connect(self, client: ChannelEnd, host: str, port: int, orig_host: str, orig_port: int) -> None:
        """Connect to a port, for a client's channel. ChannelOpenError with the task's server's reason."""
        end = ChannelEnd(self.line)
        await self._opened(
            end,
            self.ssh.create_connection(
                lambda: end,
                host,
                port,
                orig_host,
                orig_port,
                window=self.line.window,
                max_pktsize=PACKET_BYTES,
            ),
        )
        end.join(client)

    async def connect_to_path(self, client: ChannelEnd, path: str) -> None:
        """Connect to a socket file in the same way."""
        end = ChannelEnd(self.line)
        await self._opened(
            end,
            self.ssh.create_unix_connection(
                lambda: end, path, window=self.line.window, max_pktsize=PACKET_BYTES
            ),
        )
        end.join(client)

    async def listen(
        self, port: int, open_to_client: Callable[[str, int, int], Awaitable[ChannelEnd]]
    ) -> asyncssh.SSHListener:
        """Have a port of the task's loopback listened to, 0: any. asyncssh.ChannelListenError where not.

        What connects to it before the answer has been read, a moment later, is refused.
        """

        async def connected(orig_host: str, orig_port: int) -> ChannelEnd:
            return await self._to_client(open_to_client(orig_host, orig_port, listener.get_port()))

        listener = await self.ssh.create_server(
            connected, LOOPBACK, port, window=self.line.window, max_pktsize=PACKET_BYTES
        )
        return listener

    async def listen_at_path(
        self, path: str, open_to_client: Callable[[], Awaitable[ChannelEnd]]
    ) -> asyncssh.SSHListener:
        """Have a socket file listened to in the same way."""
        return await self.ssh.create_unix_server(
            lambda: self._to_client(open_to_client()),
            path,
            window=self.line.window,
            max_pktsize=PACKET_BYTES,
        )

    async def _to_client(self, opening: Awaitable[ChannelEnd]) -> ChannelEnd:
        client = await opening
        end = ChannelEnd(self.line)
        end.join(client)
        return end

    @staticmethod
    async def _opened(end: ChannelEnd, opening: Awaitable[object]) -> None:
        try:
            await opening
        except asyncssh.ChannelOpenError:
            end.drop()
            raise
        except (asyncssh.Error, OSError) as error:
            end.drop()
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_CONNECT_FAILED, "the connection to the task is lost"
            ) from error
        except BaseException:
            end.drop()
            raise


async def reach(
    target: TaskTarget,
    when_lost: Callable[[], None],
    keepalive: float = KEEPALIVE_SECONDS,
    agent: str | None = None,
) -> TaskServerConnection:
    """Connect to a task's server; UnreachableError where that cannot be done.

    `keepalive`: seconds after which a silent server is asked for a sign of life. `agent`: the path of an
    agent that is lent to all sessions of this connection.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _APPEAR_SECONDS
    found = TaskServerConnection(when_lost)
    options = _options(target, keepalive, agent)
    while True:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await asyncssh.connect(
                    target["host"],
                    target["port"],
                    # nothing of the account's own settings
                    config=None,
                    options=options,
                    client_factory=lambda: found,
                )
            return found
        except ConnectionRefusedError as error:
            if loop.time() > deadline:
                raise TaskServerUnreachableError(str(error)) from error
            await asyncio.sleep(_AGAIN_SECONDS)
        except (OSError, TimeoutError, asyncssh.Error) as error:
            raise TaskServerUnreachableError(f"{type(error).__name__} {error}") from error


def _options(target: TaskTarget, keepalive: float, agent: str | None) -> Any:
    key = asyncssh.import_private_key(target["privateKey"])
    host_key = asyncssh.import_public_key(target["hostKey"])
    return asyncssh.SSHClientConnectionOptions(
        # nor of its keys and agents
        config=None,
        agent_path=None,
        agent_forwarding=agent or False,
        username="root",
        client_keys=[key],
        known_hosts=([host_key], [], []),
        preferred_auth="publickey",
        encryption_algs=_CIPHERS,
        compression_algs=["none"],
        keepalive_interval=keepalive,
        keepalive_count_max=_KEEPALIVE_TIMES,
    )


# Signals to what a session started in a container, whose SSH server sends none for root.
#
# A program in the container sends them, which is run in a session of its own. It finds what is meant by a
# random token, which the session has brought along in its environment.

#: Signals that wait for the one before them.
_MOST_WAITING = 16
#: Seconds until that program is given up.
_RUN_SECONDS = 30.0

_log = logging.getLogger(__name__)


class Signals:
    """Sends signals to what one session started, one after the other.

    `program`: where it is in the container. `otherwise` is called with the name of a signal that it could not
    send, and may try itself.
    """

    def __init__(
        self, connection: asyncssh.SSHClientConnection, program: str, otherwise: Callable[[str], None]
    ) -> None:
        self._connection, self._program, self._otherwise = connection, program, otherwise
        self._token = secrets.token_hex(16)
        self._waiting: deque[str] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def environment(self) -> dict[bytes, bytes]:
        """Return what the session is to have in its environment."""
        return {SESSION_VARIABLE.encode(): self._token.encode()}

    def send(self, name: str) -> None:
        """Have a signal sent; where too many wait, it is left out."""
        if not (name.isascii() and name.isalnum()):
            # nothing that could be more than a word of the program's line
            self._otherwise(name)
        elif len(self._waiting) < _MOST_WAITING:
            self._waiting.append(name)
            if self._task is None:
                self._task = asyncio.create_task(self._send_all())

    def close(self) -> None:
        """Send nothing more: the session has ended."""
        self._waiting.clear()

    async def _send_all(self) -> None:
        while self._waiting:
            name = self._waiting.popleft()
            if not await self._sent(name):
                self._otherwise(name)
        self._task = None

    async def _sent(self, name: str) -> bool:
        try:
            running = await self._connection.create_process(
                shlex.join((self._program, self._token, name)),
                stdin=asyncssh.DEVNULL,
                stdout=asyncssh.DEVNULL,
                stderr=asyncssh.DEVNULL,
                encoding=None,
            )
            try:
                ended = await running.wait(timeout=_RUN_SECONDS)
            finally:
                running.close()
        except (asyncssh.Error, OSError) as error:
            _log.debug("signal %s could not be sent: %s", name, error)
            return False
        return ended.exit_status == 0


# The sessions of clients (shells, commands, SFTP), each with one in the task behind it.
#
# A client's session is taken at once; it is opened in the task when it is known what it is to start. So
# what stands in the way is said in the client's language, where a person sees it: on the error stream of
# what they start, which then ends with 255.

#: the exit code of what could not be opened, as OpenSSH's client has it
FAILED = 255
#: Signals that are kept until there is something that they can be sent to.
_MOST_SIGNALS = 16
#: Seconds for a task to take the rest of what a client sent who has closed the session.
_LAST_SECONDS = 10.0
_SFTP = "sftp"


class Watcher(Protocol):
    """The connection that a session is in, as far as the session tells it anything."""

    def session_wanted(self, session: ClientEnd) -> None:
        """Have the session opened in the task (`begin`), or say why not (`fail`)."""


class ClientEnd(ChannelEnd, asyncssh.SSHServerSession[bytes]):
    """A client's end of a session."""

    def __init__(self, line: PeerConnection, watcher: Watcher) -> None:
        super().__init__(line)
        #: what is said when a terminal's shell has opened
        self.notice = ""
        #: the program in the task that sends signals to what is started; None: the task's server does
        self.signals: str | None = None
        #: gives the sentence for a way that was lost
        self.lost: Callable[[], str] = lambda: "The connection to the task was lost."
        self._watcher = watcher
        self._session: asyncssh.SSHServerChannel[bytes]
        self._task: TaskEnd | None = None
        self._signals: list[str] = []
        self._said = False

    # what asyncssh calls

    def connection_made(self, chan: Any) -> None:
        """Note the channel."""
        super().connection_made(chan)
        self._session = chan

    def pty_requested(
        self,
        term_type: str,  # noqa: ARG002
        term_size: tuple[int, int, int, int],  # noqa: ARG002
        term_modes: Mapping[int, int],  # noqa: ARG002
    ) -> bool:
        """Accept every request for a terminal: the task's server makes it."""
        return True

    def shell_requested(self) -> bool:
        """Accept every request for a shell."""
        return True

    def exec_requested(self, command: str) -> bool:  # noqa: ARG002
        """Accept every command."""
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        """Accept SFTP; tasks' servers have no other subsystem."""
        return subsystem == _SFTP

    def session_started(self) -> None:
        """Have it opened in the task."""
        super().session_started()
        self._watcher.session_wanted(self)

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        """Pass a size on; until then the channel knows it."""
        if self._task is not None:
            self._task.resize((width, height, pixwidth, pixheight))

    def signal_received(self, signal: str) -> None:
        """Pass a signal on."""
        if self._task is not None:
            self._task.signal(signal)
        elif len(self._signals) < _MOST_SIGNALS:
            self._signals.append(signal)

    def break_received(self, msec: int) -> bool:
        """Pass a break on."""
        if self._task is not None:
            self._task.send_break(msec)
        return True

    # what is asked for

    @property
    def language(self) -> str:
        """The client's language, "en" or "zh_CN", as far as it has said."""
        environment = self._session.get_environment_bytes()
        for name in (b"LC_ALL", b"LC_MESSAGES", b"LANG"):
            if value := environment.get(name):
                return choose_locale(value[:64].decode("ascii", "replace"))
        return "en"

    @property
    def agent(self) -> str | None:
        """Return the path of the client's forwarded agent; None: it forwards none."""
        return self._session.get_agent_path()

    @property
    def kind(self) -> Kind:
        """Return the kind of session to start."""
        if self._session.get_subsystem() is not None:
            return "sftp"
        return "shell" if self._session.get_command() is None else "exec"

    # what comes of it

    async def begin(self, connection: asyncssh.SSHClientConnection, line: PeerConnection) -> None:
        """Open it in the task. `asyncssh.ChannelOpenError` where that cannot be, with the reason."""
        channel = self._session
        task = TaskEnd(line, self)
        environment = channel.get_environment_bytes()
        if self.signals is not None and self.kind != "sftp":
            signals = Signals(connection, self.signals, task.signal_by_server)
            task.signals, environment = signals, {**environment, **signals.environment}
        command, terminal = channel.get_command(), channel.get_terminal_type()
        size = channel.get_terminal_size()
        window = line.window
        try:
            await connection.create_session(
                lambda: task,
                # an empty one would be taken for none
                " " if command == "" else command,
                subsystem=channel.get_subsystem(),
                env=list(environment.items()),
                request_pty=False if terminal is None else "force",
                term_type=terminal,
                term_size=size,
                term_modes=channel.get_terminal_modes(),
                x11_forwarding=False,
                encoding=None,
                window=window,
                max_pktsize=PACKET_BYTES,
            )
        except BaseException:
            task.drop()
            raise
        self._task = task
        if channel.get_terminal_size() != size:
            task.resize(channel.get_terminal_size())
        for signal in self._signals:
            task.signal(signal)

    def greet(self) -> None:
        """Return what is to be known of the task, before it says anything itself."""
        if self.notice and self.kind == "shell" and self._session.get_terminal_type() is not None:
            self.write(self._words(self.notice))

    def fail(self, words: str) -> None:
        """Return why nothing comes of it, and end it."""
        if not self._said:
            self.write(self._words(words), asyncssh.EXTENDED_DATA_STDERR)
            self.exited(FAILED)

    def exited(self, status: int) -> None:
        """Send the exit code, and close."""
        self._said = True
        self._session.exit(status)

    def killed(self, signal: str, core_dumped: bool, words: str, language: str) -> None:
        """Send the signal that ended it, and close."""
        self._said = True
        self._session.exit_with_signal(signal, core_dumped, words, language)

    def xon_xoff(self, client_can_do: bool) -> None:
        """Return who is to stop and start the output."""
        self._session.set_xon_xoff(client_can_do)

    def _words(self, words: str) -> bytes:
        ending = "\n" if self._session.get_terminal_type() is None else "\r\n"
        return (ending.join(words.splitlines()) + ending).encode()


class TaskEnd(ChannelEnd, asyncssh.SSHClientSession[bytes]):
    """The task's end of a session."""

    def __init__(self, line: PeerConnection, client: ClientEnd) -> None:
        super().__init__(line)
        #: None: the task's server sends them
        self.signals: Signals | None = None
        self._client = client
        self._session: asyncssh.SSHClientChannel[bytes]
        self._end: Callable[[], None] | None = None

    def connection_made(self, chan: Any) -> None:
        """Note the channel."""
        super().connection_made(chan)
        self._session = chan

    def session_started(self) -> None:
        """Pass on from now on."""
        self._client.greet()
        self.join(self._client)
        super().session_started()

    def xon_xoff_requested(self, client_can_do: bool) -> None:
        """Pass on who is to stop and start the output."""
        self._client.xon_xoff(client_can_do)

    def eof_received(self) -> bool:
        """Send the end of the output with the end of the session only.

        A client that has sent all closes the channel then, and could not be told the exit code any more.
        """
        return True

    def exit_status_received(self, status: int) -> None:
        """Keep the exit code until all that was written has been passed on."""
        self._end = lambda: self._client.exited(status)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """Keep the signal in the same way."""
        self._end = lambda: self._client.killed(signal, core_dumped, msg, lang)

    def connection_lost(self, exc: Exception | None) -> None:
        """Return how it ended: the task's server has closed the session, or the connection is lost."""
        if self.signals is not None:
            self.signals.close()
        if self._end is not None:
            self._end()
        elif self._session.get_extra_info("socket") is None:  # of the connection
            self._client.fail(self._client.lost())
        super().connection_lost(exc)

    def resize(self, size: tuple[int, int, int, int]) -> None:
        """Send a terminal's new size."""
        self._session.change_terminal_size(*size)

    def signal(self, name: str) -> None:
        """Send a signal to what was started."""
        if self.signals is not None:
            self.signals.send(name)
        else:
            self.signal_by_server(name)

    def signal_by_server(self, name: str) -> None:
        """Have the task's server send a signal, unless it has all ended."""
        if not self._gone:
            self._session.send_signal(name)

    def send_break(self, milliseconds: int) -> None:
        """Send a break to what was started."""
        self._session.send_break(milliseconds)

    def _close(self) -> None:
        if self.waiting:
            # then `resume_writing` comes when all is sent
            self._session.set_write_buffer_limits(0)
            asyncio.get_running_loop().call_later(_LAST_SECONDS, self._session.abort)
        else:
            super()._close()
