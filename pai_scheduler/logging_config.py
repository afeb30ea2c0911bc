"""The scheduler's own log: as text for people, or one JSON object per line, with the ids of what it is about.

What a line is about is known where the work begins, not where something goes wrong in it: `about` binds it to
everything that is logged within, in the tasks that are begun there too.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import IO, Any

from pai_scheduler.core.model import Job, JobEvent
from pai_scheduler.job.task import TaskRef

#: What a line may carry besides its sentence; nothing else does, so that nothing slips in that is secret.
FIELDS = (
    *("event", "user", "job", "jobName", "attempt", "task", "node"),
    *("method", "path", "status", "ms"),
)
FORMATS = ("text", "json")
#: the logger to which job events are written
JOB_EVENTS = logging.getLogger("pai_scheduler.service.event_stream")

_bound: ContextVar[Mapping[str, object]] = ContextVar("_bound", default=MappingProxyType({}))


@contextmanager
def about(task: TaskRef | None = None, /, **fields: object) -> Iterator[None]:
    """Return what everything logged within is about: a task, or any of `FIELDS`."""
    if task is not None:
        fields = {"job": task.job_id, "attempt": task.attempt, "task": task.hostname, **fields}
    token = _bound.set({**_bound.get(), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def set_up(level: str, form: str, stream: IO[str] | None = None) -> None:
    """Log to the standard error stream: `level` and worse, as `form` says."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.captureWarnings(True)
    for chatty in ("alembic", "asyncio"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.getLogger().level))


def log_job_event(entry: JobEvent, job: Job | None) -> None:
    """Log what has just happened to a job, for those who ask for that much (`debug`)."""
    task = None if entry.role is None else f"{entry.role}-{entry.index}"
    about_it = {"event": entry.type, "job": entry.job_id, "attempt": entry.attempt, "task": task}
    if job is not None:
        about_it.update(user=job.user, jobName=job.name)
    JOB_EVENTS.debug("%s", entry.message, extra=about_it)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return what a record is about: what was bound, then what it says itself (`extra`)."""
    own = {name: value for name in FIELDS if (value := record.__dict__.get(name)) is not None}
    return {**_bound.get(), **own}


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000 INFO logger: sentence job=… task=…`, in local time."""

    def __init__(self) -> None:
        super().__init__(
            "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", datefmt="%Y-%m-%dT%H:%M:%S"
        )

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Write the line, less the traceback that may follow."""
        fields = " ".join(f"{name}={_quoted(value)}" for name, value in fields_of(record).items())
        return f"{super().formatMessage(record)} {fields}".rstrip()


class JsonFormatter(logging.Formatter):
    """One object per line: `time` (UTC), `level`, `logger`, `message`, the fields, and any `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _quoted(value: object) -> str:
    text = str(value)
    return text if text and text.isprintable() and not set(text) & set(' ="') else json.dumps(text)
