"""Debian's OpenSSH server on this machine's loopback address, with keys of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import asyncssh

from pai_scheduler.testing.ports import free_port
from tests.testbed.machine import CannotError, apt_install, as_root

_CONFIG = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/identity.pub
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin yes
PidFile none
PrintMotd no
PrintLastLog no
AcceptEnv LANG LC_*
MaxSessions 200
Subsystem sftp internal-sftp
SetEnv HOME={folder}/home
"""


class RunningSshd:
    """Lets the account in that runs the tests, with `identity`; `options` are lines of its configuration.

    Its shells have a home of their own: what the account's `.bashrc` does can take long, and hold a lock that
    stays when a test kills it.
    """

    def __init__(self, folder: Path, options: str = "") -> None:
        apt_install({"sshd": "openssh-server"})
        program = shutil.which("sshd", path="/usr/sbin:/sbin") or "sshd"
        if os.geteuid() == 0:
            # the package makes it when its service starts, which it does not here
            subprocess.run(as_root("mkdir", "-p", "/run/sshd"), check=True)
        self.folder, self.user = folder, getpass.getuser()
        self.identity, self.host_key = folder / "identity", folder / "host"
        for path in (self.identity, self.host_key):
            key = asyncssh.generate_private_key("ssh-ed25519")
            key.write_private_key(path)
            path.chmod(0o600)
            key.write_public_key(path.with_suffix(".pub"))
        self.port = free_port()
        (folder / "home").mkdir()
        config = folder / "sshd_config"
        config.write_text(_CONFIG.format(folder=folder, port=self.port) + options)
        self._command = (program, "-D", "-e", "-f", str(config))
        self.start()

    def start(self) -> None:
        """Start it, on the same port as the last time; returns when it answers."""
        with (self.folder / "sshd.log").open("ab") as log:
            self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(200):
            if self.process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise CannotError(f"sshd does not start: {(self.folder / 'sshd.log').read_text()}")

    async def connect(self) -> asyncssh.SSHClientConnection:
        """Log in."""
        return await asyncssh.connect(
            "127.0.0.1",
            self.port,
            username=self.user,
            client_keys=[str(self.identity)],
            known_hosts=None,
            config=[],
            agent_path=None,
        )

    def close(self) -> None:
        """End it; what it let in goes on until it ends by itself."""
        self.process.terminate()
        self.process.wait(10)
