"""No two test processes get the same port."""

from __future__ import annotations

import socket
import subprocess
import sys

from pai_scheduler.testing.ports import free_port, free_ports

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


def test_a_port_at_which_something_listens_is_left_out() -> None:
    taken = free_port()
    with socket.create_server(("127.0.0.1", taken)):
        assert taken not in free_ports(249)
