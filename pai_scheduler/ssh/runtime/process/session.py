"""One session of an SSH connection: a shell, a command, or files."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import termios
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import asyncssh

from .child import Reaper, signal_group, signal_name, signal_number, start
from .task import LocalTask
from .terminal import open_terminal, set_size

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
