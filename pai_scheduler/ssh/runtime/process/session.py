"""One session of an SSH connection: a shell, a command, or files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

import asyncssh

from .child import Reaper, start_on_pipes, start_on_terminal
from .relay import Relay
from .task import LocalTask
from .terminal import open_terminal

#: What a client may tell of itself, where the task does not say it: names, or how they begin.
_CLIENT_VARIABLES = ("LANG", "LC_", "COLORTERM")
#: The version of SFTP that everybody speaks.
_VERSION = 3


class SshSession(asyncssh.SSHServerProcess[bytes]):
    """Starts what the client asks for; files (SFTP, scp) it serves itself."""

    def __init__(self, task: LocalTask, reaper: Reaper) -> None:
        super().__init__(_nothing, _files, _VERSION, allow_scp=True)
        self._task, self._reaper = task, reaper
        self._channel: asyncssh.SSHServerChannel[bytes]
        self._terminal = False
        #: None: files are served
        self._relay: Relay | None = None

    def connection_made(self, chan: Any) -> None:
        """Remember the channel."""
        super().connection_made(chan)
        self._channel = chan

    def pty_requested(
        self,
        term_type: str,  # noqa: ARG002
        term_size: tuple[int, int, int, int],  # noqa: ARG002
        term_modes: Mapping[int, int],  # noqa: ARG002
    ) -> bool:
        """Accept every request for a terminal."""
        self._terminal = True
        return True

    def shell_requested(self) -> bool:
        """Accept every request for a shell."""
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        """Accept SFTP, and no other subsystem."""
        return subsystem == "sftp"

    def exec_requested(self, command: str) -> bool:  # noqa: ARG002
        """Accept every command."""
        return True

    def session_started(self) -> None:
        """Start what was asked for."""
        command = self._channel.get_command()
        if self._channel.get_subsystem() or (command or "").startswith("scp "):
            super().session_started()
            return
        shell = self._task.shell()
        argv = [shell] if command is None else [shell, "-c", command]
        try:
            self._relay = self._start(argv, {**self._environment(), "SHELL": shell})
        except (OSError, ValueError) as error:
            self._channel.write_stderr(f"{shell}: {error}\n".encode(errors="backslashreplace"))
            self._channel.exit(255)

    def _start(self, argv: list[str], env: Mapping[str, str]) -> Relay:
        channel = self._channel
        if self._terminal:
            ours, theirs = open_terminal(channel.get_terminal_size(), channel.get_terminal_modes())
            more = {"TERM": channel.get_terminal_type() or "dumb", "SSH_TTY": os.ttyname(theirs)}
            started = start_on_terminal(self._task, argv, {**env, **more}, ours, theirs)
        else:
            started = start_on_pipes(self._task, argv, env)
        relay = Relay(channel, started, terminal=self._terminal)
        self._reaper.watch(started.process, relay.ended)
        return relay

    def _environment(self) -> dict[str, str]:
        told = {
            name: value
            for name, value in self._channel.get_environment().items()
            if name.startswith(_CLIENT_VARIABLES)
        }
        client, server = (self._channel.get_extra_info(name) or ("", 0) for name in ("peername", "sockname"))
        env = {
            **told,
            **self._task.env,
            "SSH_CLIENT": f"{client[0]} {client[1]} {server[1]}",
            "SSH_CONNECTION": f"{client[0]} {client[1]} {server[0]} {server[1]}",
        }
        if agent := self._channel.get_agent_path():
            env["SSH_AUTH_SOCK"] = agent
        return env

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Pass input to the program."""
        if self._relay:
            self._relay.feed(data)
        else:
            super().data_received(data, datatype)

    def eof_received(self) -> bool:
        """End the input, not the session."""
        if self._relay:
            self._relay.end_input()
        else:
            super().eof_received()
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        """Pass a size on."""
        if self._relay:
            self._relay.resize((width, height, pixwidth, pixheight))

    def signal_received(self, signal: str) -> None:
        """Pass a signal on."""
        if self._relay:
            self._relay.signal(signal)

    def break_received(self, msec: int) -> bool:  # noqa: ARG002
        """Pass a break on."""
        return self._relay is not None and self._relay.send_break()

    def pause_writing(self) -> None:
        """Wait: the client does not take more."""
        super().pause_writing()
        if self._relay:
            self._relay.pause()

    def resume_writing(self) -> None:
        """Read again: the client takes more."""
        super().resume_writing()
        if self._relay:
            self._relay.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """Hang up the program: the client is gone."""
        super().connection_lost(exc)
        if self._relay:
            self._relay.hang_up()


class _Files(asyncssh.SFTPServer):
    """Ends as OpenSSH's server does: `scp` takes the library's end, without an exit code, for a failure."""

    def exit(self) -> None:
        """Exit with code 0, and close."""
        cast("asyncssh.SSHServerChannel[bytes]", self.channel).exit(0)


def _files(channel: Any) -> asyncssh.SFTPServer:
    return _Files(channel)


def _nothing(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Take no session: what is no transfer of files is started here."""
    raise NotImplementedError
