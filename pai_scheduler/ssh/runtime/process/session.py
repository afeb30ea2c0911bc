"""Sessions of a task's SSH connections (shell, command, files), their terminals and programs."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import shutil
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import asyncssh

from pai_scheduler.engine.process import procfs
from pai_scheduler.engine.process.task_cgroup import TaskGroup
from pai_scheduler.engine.process.task_folder import COOKIE, TaskFolder
from pai_scheduler.ssh.task_files import AUTHORIZED_KEYS, HOST_KEY

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
