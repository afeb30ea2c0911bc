"""Shows on a terminal how far a transfer is: one line that is written over, and nothing when piped."""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from wcwidth import wcwidth

from pai_scheduler.client.storage.transfer import Tell, TransferProgress, amount
from pai_scheduler.job.messages import msg

from .tables import duration, printable, width

#: Seconds between two looks of the line, and over which the speed is averaged.
_PAUSE, _WINDOW = 0.1, 5.0
_BAR_COLUMNS = 20


@contextmanager
def shown_progress(locale: str, stream: TextIO | None = None) -> Iterator[Tell | None]:
    """Return what a transfer tells its progress to; None where nobody would see it."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield None
        return
    line = ProgressLine(locale)
    try:
        yield lambda progress: _draw(stream, line, progress)
    finally:
        stream.write("\r\x1b[K")
        stream.flush()


class ProgressLine:
    """Words for how far a transfer is; it keeps in mind how fast it was in the last seconds."""

    def __init__(self, locale: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._locale, self._clock = locale, clock
        self._course: deque[tuple[float, int]] = deque()
        self._shown = -_PAUSE

    def text(self, progress: TransferProgress, columns: int) -> str | None:
        """Return the line, `columns` wide at most; None: it was there a moment ago."""
        now = self._clock()
        self._course.append((now, progress.bytes_done))
        while now - self._course[0][0] > _WINDOW:
            self._course.popleft()
        ended = progress.files_done == progress.files_total
        if now - self._shown < _PAUSE and not ended:
            return None
        self._shown = now
        begun, before = self._course[0]
        speed = (progress.bytes_done - before) / (now - begun) if now > begun else 0.0
        share = progress.bytes_done / progress.bytes_total if progress.bytes_total else 1.0
        share = min(1.0, max(0.0, share))
        filled = int(share * _BAR_COLUMNS)
        files = msg("files {done}/{all}", done=progress.files_done, all=progress.files_total)
        parts = [
            f"{share:4.0%} [{'#' * filled}{'.' * (_BAR_COLUMNS - filled)}]",
            f"{amount(progress.bytes_done)}/{amount(progress.bytes_total)}",
            f"{amount(round(speed))}/s",
        ]
        if speed > 0 and not ended:
            left = (progress.bytes_total - progress.bytes_done) / speed
            parts.append(msg("{time} left", time=duration(round(left * 1000))).in_locale(self._locale))
        parts += [files.in_locale(self._locale), printable(progress.current)]
        return cut("  ".join(parts), columns)


def cut(text: str, columns: int) -> str:
    """Shorten a text to what has room on a terminal, where a character may take two columns."""
    if width(text) <= columns:
        return text
    kept, room = "", columns - 1
    for character in text:
        room -= max(0, wcwidth(character))
        if room < 0:
            break
        kept += character
    return f"{kept}…"


def _draw(stream: TextIO, line: ProgressLine, progress: TransferProgress) -> None:
    # the last column stays free: a terminal would go to the next line
    text = line.text(progress, shutil.get_terminal_size().columns - 1)
    if text is not None:
        stream.write(f"\r{text}\x1b[K")
        stream.flush()
