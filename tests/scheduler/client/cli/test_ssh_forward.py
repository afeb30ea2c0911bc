"""`pai port-forward`: a real server in a real task, also after the gateway was killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.scheduler.client.cli.pai import PAI, environ_for, gateways_of
from tests.scheduler.conftest import run_job
from tests.testbed.scheduler import RunningScheduler, StartScheduler

SERVER = """
import http.server, os, pathlib, threading
for label in ("web", "http"):
    for port in os.environ[f"PAI_PORT_LIST_main_0_{label}"].split(","):
        class Handler(http.server.BaseHTTPRequestHandler):
            text = f"{label} {port}".encode()
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(self.text + b" " + body)
            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
        threading.Thread(target=server.serve_forever).start()
"""
BODY = bytes(range(256)) * 8000


@pytest.fixture(scope="module")
def own(module_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler whose gateway may be killed."""
    running = module_scheduler(ssh=True)
    (running.folder / "server.py").write_text(SERVER)
    ports = [{"label": "web", "beginAt": 0, "portNumber": 2}]
    run_job(running, "server", f"exec python3 {running.folder}/server.py", portList=ports)
    return running


@contextmanager
def forwarding(scheduler: RunningScheduler, *words: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Forward ports; gives those of this machine, in order."""
    process = subprocess.Popen(
        [PAI, "port-forward", *words],
        env=environ_for(scheduler),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        ports: list[int] = []
        while len(ports) < len([word for word in words[1:] if not word.startswith("main")]):
            line = process.stdout.readline()
            assert line, process.communicate()
            found = re.match(r"127\.0\.0\.1:(\d+) is port (\d+)", line)
            assert found, line
            ports.append(int(found[1]))
        yield process, ports
    finally:
        process.kill()
        process.communicate()


def post(port: int) -> bytes:
    return httpx.post(f"http://127.0.0.1:{port}/", content=BODY, trust_env=False, timeout=30).content


def test_labels_and_numbers_lead_to_the_tasks_ports(own: RunningScheduler) -> None:
    with held_port() as wanted:
        pass
    with forwarding(own, "server", "main-0", f"{wanted}:web", "web.1", "http") as (_, ports):
        assert ports[0] == wanted
        for port, label in zip(ports, ("web", "web", "http"), strict=True):
            said, _, rest = post(port).partition(b" ")
            number, _, body = rest.partition(b" ")
            assert (said, body == BODY) == (label.encode(), True)
            assert int(number) != port or label != "web"


@contextmanager
def held_port() -> Iterator[int]:
    """Hold a port; it is free afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_taken_port_is_refused_where_it_was_asked_for(own: RunningScheduler) -> None:
    with held_port() as held:
        process = subprocess.run(
            [PAI, "port-forward", "server", f"{held}:web"],
            env=environ_for(own), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert process.returncode == 1
    assert process.stderr == f"Port {held} of this machine cannot be had: Address already in use.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["server", "nothing"], "The task has no port nothing. Its ports have the labels web, http, ssh."),
        (["server", "web.2"], "The task has no port web.2. Its ports have the labels web, http, ssh."),
        (["server", "main-0", "x:y:z"], "x:y:z is no port: write 8888, http, or 8080:http."),
        (["server", "70000:web"], "70000:web is no port: write 8888, http, or 8080:http."),
        (["server", "0"], "The task has no port 0. Its ports have the labels web, http, ssh."),
        (["server", "70000"], "The task has no port 70000. Its ports have the labels web, http, ssh."),
        (["server", "main-4", "web"], "No task main-4 of job server runs. Those that run: main-0."),
    ],
)
def test_a_port_that_there_is_not_is_said(own: RunningScheduler, words: list[str], sentence: str) -> None:
    process = subprocess.run(
        [PAI, "port-forward", *words],
        env=environ_for(own), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (process.returncode, process.stderr.strip()) == (1, sentence)


def test_a_port_on_which_nothing_listens_is_said_and_the_others_go_on(own: RunningScheduler) -> None:
    with forwarding(own, "server", "ssh", "web") as (process, ports):
        # the SSH server of the task is there
        with socket.create_connection(("127.0.0.1", ports[0]), 30) as connection:
            assert connection.recv(4) == b"SSH-"
        assert post(ports[1]).endswith(BODY)
    with forwarding(own, "server", "1", "web") as (process, ports):
        with socket.create_connection(("127.0.0.1", ports[0]), 30) as connection:
            assert connection.recv(4) == b""
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Port 1 of the task cannot be reached: ")
        assert post(ports[1]).endswith(BODY)


def test_ports_come_back_after_the_scheduler_and_its_gateway_were_killed(own: RunningScheduler) -> None:
    with forwarding(own, "server", "web") as (process, ports):
        assert post(ports[0]).endswith(BODY)
        gateways = gateways_of(own)
        assert gateways
        own.kill()
        for number in gateways:
            os.kill(number, signal.SIGKILL)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("The way to the task broke")
        own.start()
        assert process.stderr.readline() == "The way to the task is open again.\n"
        assert post(ports[0]).endswith(BODY)


def test_it_ends_with_the_job(own: RunningScheduler) -> None:
    run_job(own, "brief")
    with forwarding(own, "brief", "http") as (process, _):
        subprocess.run([PAI, "stop", "brief"], env=environ_for(own), check=True, stdout=subprocess.DEVNULL)
        assert process.wait(60) == 1
        assert process.stderr is not None
        assert "Job brief " in process.stderr.read()
