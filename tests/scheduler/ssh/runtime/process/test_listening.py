"""Whose sockets are listened on: this process stands for the task, its own parent for others."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pai_scheduler.ssh.runtime.process.server import SocketOwner, owner_of_path, owner_of_port

US, OTHERS = {os.getpid()}, {os.getppid()}

#: Listens too, until its input ends.
_PROGRAM = (
    "import socket, sys; s = socket.create_server((sys.argv[1], int(sys.argv[2])), reuse_port=True)\n"
    "print(flush=True); sys.stdin.read()"
)


@contextmanager
def listening(address: str, port: int = 0, *, dual: bool = False) -> Iterator[int]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family, dualstack_ipv6=dual, reuse_port=True) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("bound", "asked"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "::1"), ("::", "::1")],  # noqa: S104
)
def test_a_socket_is_its_processs_own_wherever_it_is_bound(bound: str, asked: str) -> None:
    with listening(bound) as port:
        assert owner_of_port(asked, port, US) is SocketOwner.TASK
        assert owner_of_port(asked, port, OTHERS) is SocketOwner.OTHER
        assert owner_of_port(asked, port, US | OTHERS) is SocketOwner.TASK
        assert owner_of_port(asked, port, ()) is SocketOwner.OTHER
    assert owner_of_port(asked, port, US) is SocketOwner.NOBODY


def test_a_socket_for_both_kinds_of_addresses_is_found_by_both() -> None:
    with listening("::", dual=True) as port:
        assert owner_of_port("127.0.0.1", port, US) is SocketOwner.TASK
        assert owner_of_port("::1", port, US) is SocketOwner.TASK


def test_a_socket_at_another_address_is_not_meant() -> None:
    with listening("127.0.0.2") as port:
        assert owner_of_port("127.0.0.1", port, US) is SocketOwner.NOBODY
    with listening("0.0.0.0") as port:  # noqa: S104
        assert owner_of_port("::1", port, US) is SocketOwner.NOBODY


@pytest.mark.parametrize(("ours", "theirs"), [("127.0.0.1", "0.0.0.0"), ("0.0.0.0", "127.0.0.1")])  # noqa: S104
def test_the_socket_that_the_kernel_would_choose_counts(ours: str, theirs: str) -> None:
    """One bound to the address itself comes before one that is bound to all."""
    with listening(ours) as port:
        argv = [sys.executable, "-c", _PROGRAM, theirs, str(port)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"\n"
            exact = ours == "127.0.0.1"
            assert owner_of_port("127.0.0.1", port, US) is (SocketOwner.TASK if exact else SocketOwner.OTHER)
            assert owner_of_port("127.0.0.1", port, {other.pid}) is (
                SocketOwner.OTHER if exact else SocketOwner.TASK
            )
            other.communicate()


def test_a_port_that_is_shared_with_others_is_not_the_tasks() -> None:
    with listening("127.0.0.1") as port:
        argv = [sys.executable, "-c", _PROGRAM, "127.0.0.1", str(port)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"\n"
            assert owner_of_port("127.0.0.1", port, US) is SocketOwner.OTHER
            assert owner_of_port("127.0.0.1", port, {other.pid}) is SocketOwner.OTHER
            assert owner_of_port("127.0.0.1", port, {other.pid} | US) is SocketOwner.TASK
            other.communicate()


def test_a_connection_is_not_taken_for_a_listener() -> None:
    with listening("127.0.0.1") as port, socket.create_connection(("127.0.0.1", port)) as client:
        assert owner_of_port("127.0.0.1", client.getsockname()[1], US) is SocketOwner.NOBODY


def test_a_unix_socket_is_found_by_its_path_and_by_links_to_it(tmp_path: Path) -> None:
    path, link = tmp_path / "a socket", tmp_path / "link"
    link.symlink_to(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert owner_of_path(str(path), US) is SocketOwner.NOBODY
        server.listen()
        for name in (path, link):
            assert owner_of_path(str(name), US) is SocketOwner.TASK
            assert owner_of_path(str(name), OTHERS) is SocketOwner.OTHER
    assert owner_of_path(str(path), US) is SocketOwner.NOBODY


def test_processes_that_are_gone_own_nothing() -> None:
    with listening("127.0.0.1") as port:
        assert owner_of_port("127.0.0.1", port, {2**22 + 1}) is SocketOwner.OTHER
