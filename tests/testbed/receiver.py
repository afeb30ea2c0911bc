"""A real receiver of webhooks on this machine: it notes what comes, and answers as a test wants it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`status` is what it answers, `received` has what came, in order."""

    port: int
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    received: Queue[Received] = field(default_factory=Queue)

    @property
    def host(self) -> str:
        """Return what an administrator would allow."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Return where a job would have it told."""
        return f"http://{self.host}/hooks?key=secret"

    def next(self) -> Received:
        """Wait for what comes next."""
        return self.received.get(timeout=60)


@contextmanager
def open_receiver() -> Iterator[Receiver]:
    """Run one until the end."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.put(Received(self.path, dict(self.headers), body))
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
