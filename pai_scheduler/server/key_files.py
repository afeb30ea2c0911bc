"""Files of the data folder without which what runs is lost: they stay as they are as long as the database.

The database remembers them by their fingerprints. One that is missing would be made anew in silence, and all
that follows from it would be another: the keys and tokens of the tasks that run, the gateway's host key.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.store.store import Store

#: each, and what depends on it
_LOSSES: dict[str, Message] = {
    "job-keys.key": msg("nobody can log into the tasks that run, and SSH clients are warned of the gateway"),
    "job-tokens.key": msg("the tasks that run lose the storage"),
    "docker-instance": msg("the containers that run are not found any more"),
}


def check_kept_files(folder: Path, store: Store, *, new_keys: bool) -> None:
    """StartError where a file is not the one that the database remembers. `new_keys`: another is right too.

    StoreError: the database cannot be asked.
    """
    if new_keys:
        return
    known = store.fingerprints()
    for name, loss in _LOSSES.items():
        if name not in known:
            continue
        found = _fingerprint(folder / name)
        if found == known[name]:
            continue
        values = {"file": folder / name, "loss": loss}
        if found is None:
            message = msg(
                "The file {file} is missing; it was there when this database was last in use. Put it back "
                "from a backup. To go on with a new one, start once with --new-keys: then {loss}.",
                **values,
            )
        else:
            message = msg(
                "The file {file} is not the one that was there when this database was last in use. Put that "
                "back from a backup. To go on with this one, start once with --new-keys: then {loss}.",
                **values,
            )
        raise StartError(message)


def remember_kept_files(folder: Path, store: Store) -> None:
    """Record the files as they are in the database. StoreError: it cannot be written."""
    found = {name: _fingerprint(folder / name) for name in _LOSSES}
    there = {name: fingerprint for name, fingerprint in found.items() if fingerprint is not None}
    if there.items() - store.fingerprints().items():
        store.remember_fingerprints(there)


def _fingerprint(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
