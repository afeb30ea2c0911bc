"""How many answers that go on for long each user has open: connections are for everybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from pai_scheduler.cluster.definition import DEFAULT_STREAMS_PER_USER
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import too_many_streams


class Streams:
    """Counts the logs and job events that are followed; `most`: of one user at once.

    Administrators, and services that act for users, have no limit.
    """

    def __init__(self, most: int = DEFAULT_STREAMS_PER_USER) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def counted(self, principal: Principal) -> Iterator[None]:
        """Count one more for as long as the block goes on; refuses one too many."""
        if principal.admin:
            yield
            return
        if self._open[principal.name] >= self._most:
            raise too_many_streams(self._most)
        self._open[principal.name] += 1
        try:
            yield
        finally:
            self._open[principal.name] -= 1
            if not self._open[principal.name]:
                del self._open[principal.name]
