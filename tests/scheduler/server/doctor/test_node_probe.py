"""One probe asks another, over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from pai_scheduler.server.doctor.node_probe import ask, find_peers, serve
from pai_scheduler.testing.ports import free_port


@pytest.fixture
def probe() -> Iterator[int]:
    """Start a probe that answers; return its port."""
    server = serve("127.0.0.1", 0)
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_a_probe_that_answers_is_reached_with_large_packets_and_says_its_time(probe: int) -> None:
    found = ask("127.0.0.1", probe)
    assert (found.reached, found.bulk) == (True, True)
    assert abs(found.ahead) < 1


def test_where_nobody_listens_nothing_is_reached() -> None:
    assert not ask("127.0.0.1", free_port()).reached


def test_a_way_that_swallows_large_packets_is_told_apart(probe: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_scheduler.server.doctor.node_probe._ASK_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_pass_little, args=(listening, probe), daemon=True).start()
        found = ask("127.0.0.1", listening.getsockname()[1])
    assert (found.reached, found.bulk) == (True, False)


def test_a_stranger_who_says_nothing_or_too_much_does_not_stop_a_probe(probe: int) -> None:
    for said in (b"", b"\xff", b"\xff\xff\xff\xff" + bytes(1000)):
        with socket.create_connection(("127.0.0.1", probe)) as stranger:
            stranger.sendall(said)
    assert ask("127.0.0.1", probe).bulk


def test_peers_that_do_not_come_are_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_scheduler.server.doctor.node_probe._FIND_SECONDS", 0.3)
    assert find_peers("no-such-service.invalid", 2) == []


def _pass_little(listening: socket.socket, port: int) -> None:
    """Pass a few bytes on, both ways; what is more gets lost."""
    for _ in range(2):
        near, _ = listening.accept()
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            far.settimeout(1)
            far.sendall(near.recv(1000)[:100])
            try:
                near.sendall(far.recv(100))
            except TimeoutError:
                return
