"""Jobs that a job waits for, as `extras.after` names them; an entry of it in one line of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class On(StrEnum):
    """Required outcome of a job before its dependent job may start."""

    SUCCEEDED = "succeeded"
    ENDED = "ended"  # in whatever way
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AfterRequest:
    """A job of the same owner, by its name, that a job waits for."""

    job: str
    on: On = On.SUCCEEDED


def after_of(extras: Mapping[str, Any]) -> tuple[AfterRequest, ...]:
    """Read it of a valid job. A job that is older than this field may have anything under its name."""
    return tuple(
        AfterRequest(one)
        if isinstance(one, str)
        else AfterRequest(one["job"], On(one.get("on", On.SUCCEEDED)))
        for one in extras.get("after", ())
    )


def read_entry(text: str) -> str | dict[str, str]:
    """Read `JOB` or `JOB:ON` as an entry of `extras.after`; whether it is right, the schema knows."""
    job, colon, on = text.partition(":")
    return {"job": job.strip(), "on": on.strip()} if colon else job.strip()


def read_entries(after: str | Mapping[str, str] | Iterable[str | Mapping[str, str]]) -> list[Any]:
    """Return `extras.after` for one job or several, each as `JOB`, `JOB:ON` or an entry."""
    several = [after] if isinstance(after, str | Mapping) else after
    return [read_entry(one) if isinstance(one, str) else dict(one) for one in several]


def entry_text(entry: object) -> str | None:
    """Write an entry as `read_entry` reads it; None: it is no such thing."""
    match entry:
        case str():
            return entry
        case {"job": str(job), "on": str(on)}:
            return f"{job}:{on}"
        case {"job": str(job)}:
            return job
    return None
