"""The policy's file, read again when it has changed."""

from __future__ import annotations

import logging
from pathlib import Path

from .policy_file import PolicyError, PolicyFile, read_policy

_log = logging.getLogger(__name__)


class PolicySource:
    """The current policy file; one that becomes invalid changes nothing. PolicyError if invalid at first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._seen()
        self.now = read_policy(path)

    def refresh(self) -> PolicyFile:
        """Return what holds now."""
        if (stamp := self._seen()) != self._stamp:
            self._stamp = stamp
            try:
                self.now = read_policy(self._path)
                _log.info("%s was read again", self._path)
            except PolicyError as error:
                _log.error("what held before goes on to hold: %s", error)
        return self.now

    def _seen(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size
