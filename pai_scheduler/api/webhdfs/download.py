"""What a file's reader is told before the first byte: which part comes, under which name it is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from pai_scheduler.storage.protocol import FileStatus

_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)
#: More digits than any file is long.
_LONGEST = 18


class UnsatisfiableError(Exception):
    """A part was asked for that the file does not have."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A part of a file, as `Range` names it; bytes."""

    offset: int
    length: int

    def content_range(self, size: int) -> str:
        """Return which part of how much it is."""
        return f"bytes {self.offset}-{self.offset + self.length - 1}/{size}"


def wanted_part(header: str, size: int) -> ByteRange | None:
    """Read a `Range`; None: the whole file, also where several parts are asked for (RFC 9110, 14.2)."""
    found = _RANGE.fullmatch(header.strip().replace(" ", ""))
    if found is None or found[1] == found[2] == "" or max(len(found[1]), len(found[2])) > _LONGEST:
        return None
    if not found[1]:
        offset, end = max(0, size - int(found[2])), size
        if not int(found[2]):
            raise UnsatisfiableError
    else:
        offset, end = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
        if found[2] and int(found[2]) < offset:
            return None
    if offset >= size:
        raise UnsatisfiableError
    return ByteRange(offset, end - offset)


def entity_tag(status: FileStatus) -> str:
    """Name a file's contents: the same as long as nobody writes to it."""
    return f'"{status.file_id:x}-{status.modified:x}-{status.length:x}"'


def attachment(name: str) -> str:
    """Return the Content-Disposition of what is kept as a file and never shown (RFC 6266)."""
    plain = "".join(c if " " <= c <= "~" and c not in '"\\%;' else "_" for c in name)
    value = f'attachment; filename="{plain}"'
    if plain != name:
        value += f"; filename*=UTF-8''{quote(name.encode('utf-8', 'surrogateescape'), safe='')}"
    return value
