"""No two test processes get the same port."""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys

import pytest

from pai_scheduler.testing import ports
from pai_scheduler.testing.ports import free_ports

ASK = "from pai_scheduler.testing.ports import free_ports; print(*free_ports(50)); input()"


def test_processes_at_the_same_time_get_different_ports() -> None:
    others = [
        subprocess.Popen(
            [sys.executable, "-c", ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    given = [set(free_ports(50))]
    for other in others:
        assert other.stdout is not None
        given.append({int(port) for port in other.stdout.readline().split()})
    for other in others:
        other.communicate("\n")
    assert [len(ports) for ports in given] == [50, 50, 50]
    assert len(set.union(*given)) == 150


def test_a_port_at_which_something_listens_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_ports(2)
    block = itertools.cycle((taken, free))
    monkeypatch.setattr(ports, "_block", lambda _process: block)
    with socket.create_server(("127.0.0.1", taken)):
        assert free_ports(2) == [free, free]
