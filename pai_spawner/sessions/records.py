"""What is remembered of sessions over a restart: what their users put off, and what they were told."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pai_scheduler.rest.sessions import SessionMessage

from .decide import Record

#: A session's user, and the name of the server (empty: the default one).
Key = tuple[str, str]
#: Messages to one session that are kept.
_MOST_MESSAGES = 20

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is remembered of one session; `job` is that of this start, so that the next begins anew."""

    job: str = ""
    record: Record = Record()  # noqa: RUF009 - it cannot be changed
    messages: tuple[SessionMessage, ...] = field(default=())


class Records:
    """Keeps what is remembered, in one small file that is written when something changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[Key, Remembered] = {}
        try:
            self._known = _read(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            # it holds nothing that cannot be said again: whoever was warned is warned anew
            _log.error("%s cannot be read (%s); it is begun anew", path, error)

    def of(self, key: Key, job: str) -> Remembered:
        """Return what is remembered of the present start of a session."""
        known = self._known.get(key)
        return known if known is not None and known.job == job else Remembered(job)

    def set(self, key: Key, remembered: Remembered) -> None:
        """Remember it; OSError where it cannot be written."""
        before = self._known.get(key)
        if before == remembered or (before is None and remembered == Remembered(remembered.job)):
            return
        self._known[key] = remembered
        self._write()

    def add_message(self, key: Key, job: str, time: int, sender: str, text: str) -> None:
        """Remember what a session's user is to be told."""
        known = self.of(key, job)
        number = max((message["id"] for message in known.messages), default=0) + 1
        message: SessionMessage = {"id": number, "time": time, "sender": sender, "text": text}
        self.set(key, Remembered(job, known.record, (*known.messages, message)[-_MOST_MESSAGES:]))

    def forget_others(self, running: Collection[Key]) -> None:
        """Forget the sessions that do not run any more."""
        gone = self._known.keys() - set(running)
        if gone:
            for key in gone:
                del self._known[key]
            self._write()

    def _write(self) -> None:
        document = [_document(key, remembered) for key, remembered in self._known.items()]
        part = self._path.with_name(self._path.name + ".part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump(document, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)


def _document(key: Key, remembered: Remembered) -> dict[str, Any]:
    record = remembered.record
    return {
        "user": key[0],
        "server": key[1],
        "job": remembered.job,
        "kept": record.kept and record.kept.isoformat(),
        "extensions": record.extensions,
        "warned": record.warned and record.warned.isoformat(),
        "messages": list(remembered.messages),
    }


def _read(document: list[dict[str, Any]]) -> dict[Key, Remembered]:
    return {
        (entry["user"], entry["server"]): Remembered(
            entry["job"],
            Record(_time(entry["kept"]), entry["extensions"], _time(entry["warned"])),
            tuple(entry["messages"]),
        )
        for entry in document
    }


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
