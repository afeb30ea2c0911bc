"""What the beginning of a file looks like: text, a table, a picture. Nothing of it is taken as HTML."""

from __future__ import annotations

import csv
import itertools
from dataclasses import dataclass
from html import escape

from ..language import Language

#: Bytes that are read of a text or table, and of the largest picture.
TEXT_BYTES = 64 * 1024
PICTURE_BYTES = 5 * 1000 * 1000
_ROWS, _COLUMNS, _LINES = 50, 20, 400
#: Characters of one cell or line that are shown.
_WIDE = 2000
_SEPARATORS = {"csv": ",", "tsv": "\t"}
#: What a picture begins with, and its format as the browser calls it. No SVG: it is shown as the text it is.
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
)
_WEBP = (b"RIFF", b"WEBP")
_PICTURE_NAMES = frozenset({"png", "jpg", "jpeg", "gif", "bmp", "webp"})


@dataclass(frozen=True, slots=True)
class Text:
    """HTML that shows a text or a table, everything in it escaped; `cut`: there is more of it."""

    markup: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it is, in a format that browsers know."""

    format: str
    content: bytes


def bytes_wanted(name: str) -> int:
    """Return how much of a file its preview needs."""
    return PICTURE_BYTES if _kind(name) in _PICTURE_NAMES else TEXT_BYTES


def preview(say: Language, name: str, head: bytes, length: int) -> Text | Picture | None:
    """Show what a file of `length` bytes begins with; None where that is neither text nor picture."""
    if (picture := _picture_format(head)) is not None and _kind(name) in _PICTURE_NAMES:
        return Picture(picture, head) if len(head) == length else None
    cut = len(head) < length or len(head) > TEXT_BYTES
    text = _text(head[:TEXT_BYTES], cut=cut)
    if text is None:
        return None
    separator = _SEPARATORS.get(_kind(name))
    return _table(say, text, separator, cut) if separator else _lines(text, cut)


def _kind(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _picture_format(head: bytes) -> str | None:
    if head.startswith(_WEBP[0]) and head[8:12] == _WEBP[1]:
        return "webp"
    return next((picture for magic, picture in _PICTURES if head.startswith(magic)), None)


def _text(head: bytes, *, cut: bool) -> str | None:
    """Read UTF-8, of which the last character may be cut."""
    if b"\0" in head:
        return None
    for end in range(len(head), max(-1, len(head) - 4) if cut else len(head) - 1, -1):
        try:
            return head[:end].decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
    return None


def _lines(text: str, cut: bool) -> Text:
    lines = text.splitlines()
    shown = "\n".join(line[:_WIDE] for line in lines[:_LINES])
    return Text(f'<pre class="pai-preview">{escape(shown)}</pre>', cut or len(lines) > _LINES)


def _table(say: Language, text: str, separator: str, cut: bool) -> Text:
    if cut:
        # the last line is most likely half
        text = text[: text.rfind("\n") + 1] or text
    rows = list(itertools.islice(csv.reader(text.splitlines(), delimiter=separator), _ROWS + 2))
    if not rows:
        return _lines(text, cut)
    head, *body = rows
    more = len(body) > _ROWS
    wide = max(len(row) for row in rows) > _COLUMNS
    titles = "".join(f'<th scope="col">{escape(cell[:_WIDE])}</th>' for cell in head[:_COLUMNS])
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell[:_WIDE])}</td>" for cell in row[:_COLUMNS]) + "</tr>"
        for row in body[:_ROWS]
    )
    note = say("… and more columns") if wide else ""
    return Text(
        f'<table class="pai-tasks pai-preview"><caption>{escape(note)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>",
        cut or more,
    )
