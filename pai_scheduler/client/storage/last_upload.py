"""Remembers in `.pai/last-upload.json` what was uploaded from a folder: next time only changes are sent."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(".pai", "last-upload.json")
#: Folders of the storage that are remembered; a job with a name of its own has a new one each time.
_REMEMBERED = 20

#: A file's length (bytes) and time of change (ms).
State = tuple[int, int]


@dataclass(frozen=True, slots=True)
class UploadRecord:
    """What a folder of the storage has from us: the states of files by their names."""

    folder: str
    files: Mapping[str, State]


class UploadRecords:
    """The uploads from a folder to the storage at an address, newest first."""

    def __init__(self, folder: Path, address: str) -> None:
        self._path = folder / _FILE
        self._address = address

    def read(self) -> Sequence[UploadRecord]:
        """Return them; none where there is no record, or none that can be understood."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            kept = json.loads(self._path.read_bytes())
            if kept["storage"] == self._address:
                return [_record(item) for item in kept["uploads"]]
        return []

    def write(self, record: UploadRecord) -> None:
        """Remember an upload as the last one; where that cannot be written, nothing is remembered."""
        others = [old for old in self.read() if old.folder != record.folder][: _REMEMBERED - 1]
        uploads = [{"folder": item.folder, "files": item.files} for item in (record, *others)]
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)
            fresh.write_text(json.dumps({"storage": self._address, "uploads": uploads}, indent=1))
            fresh.replace(self._path)


def _record(item: Mapping[str, object]) -> UploadRecord:
    files = item["files"]
    if not isinstance(files, dict):
        raise TypeError("files")
    return UploadRecord(
        str(item["folder"]), {name: (int(state[0]), int(state[1])) for name, state in files.items()}
    )
