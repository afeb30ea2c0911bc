"""The SSH server of a task: who is let in, their sessions, what is forwarded, and when it goes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import ipaddress
import os
import re
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, cast

import asyncssh

from pai_scheduler.engine.process import procfs
from pai_scheduler.engine.process.ssh_server import SshServerRegistration
from pai_scheduler.engine.process.task_cgroup import TaskGroup
from pai_scheduler.engine.process.task_folder import COOKIE, TaskFolder
from pai_scheduler.ssh.task_files import AUTHORIZED_KEYS, HOST_KEY

# Sessions of a task's SSH connections (shell, command, files), their terminals and programs.


# Pseudo-terminals as an SSH client asks for them: size and modes (RFC 4254, section 8).

#: number in the protocol: index of the control character, or flag; those that this machine has
_MODES: dict[int, int] = {
    number: getattr(termios, name.removeprefix("PTY_"))
    for name, number in vars(asyncssh).items()
    if name.startswith("PTY_") and hasattr(termios, name.removeprefix("PTY_"))
} | {
    # one that the library calls otherwise, and one that the standard library has no name for
    asyncssh.PTY_WERASE: termios.VWERASE,
    asyncssh.PTY_IUTF8: 0x4000,
}
#: tens of a flag's number: which word of the terminal's attributes it is in (0 input, 1 output, 3 local)
_WORDS = {3: 0, 4: 0, 5: 3, 6: 3, 7: 1}
_LAST_CHARACTER = asyncssh.PTY_VDISCARD
#: what a client says of a control character that it has none for
_NO_CHARACTER = 255


def open_terminal(size: tuple[int, int, int, int], modes: Mapping[int, int]) -> tuple[int, int]:
    """Make a terminal; return the descriptors of our side of it and of the programs'."""
    ours, theirs = os.openpty()
    set_size(ours, size)
    attributes = termios.tcgetattr(theirs)
    characters = attributes[6]
    for number, value in modes.items():
        if (mode := _MODES.get(number)) is None:
            continue
        if number <= _LAST_CHARACTER:
            characters[mode] = bytes([0 if value == _NO_CHARACTER else value & 0xFF])
        elif (word := _WORDS.get(number // 10)) is not None:
            attributes[word] = attributes[word] | mode if value else attributes[word] & ~mode
    with contextlib.suppress(termios.error):
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    return ours, theirs


def set_size(terminal: int, size: tuple[int, int, int, int]) -> None:
    """Set width and height in characters, then in pixels; nonsense is cut to what a terminal can be."""
    columns, rows, width, height = (min(max(0, number), 0xFFFF) for number in size)
    with contextlib.suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, width, height))


# The task that a server is for: what its folder says of it, and which processes are its own.


class LocalTask:
    """A launched task. OSError, ValueError where its folder cannot be read."""

    def __init__(self, path: Path) -> None:
        folder = TaskFolder(path)
        spec = folder.launch_spec()
        port = spec.get("ssh_port")
        if not port:
            raise ValueError("the task has no port for an SSH server")
        self.port = port
        #: those that it was given
        self.ports = frozenset(spec.get("ports", ()))
        #: the whole environment of its command
        self.env = dict(spec["env"])
        #: where sessions begin: the job may name another folder than the task's own, such as a home
        self.work = folder.work if (own := _folder(self.env.get("PAI_WORK_DIR"))) is None else own
        self.group = TaskGroup(spec["groups"])
        self.host_key = (folder.private / HOST_KEY).read_bytes()
        self.authorized_keys = (folder.private / AUTHORIZED_KEYS).read_text()
        self._folder = folder

    def shell(self) -> str:
        """Return the shell that a person of this task gets: $SHELL, else bash or sh."""
        own = self.env.get("SHELL", "")
        path = self.env.get("PATH", os.defpath)
        # an account without log-in has a shell that only says so
        usable = own.startswith("/") and os.access(own, os.X_OK) and not own.endswith(("/nologin", "/false"))
        return (
            own if usable else shutil.which("bash", path=path) or shutil.which("sh", path=path) or "/bin/sh"
        )

    def processes(self) -> set[int]:
        """List the task's processes: in its cgroups, with its mark, or below its supervisor."""
        _, record = self._folder.read()
        found = self.group.processes()
        if mark := self.env.get(COOKIE):
            found.update(procfs.with_variable(COOKIE, mark))
        # not there while it is being written
        if supervisor := record.get("supervisor"):
            found.update(process.pid for process in procfs.tree(supervisor))
        return found


def _folder(path: str | None) -> Path | None:
    """Return a folder that there is, by its whole path."""
    try:
        return Path(path) if path and path.startswith("/") and Path(path).is_dir() else None
    except OSError:  # it may not be looked at
        return None


# Programs that a session starts in the task: in its folder, with its environment, in its cgroups.

#: The protocol's signals; another has a name of OpenSSH's making.
_SIGNALS = re.compile("ABRT|ALRM|FPE|HUP|ILL|INT|KILL|PIPE|QUIT|SEGV|TERM|USR1|USR2")


def start(
    task: LocalTask, argv: Sequence[str], env: Mapping[str, str], terminal: int | None = None
) -> subprocess.Popen[bytes]:
    """Start a program on a terminal (its programs' side), else on pipes; OSError, ValueError."""
    stream = subprocess.PIPE if terminal is None else terminal

    def become() -> None:
        task.group.join()
        if terminal is not None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    try:
        # between fork and exec nothing runs that could wait for what another thread had at the fork
        return subprocess.Popen(  # noqa: S603
            argv,
            bufsize=0,
            stdin=stream,
            stdout=stream,
            stderr=stream,
            cwd=task.work,
            env={_bytes(name): _bytes(value) for name, value in env.items()},
            start_new_session=True,
            preexec_fn=become,
        )
    except subprocess.SubprocessError:  # all that it says of `become`
        raise ProcessLookupError(errno.ESRCH, "The task takes no more processes; it may be ending") from None


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a program and the processes of its group, unless it has ended."""
    # that it was not waited for keeps its number from becoming another's
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def signal_number(name: str) -> signal.Signals | None:
    """Return the signal that the protocol calls `name`; None where there is none."""
    found = getattr(signal, f"SIG{name}", None) if name.isalnum() else None
    return found if isinstance(found, signal.Signals) else None


def signal_name(number: int) -> str:
    """Return what the protocol, or OpenSSH, calls a signal."""
    try:
        name = signal.Signals(number).name.removeprefix("SIG")
    except ValueError:  # a real-time signal between those with names
        name = f"RTMIN+{number - signal.SIGRTMIN}"
    return name if _SIGNALS.fullmatch(name) else f"{name}@openssh.com"


class Reaper:
    """Reaps the programs that end, whether somebody still waits for them or not.

    Not asyncio's own processes: those are killed with the server, where a program may be meant to stay.
    """

    def __init__(self) -> None:
        self._running: dict[subprocess.Popen[bytes], asyncio.Event] = {}
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._look)

    def watch(self, process: subprocess.Popen[bytes]) -> asyncio.Event:
        """Return what is set once the program has ended; its `returncode` is known by then."""
        ended = self._running[process] = asyncio.Event()
        self._look()
        return ended

    def _look(self) -> None:
        for process in list(self._running):
            if process.poll() is not None:
                self._running.pop(process).set()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


# One session of an SSH connection: a shell, a command, or files.

#: What a client may tell of itself, where the task does not say it: names, or how they begin.
_CLIENT_VARIABLES = ("LANG", "LC_", "COLORTERM")
#: The version of SFTP that everybody speaks.
_VERSION = 3
_CHUNK = 32 * 1024
#: Most that is still read of a terminal whose shell has ended, when something else goes on writing to it.
_LAST_WORDS = 256 * 1024


class SshSession(asyncssh.SSHServerProcess[bytes]):
    """Runs what the client asks for; files (SFTP, scp) are served by the library."""

    def __init__(self, task: LocalTask, reaper: Reaper) -> None:
        super().__init__(self._run, _files, _VERSION, allow_scp=True)
        self._task, self._reaper = task, reaper
        self._program: subprocess.Popen[bytes] | None = None
        #: our side of its terminal
        self._terminal: int | None = None
        self._running: asyncio.Task[None] | None = None

    def subsystem_requested(self, subsystem: str) -> bool:
        """Accept SFTP, and no other subsystem."""
        return subsystem == "sftp"

    async def _run(self, _process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Run what was asked for to its end, or until the client goes."""
        if self.channel.is_closing():
            return
        shell = self._task.shell()
        argv = [shell] if self.command is None else [shell, "-c", self.command]
        try:
            program = self._start(argv, {**self._environment(), "SHELL": shell})
        except (OSError, ValueError) as error:
            self.stderr.write(f"{shell}: {error}\n".encode(errors="backslashreplace"))
            self.exit(255)
            return
        self._program, self._running = program, asyncio.current_task()
        ended = self._reaper.watch(program)
        feeding = asyncio.create_task(self._feed(program))
        try:
            await (self._pass_pipes_on(program) if self._terminal is None else self._pass_terminal_on(ended))
            await ended.wait()
            if program.returncode < 0:
                self.exit_with_signal(signal_name(-program.returncode))
            else:
                self.exit(program.returncode)
        finally:
            feeding.cancel()
            self._hang_up(program)

    def _start(self, argv: list[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        if self.term_type is None:
            return start(self._task, argv, env)
        ours, theirs = open_terminal(self.term_size, self.term_modes)
        try:
            more = {"TERM": self.term_type or "dumb", "SSH_TTY": os.ttyname(theirs)}
            program = start(self._task, argv, {**env, **more}, theirs)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self._terminal = ours
        return program

    def _environment(self) -> dict[str, str]:
        told = {name: value for name, value in self.env.items() if name.startswith(_CLIENT_VARIABLES)}
        client, server = (self.get_extra_info(name) or ("", 0) for name in ("peername", "sockname"))
        env = {
            **told,
            **self._task.env,
            "SSH_CLIENT": f"{client[0]} {client[1]} {server[1]}",
            "SSH_CONNECTION": f"{client[0]} {client[1]} {server[0]} {server[1]}",
        }
        if agent := self.channel.get_agent_path():
            env["SSH_AUTH_SOCK"] = agent
        return env

    async def _feed(self, program: subprocess.Popen[bytes]) -> None:
        """Hand input on; while the program does not read, the client may send no more than a window."""
        # a terminal has no end: only the pipe is closed with it
        with program.stdin or os.fdopen(os.dup(cast("int", self._terminal)), "wb", buffering=0) as target:
            os.set_blocking(target.fileno(), False)
            with suppress(asyncssh.Error, OSError):  # the client has gone
                while data := await self.stdin.read(_CHUNK):
                    await _write(target.fileno(), data)

    async def _pass_pipes_on(self, program: subprocess.Popen[bytes]) -> None:
        """Hand output on to its end, as OpenSSH does: whoever still has the pipes may write."""
        await self.redirect(stdout=program.stdout, stderr=program.stderr, send_eof=False)
        await self.stdout.drain()
        await self.stderr.drain()
        self.stdout.write_eof()

    async def _pass_terminal_on(self, ended: asyncio.Event) -> None:
        """Hand output on until the shell has ended: what it leaves behind may keep the terminal open."""
        terminal = cast("int", self._terminal)
        await self.redirect_stdout(os.dup(terminal), send_eof=False)
        await ended.wait()
        with suppress(OSError):  # there is no more
            left = _LAST_WORDS
            while left > 0 and (data := os.read(terminal, _CHUNK)):
                self.stdout.write(data)
                left -= len(data)
        await self.redirect_stdout(asyncssh.DEVNULL)

    def _hang_up(self, program: subprocess.Popen[bytes]) -> None:
        """Let go: the program and its group are told, as by a terminal that is closed."""
        signal_group(program, signal.SIGHUP)
        # one that is stopped hears it only when it goes on
        signal_group(program, signal.SIGCONT)
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        """Resize the terminal, which signals its programs."""
        if self._terminal is not None:
            set_size(self._terminal, (width, height, pixwidth, pixheight))

    def signal_received(self, signal: str) -> None:
        """Send a signal to the program and its group; one that there is not is left out."""
        number = signal_number(signal)
        if self._program and number:
            signal_group(self._program, number)

    def break_received(self, msec: int) -> bool:  # noqa: ARG002
        """Send a break, which only a terminal knows."""
        if self._terminal is not None:
            with suppress(termios.error):
                termios.tcsendbreak(self._terminal, 0)
        return self._terminal is not None

    def connection_lost(self, exc: Exception | None) -> None:
        """Hang up."""
        super().connection_lost(exc)
        if self._running:
            self._running.cancel()


class _Files(asyncssh.SFTPServer):
    """Ends as OpenSSH's server does: `scp` takes the library's end, without an exit code, for a failure."""

    def exit(self) -> None:
        """Exit with code 0, and close."""
        cast("asyncssh.SSHServerChannel[bytes]", self.channel).exit(0)


def _files(channel: Any) -> asyncssh.SFTPServer:
    return _Files(channel)


async def _write(descriptor: int, data: bytes) -> None:
    """Write all of it, as fast as it is read; what nobody reads any more is dropped."""
    loop = asyncio.get_running_loop()
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            ready = asyncio.Event()
            loop.add_writer(descriptor, ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_writer(descriptor)
        except OSError:
            return


# Which sockets of this machine a task's processes listen on, from /proc: connections go to no others.

_LISTEN = "0A"
#: of /proc/net/unix: SO_ACCEPTCON
_ACCEPTS = 0x10000

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class SocketOwner(Enum):
    """The owner of the socket that listens at an address."""

    NOBODY = "nobody"
    TASK = "task"
    OTHER = "other"


class _Socket(NamedTuple):
    address: _Address
    port: int
    inode: int


def owner_of_port(address: str, port: int, task: Iterable[int]) -> SocketOwner:
    """Return whether a connection to `address` (on loopback) would reach one of the processes `task`."""
    wanted = ipaddress.ip_address(address)
    sockets = [socket for socket in _tcp_listeners() if socket.port == port]
    # the kernel prefers the socket that is bound to the address itself
    exact = [socket.inode for socket in sockets if socket.address == wanted]
    wildcard = [
        socket.inode
        for socket in sockets
        if socket.address.is_unspecified and wanted.version <= socket.address.version
    ]
    return _owner(exact or wildcard, task)


def owner_of_path(path: str, task: Iterable[int]) -> SocketOwner:
    """Return whether one of the processes `task` listens on the Unix socket `path`."""
    wanted = os.path.realpath(path)
    inodes = [inode for name, inode in _unix_listeners() if os.path.realpath(name) == wanted]
    return _owner(inodes, task)


def _owner(inodes: list[int], task: Iterable[int]) -> SocketOwner:
    if not inodes:
        return SocketOwner.NOBODY
    wanted = {f"socket:[{inode}]" for inode in inodes}
    # several may share one port: each of them must be the task's
    for pid in task:
        wanted -= _open_files(pid)
        if not wanted:
            return SocketOwner.TASK
    return SocketOwner.OTHER


def _open_files(pid: int) -> set[str]:
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 (thousands of Path objects are what it would cost)
    except OSError:  # gone meanwhile, or another user's
        return set()
    found = set()
    for number in numbers:
        try:
            found.add(os.readlink(f"/proc/{pid}/fd/{number}"))  # noqa: PTH115
        except OSError:
            continue
    return found


def _tcp_listeners() -> Iterator[_Socket]:
    for table in ("tcp", "tcp6"):
        for fields in _table(table):
            if fields[3] == _LISTEN:
                host, _, port = fields[1].partition(":")
                yield _Socket(_address(host), int(port, 16), int(fields[9]))


def _unix_listeners() -> Iterator[tuple[str, int]]:
    for fields in _table("unix", maximum=7):
        if len(fields) == 8 and int(fields[3], 16) & _ACCEPTS and fields[7].startswith("/"):
            yield fields[7], int(fields[6])


def _table(name: str, maximum: int = -1) -> Iterator[list[str]]:
    try:
        text = Path(f"/proc/self/net/{name}").read_text(errors="surrogateescape")
    except FileNotFoundError:  # a kernel without IPv6
        return
    for line in text.splitlines()[1:]:
        yield line.split(maxsplit=maximum)


def _address(digits: str) -> _Address:
    """Read an address as the kernel prints it: words of 32 bits in this machine's byte order."""
    words = [int(digits[start : start + 8], 16) for start in range(0, len(digits), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    if len(packed) == 4:
        return ipaddress.IPv4Address(packed)
    address = ipaddress.IPv6Address(packed)
    return address.ipv4_mapped or address


# The SSH server itself: who is let in, what is forwarded, and when it goes.

_ADDRESS = "127.0.0.1"
#: The one name by which the gateway logs in, as in containers; it is no account.
_USER = "root"
_LOGIN_SECONDS, _KEEPALIVE_SECONDS = 30.0, 60.0
#: How often it is looked whether anybody still comes, within the time of idleness.
_LOOKS = 10
_LOOPBACK = {"localhost": ("127.0.0.1", "::1"), "127.0.0.1": ("127.0.0.1",), "::1": ("::1",)}
#: Names for all interfaces of a machine; listened is on loopback, whatever they say.
_EVERYWHERE = ("", "*", "0.0.0.0", "::")  # noqa: S104
_FIRST_FREE_PORT = 1024


class TaskServer(asyncssh.SSHServer):
    """One connection of the gateway, or of another task of the job, to this task."""

    def __init__(self, task: LocalTask, reaper: Reaper, open_connections: set[TaskServer]) -> None:
        self._task, self._reaper, self._open = task, reaper, open_connections
        self.connection: asyncssh.SSHServerConnection

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Note the connection among the open ones."""
        self.connection = conn
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Remove the connection from the open ones."""
        self._open.discard(self)

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """Require authentication of every client."""
        return True

    def public_key_auth_supported(self) -> bool:
        """Take keys, and nothing else."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Take the job's key, for the one user that there is."""
        known = (line for line in self._task.authorized_keys.splitlines() if line.strip())
        keys = [asyncssh.import_public_key(line) for line in known]
        return username == _USER and any(key.public_data == candidate.public_data for candidate in keys)

    def session_requested(self) -> SshSession:
        """Accept a session."""
        return SshSession(self._task, self._reaper)

    async def _forward_port(self, host: str, port: int) -> asyncssh.SSHTCPSession[bytes]:
        """Connect to a port of the task's; ChannelOpenError where it is not."""
        addresses = _LOOPBACK.get(host.lower())
        if addresses is None:
            raise _refused(f"{host} is not this task: it has localhost only")
        processes = self._task.processes()
        owners = {address: owner_of_port(address, port, processes) for address in addresses}
        for address, owner in owners.items():
            if owner is SocketOwner.TASK or (owner is SocketOwner.OTHER and port in self._task.ports):
                forwarder = await self.connection.forward_connection(address, port)
                # what the library takes for one, and says so at other places
                return cast("asyncssh.SSHTCPSession[bytes]", forwarder)
        if SocketOwner.OTHER in owners.values():
            raise _refused(f"port {port} of this machine is not of this task")
        raise asyncssh.ChannelOpenError(
            asyncssh.OPEN_CONNECT_FAILED, f"nothing in the task listens on port {port}"
        )

    def connection_requested(
        self,
        dest_host: str,
        dest_port: int,
        orig_host: str,  # noqa: ARG002
        orig_port: int,  # noqa: ARG002
    ) -> Awaitable[asyncssh.SSHTCPSession[bytes]]:
        """Forward to ports of the task only: the scheduler, the Hub and others listen on loopback too."""
        return self._forward_port(dest_host, dest_port)

    def unix_connection_requested(self, dest_path: str) -> bool:
        """Forward to Unix sockets of the task only."""
        if owner_of_path(dest_path, self._task.processes()) is not SocketOwner.TASK:
            raise _refused(f"nothing in the task listens on {dest_path}")
        return True

    def server_requested(self, listen_host: str, listen_port: int) -> bool | Awaitable[asyncssh.SSHListener]:
        """Listen for the client, on loopback, where a program of the task could."""
        addresses = _LOOPBACK.get("localhost" if listen_host in _EVERYWHERE else listen_host)
        if addresses is None or 0 < listen_port < _FIRST_FREE_PORT:
            return False
        return self.connection.forward_local_port(addresses[0], listen_port, listen_host, listen_port)

    def unix_server_requested(self, listen_path: str) -> bool:  # noqa: ARG002
        """Listen for the client where a program of the task could."""
        return True


async def serve(folder: Path, registration: SshServerRegistration, idle_seconds: float) -> None:
    """Listen for a task and register that; return when told to, or when unused for `idle_seconds`.

    OSError, ValueError where the task's folder or port cannot be used.
    """
    task = LocalTask(folder)
    # relative paths of SFTP and scp start here
    os.chdir(task.work)
    reaper, connections = Reaper(), set[TaskServer]()
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    listener = await asyncssh.listen(
        _ADDRESS,
        task.port,
        server_factory=lambda: TaskServer(task, reaper, connections),
        server_host_keys=[asyncssh.import_private_key(task.host_key)],
        # nothing of the account's own settings
        config=[],
        gss_host=None,
        encoding=None,
        line_editor=False,
        x11_forwarding=False,
        agent_forwarding=True,
        login_timeout=_LOGIN_SECONDS,
        keepalive_interval=_KEEPALIVE_SECONDS,
        # it is this machine itself that would have to be slow
        compression_algs=None,
    )
    registration.tell({"port": task.port})
    last_used = time.time()
    while not over.is_set():
        try:
            async with asyncio.timeout(idle_seconds / _LOOKS):
                await over.wait()
        except TimeoutError:
            if connections:
                last_used = time.time()
            elif time.time() - max(last_used, registration.last_visit()) > idle_seconds:
                break
    listener.close()
    for server in list(connections):
        # not a session after the other, each as if it had ended: all is over
        server.connection.abort()


def _refused(reason: str) -> asyncssh.ChannelOpenError:
    return asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, reason)
