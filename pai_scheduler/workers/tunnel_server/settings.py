"""Settings of a tunnel server, as it is told at its start."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class TunnelSettings:
    """`credentials`: the PEM file that is shown to agents; None in tests only, and TLS is not spoken then."""

    credentials: str | None
    log_level: str = "info"
    log_format: str = "text"

    def to_line(self) -> bytes:
        """Write them as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> TunnelSettings:
        """Return the settings of such a line."""
        return cls(**json.loads(line))
