"""Addresses of a scheduler, and of a job's page in the console."""

from __future__ import annotations

from urllib.parse import quote

#: Where a scheduler of this machine is, unless it was told otherwise.
DEFAULT_URL = "http://127.0.0.1:9186"


def job_page(console_url: str, user: str, name: str) -> str:
    """Return the address of a job's page. `console_url`: where the console is, a slash at its end."""
    return f"{console_url}jobs/{quote(user, safe='')}/{quote(name, safe='')}"
