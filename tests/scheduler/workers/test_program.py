"""How a connection server ends whose scheduler has gone, be it before it has settings."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODULE = "tests.scheduler.workers.greeter"


@contextmanager
def started() -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )
        theirs.close()
        with process:
            yield process, ours


def test_one_whose_scheduler_died_before_it_said_anything_ends() -> None:
    with started() as (process, _):
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_one_whose_scheduler_dies_ends_also_while_somebody_is_served() -> None:
    with started() as (process, channel):
        assert process.stdin is not None
        process.stdin.write(b"welcome\n")
        process.stdin.flush()
        client, server = socket.socketpair()
        with client:
            with server:
                message = pickle.dumps((1, "somebody"))
                socket.send_fds(channel, [len(message).to_bytes(8), message], [server.fileno()])
            assert client.recv(100).endswith(b"welcome\n")
            channel.close()
            assert process.wait(60) == 0
            assert client.recv(1) == b""
