"""The text of an OpenSSH client's configuration in which every running task has a `Host` block.

Every program that reads `~/.ssh/config` then lists them: ssh, scp, rsync, VS Code, PyCharm. What users and
jobs are called is other people's text: a name that the format cannot carry gives no block, never a line of
its own.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pai_scheduler.ssh.login import LoginName

#: The name by which the gateway is known, whatever address it has.
HOST_KEY_ALIAS = "pai-gateway"
_HEADER = (
    "# Made by `pai ssh-config --write`, which makes it anew each time: changes are lost.\n"
    "# A block for each running task; those of jobs that have ended are gone the next time.\n"
)
#: Seconds after which a silent gateway is asked for a sign; it is given up after three.
_ALIVE_SECONDS = 30
#: What would end a quoted value, begin an expansion, or mean something else in another version of OpenSSH.
_UNQUOTABLE = frozenset('"\\%$`')


class UnwritableNameError(ValueError):
    """A name that no OpenSSH configuration can carry safely; it is the error's text."""


@dataclass(frozen=True, slots=True)
class Host:
    """A task: the names by which one calls it, how one logs in, and the file with its job's key."""

    aliases: tuple[str, ...]
    login: LoginName
    identity_file: str


def hosts(tasks: Sequence[LoginName], identity_files: Mapping[str, str]) -> list[Host]:
    """Name tasks: `pai-<job>-<role>-<index>`, and `pai-<job>` where it is its job's only one.

    `identity_files`: the path of the key, by job.
    """
    count = Counter(task.job for task in tasks)
    return [
        Host(
            (
                f"pai-{word_of(task.job)}-{word_of(task.task)}",
                *((f"pai-{word_of(task.job)}",) if count[task.job] == 1 else ()),
            ),
            task,
            identity_files[task.job],
        )
        for task in tasks
    ]


def config(address: str, port: int, known_hosts: str, blocks: Sequence[Host]) -> str:
    """Write the configuration; UnwritableNameError where a name or path cannot be written."""
    return _HEADER + "".join(f"\n{_block(address, port, known_hosts, host)}" for host in blocks)


def known_hosts(host_key: str) -> str:
    """Write the file by which the gateway is known; `host_key`: a line `ssh-ed25519 …`."""
    return f"{HOST_KEY_ALIAS} {' '.join(host_key.split()[:2])}\n"


def quoted(value: str) -> str:
    """Write a value as one argument that is taken as it is; UnwritableNameError where that cannot be."""
    if not value or any(char in _UNQUOTABLE or unicodedata.category(char)[0] == "C" for char in value):
        raise UnwritableNameError(value)
    return f'"{value}"'


def _block(address: str, port: int, known_hosts: str, host: Host) -> str:
    return (
        f"Host {' '.join(host.aliases)}\n"
        f"  HostName {quoted(address)}\n"
        f"  Port {port}\n"
        f"  User {quoted(str(host.login))}\n"
        f"  IdentityFile {quoted(host.identity_file)}\n"
        "  IdentitiesOnly yes\n"
        # where the job has ended: no question for a password, which nobody has for it
        "  PreferredAuthentications publickey\n"
        f"  UserKnownHostsFile {quoted(known_hosts)}\n"
        f"  HostKeyAlias {HOST_KEY_ALIAS}\n"
        "  StrictHostKeyChecking yes\n"
        f"  ServerAliveInterval {_ALIVE_SECONDS}\n"
    )


def word_of(name: str) -> str:
    """Make a part of an alias or of a file's name: the same for a name each time, another for another."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    if plain == name:
        return name
    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:4]}"
