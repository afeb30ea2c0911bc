"""The homes of a scheduler's users in Docker: found as an administrator finds them, removed after a test."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.testbed.docker import connect

#: How long a container that has ended may still be there.
_PATIENCE_SECONDS = 30.0


def homes(host: str, data_dir: Path) -> dict[str, list[str]]:
    """List the volumes of each user."""
    mark = data_dir / "docker-instance"
    if not mark.exists():
        return {}
    filters = quote(json.dumps({"label": [f"pai.instance={mark.read_text()}", "pai.user"]}))
    _, found = _ask(host, "GET", f"/volumes?filters={filters}")
    named: dict[str, list[str]] = {}
    for volume in found["Volumes"] or ():
        named.setdefault(volume["Labels"]["pai.user"], []).append(volume["Name"])
    return named


def remove_homes(host: str, data_dir: Path) -> None:
    """Remove them all, as soon as no container has them any more."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for names in homes(host, data_dir).values():
        for name in names:
            while (answer := _ask(host, "DELETE", f"/volumes/{quote(name)}"))[0] == http.client.CONFLICT:
                assert time.monotonic() < deadline, answer
                time.sleep(0.1)
            assert answer[0] == http.client.NO_CONTENT, answer


def _ask(host: str, method: str, path: str) -> tuple[int, Any]:
    connection = connect(host, timeout=_PATIENCE_SECONDS)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        body = response.read()
        return response.status, json.loads(body) if body else None
    finally:
        connection.close()
