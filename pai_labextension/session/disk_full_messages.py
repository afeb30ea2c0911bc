"""Messages of a full disk, in JupyterLab's language: a file that is not saved, or not removed.

No sentence has a % in it, which the server would double.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from pai_labextension.locales import default_locale
from pai_labextension.messages import msg
from pai_scheduler.i18n import Message

#: Bytes with which hardly anything can be saved.
_LEAST_ROOM = 2**20
_MB, _GB = 2**20, 2**30


def not_saved(room: os.statvfs_result, *, trash: bool) -> str:
    """Say that a file is not saved. `trash`: what the file browser removes goes there and takes room."""
    return _joined(_not_saved(room, trash))


def not_removed() -> str:
    """Say that a file could not go to the trash."""
    sentence = msg(
        "Not removed: there is no room left to note what is in the trash. Remove it in a terminal (rm), or "
        "empty the trash (rm -r ~/.local/share/Trash)."
    )
    return _joined([sentence])


def _not_saved(room: os.statvfs_result, trash: bool) -> Iterator[Message]:
    # who has reached a limit of another kind may see that the disk has room
    if room.f_bavail * room.f_frsize < _LEAST_ROOM:
        yield msg(
            "Not saved: there is no room left where your files are kept ({used} of {total} are used).",
            used=_size((room.f_blocks - room.f_bfree) * room.f_frsize),
            total=_size(room.f_blocks * room.f_frsize),
        )
    else:
        yield msg("Not saved: your files have reached the limit of what you may keep here.")
    yield msg("What you typed is not lost while this page is open. Make room, then save again:")
    if trash:
        yield msg(
            "remove files in a terminal (rm), or move them to the storage (pai fs put). What the file "
            "browser removes stays in the trash until you empty it (rm -r ~/.local/share/Trash)."
        )
    else:
        yield msg("remove files, or move them to the storage (pai fs put).")


def _joined(sentences: Iterator[Message] | list[Message]) -> str:
    # JupyterLab's language: it says the rest of the dialog
    locale = default_locale()
    return " ".join(sentence.in_locale(locale) for sentence in sentences)


def _size(size: int) -> str:
    return f"{size / _MB:.0f} MB" if size < _GB else f"{size / _GB:.1f} GB"
