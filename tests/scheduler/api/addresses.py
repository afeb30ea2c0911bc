"""Every address of the API, with an example in place of each name in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pai_scheduler.api.base import ApiHandler
from pai_scheduler.api.routes import ROUTES

#: With those that no address has: who may not ask does not learn which there are.
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")


def addresses() -> Iterator[tuple[str, type[ApiHandler]]]:
    """List them with their handlers."""
    for pattern, handler in ROUTES:
        path = pattern
        for part in ("alice", "waits", "main"):
            path = path.replace("([^/]+)", part, 1)
        path = re.sub(r"\(\[0-9\]\{[0-9,]+\}\)", "0", path)
        yield path.replace("(stdout|stderr|all)", "all").replace("\\", ""), handler
