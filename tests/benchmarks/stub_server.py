"""A notebook server that only answers: it listens where JupyterHub said, and costs next to nothing."""

from __future__ import annotations

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Say that it is there."""
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> None:
    """Listen until it is ended."""
    url = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    ThreadingHTTPServer((url.hostname or "127.0.0.1", url.port or 8888), _Answer).serve_forever()


if __name__ == "__main__":
    main()
