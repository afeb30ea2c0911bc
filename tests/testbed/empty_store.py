"""The database of a scheduler that has had no job: made once by a process, copied for each of its tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pai_scheduler.store.store import DATABASE_FILE, Store


def put_empty_store(folder: Path) -> Path:
    """Put it into a folder that has none yet, and return the folder."""
    file = folder / DATABASE_FILE
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_made())
    return folder


@cache
def _made() -> bytes:
    with TemporaryDirectory() as folder:
        Store.in_folder(Path(folder)).close()
        return (Path(folder) / DATABASE_FILE).read_bytes()
