"""Messages between the scheduler and a file server: its settings at the start, reports of its work."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class FileServerSettings:
    """`storage`: as the option has it, with `folder` for the one that nobody named; `prefix`: of the URLs."""

    storage: str | None
    folder: str
    account: str
    kerberos: bool
    prefix: str
    openpai_compat: bool
    log_level: str = "info"
    log_format: str = "text"

    def to_line(self) -> bytes:
        """Write them as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> FileServerSettings:
        """Return the settings of such a line."""
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True)
class Sent:
    """So many bytes were sent."""

    size: int


@dataclass(frozen=True, slots=True)
class Answered:
    """A request was answered; `seconds`: None where how long it took says nothing."""

    status: int
    seconds: float | None


Report = Sent | Answered
_REPORTS = {kind.__name__: kind for kind in (Sent, Answered)}


def report_line(report: Report) -> bytes:
    """Write a report as a line."""
    return json.dumps([type(report).__name__, asdict(report)]).encode() + b"\n"


def read_report(line: bytes) -> Report:
    """Return the report of such a line."""
    kind, values = json.loads(line)
    return _REPORTS[kind](**values)
