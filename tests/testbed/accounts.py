"""Accounts and groups of this machine, made for a test and removed after it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from types import TracebackType

from tests.testbed.machine import as_root


class Accounts:
    """Accounts with a common prefix, which nobody else has. Without root: CannotError."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._accounts: list[str] = []
        self._groups: list[str] = []

    def __enter__(self) -> Accounts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for account in self._accounts:
            _run("userdel", account)
        for group in self._groups:
            _run("groupdel", group)

    def add_group(self, name: str) -> str:
        """Make a group; return its whole name."""
        group = self._prefix + name
        _run("groupadd", group)
        self._groups.append(group)
        return group

    def add(self, name: str, password: str, groups: Iterable[str] = ()) -> str:
        """Make an account without a home, in groups by their whole names; return its whole name."""
        account = self._prefix + name
        _run("useradd", "--no-create-home", "--shell", "/bin/bash", "--groups", ",".join(groups), account)
        self._accounts.append(account)
        _run("chpasswd", said=f"{account}:{password}")
        return account

    def leave(self, account: str, group: str) -> None:
        """Take an account out of a group."""
        _run("gpasswd", "--delete", account, group)

    def lock(self, account: str) -> None:
        """Let an account expire: its password stays right, and nobody comes in."""
        _run("usermod", "--expiredate", "1", account)


def _run(*command: str, said: str = "") -> None:
    subprocess.run(as_root(*command), input=said, text=True, capture_output=True, check=True)
