"""The small files with which a task can be logged into, and its peers reached from it.

They are among a task's own (`Launch.files`), which it finds in `Engine.private_dir`. The program that
reads them (the runtime's `boot` in a container, the process engine's own server) copies the keys, mode 0600.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from .keys import KeyPair

#: names of the files; IDENTITY and HOST_KEY are private keys, with `.pub` the public ones
IDENTITY, HOST_KEY = "ssh_identity", "ssh_host_key"
AUTHORIZED_KEYS, KNOWN_HOSTS = "ssh_authorized_keys", "ssh_known_hosts"
#: for clients in the task, and for its server; STATE stands for the folder of the copies, WORK for the task's
CLIENT_CONFIG, SERVER_CONFIG = "ssh_config", "sshd_config"
#: on which port the server is to listen: all that tells one task's files from another's
PORT = "ssh_port"
#: What a session in a container is called, hexadecimal digits: how what is sent to it finds it.
SESSION_VARIABLE = "PAI_SSH_SESSION"
STATE, WORK = "@STATE@", "@WORK@"
#: the one name by which all tasks of a job are known: they have one host key
HOST_KEY_ALIAS = "pai-job"
#: The tasks of a job start one after the other: how often, once a second, to try one that is not there yet.
_ATTEMPTS, _CONNECT_SECONDS = 15, 10


@dataclass(frozen=True, slots=True)
class Peer:
    """A task of the same job: where its SSH server listens."""

    address: str
    port: int


def ssh_files(identity: KeyPair, host: KeyPair, peers: Mapping[str, Peer]) -> dict[str, bytes]:
    """Make the files that all tasks of a gang have, which are its `peers` by host name."""
    return {
        IDENTITY: identity.private,
        f"{IDENTITY}.pub": f"{identity.public}\n".encode(),
        HOST_KEY: host.private,
        f"{HOST_KEY}.pub": f"{host.public}\n".encode(),
        AUTHORIZED_KEYS: f"{identity.public}\n".encode(),
        KNOWN_HOSTS: f"{HOST_KEY_ALIAS} {host.public}\n".encode(),
        CLIENT_CONFIG: _client_config(peers).encode(),
        SERVER_CONFIG: _server_config(peers).encode(),
    }


def own_server_files(identity: KeyPair, host: KeyPair) -> dict[str, bytes]:
    """Make those of the files that a server of ours reads: it is told the rest, and has no clients."""
    return {HOST_KEY: host.private, AUTHORIZED_KEYS: f"{identity.public}\n".encode()}


def own_port(port: int) -> dict[str, bytes]:
    """Make the file that tells a task its own port."""
    return {PORT: f"{port}\n".encode()}


def _client_config(peers: Mapping[str, Peer]) -> str:
    """Return the configuration for `ssh <role>-<index>`, with its host key; other hosts stay the user's."""
    addresses = Counter(peer.address for peer in peers.values())
    by_port: dict[int, list[str]] = {}
    for name, peer in peers.items():
        names = by_port.setdefault(peer.port, [])
        names.append(name)
        if addresses[peer.address] == 1:  # else it says nothing about who is meant
            names.append(peer.address)
    lines = []
    for port, names in by_port.items():
        lines += [
            f"Host {' '.join(names)}",
            f"  Port {port}",
            "  User root",
            f"  IdentityFile {STATE}/{IDENTITY}",
            "  IdentitiesOnly yes",
            f"  HostKeyAlias {HOST_KEY_ALIAS}",
            "  StrictHostKeyChecking yes",
            f"  GlobalKnownHostsFile {STATE}/{KNOWN_HOSTS}",
            "  UserKnownHostsFile none",
            f"  ConnectTimeout {_CONNECT_SECONDS}",
            f"  ConnectionAttempts {_ATTEMPTS}",
        ]
    return "\n".join([*lines, "Match all", "  Include ~/.ssh/config", "  Include /etc/ssh/ssh_config", ""])


def _server_config(peers: Mapping[str, Peer]) -> str:
    """Return the server's configuration: it takes the job's key, and forwards within the job only."""
    allowed = ["localhost", "127.0.0.1", "[::1]", *peers, *sorted({peer.address for peer in peers.values()})]
    return "\n".join(
        [
            # where the port is taken on one of IPv4 and IPv6, a server on the other is of no use to anybody
            "ListenAddress 0.0.0.0",
            f"HostKey {STATE}/{HOST_KEY}",
            f"AuthorizedKeysFile {STATE}/{AUTHORIZED_KEYS}",
            "AuthenticationMethods publickey",
            "AllowUsers root",
            "PermitRootLogin yes",
            "StrictModes no",
            "UsePAM no",
            "PidFile none",
            "PrintMotd no",
            "PrintLastLog no",
            # what it says is kept in memory, and only why it ended is ever read
            "LogLevel FATAL",
            "AllowAgentForwarding yes",
            "AllowTcpForwarding yes",
            "AllowStreamLocalForwarding yes",
            "GatewayPorts no",
            "X11Forwarding no",
            f"AcceptEnv LANG LC_* {SESSION_VARIABLE}",
            "ClientAliveInterval 30",
            "ClientAliveCountMax 4",
            "MaxSessions 200",
            "MaxStartups 100:30:400",
            f"Subsystem sftp internal-sftp -d {WORK}",
            "PermitOpen " + " ".join(f"{host}:*" for host in allowed),
            "",
        ]
    )
