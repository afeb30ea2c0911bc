"""What a process of the gateway is told at its start, on its standard input: it is secret."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

KEEPALIVE_SECONDS = 30.0
#: what was revoked ends within a minute: this, and what the service remembers of the Hub's answers, are less
RECHECK_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """`service`: the URL under which `/access/…` is; `host_key`: OpenSSH's PEM; `sockets`: what listens.

    `keepalive`: seconds after which a client or a task's server that is silent is asked for a sign of life;
    at the fourth it is gone. `recheck`: seconds between two looks at whether who is in may stay.
    """

    service: str
    token: str = field(repr=False)
    host_key: str = field(repr=False)
    sockets: list[int] = field(default_factory=list)
    keepalive: float = KEEPALIVE_SECONDS
    recheck: float = RECHECK_SECONDS
    log_level: str = "info"
    log_format: str = "text"

    def to_line(self) -> bytes:
        """Write them as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> GatewaySettings:
        """Return the settings of such a line."""
        return cls(**json.loads(line))
