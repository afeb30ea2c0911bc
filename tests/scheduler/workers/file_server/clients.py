"""Clients of the storage of a scheduler, and the processes that serve them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.testbed.scheduler import RunningScheduler


@dataclass
class Files:
    """Clients of the storage of a `scheduler`."""

    scheduler: RunningScheduler

    def client(self, user: str = "alice") -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=f"{self.scheduler.url}/webhdfs/v1",
            headers={"Authorization": f"Bearer token-of-{user}"},
            trust_env=False,
            timeout=60,
        )

    def servers(self) -> list[int]:
        """Return the processes of the file servers."""
        children = Path(f"/proc/{self.scheduler.process.pid}/task").glob("*/children")
        found = [int(child) for task in children for child in task.read_text().split()]
        return sorted(pid for pid in found if is_file_server(pid))


def is_file_server(pid: int) -> bool:
    """Return whether a process is a file server."""
    try:
        return b"pai_scheduler.workers.file_server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
