"""A task's output as a terminal would show it, in blocks, of which only the last ones are kept."""

from __future__ import annotations

import codecs
import re
from collections import deque

#: Characters kept for the browser, and in one block (what is sent again when a line is added).
KEPT, BLOCK = 1_000_000, 16_000

_TOKEN = re.compile(
    r"\x1b\[(?P<erase>[0-2]?)K"  # erase in line
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movements: not shown
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # window titles, links
    r"|\x1b[@-Z\\^_=>c78]"
    r"|(?P<control>[\r\n\b])"
    r"|(?P<text>[^\x00-\x08\x0a-\x1f\x7f]+)"
)
#: The beginning of an escape sequence whose rest is still to come.
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]{0,99}[ -/]{0,9}|\][^\x07\x1b]{0,200}\x1b?)?\Z")


class LogText:
    """Turns bytes as they come into blocks of text; `first` is the number of the oldest block kept."""

    def __init__(self, kept: int = KEPT, block: int = BLOCK) -> None:
        self._kept, self._block = kept, block
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._line, self._cursor = "", 0
        self._blocks: deque[str] = deque([""])
        self._size = 0
        self.first = 0
        self._changed_from = 0

    @property
    def blank(self) -> bool:
        """Return whether nothing has been written yet."""
        return self.first == 0 and len(self._blocks) == 1 and not self._blocks[0] and not self._line

    def feed(self, data: bytes) -> None:
        """Add what was written."""
        text = self._pending + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        self._pending = unfinished.group() if unfinished else ""
        for token in _TOKEN.finditer(text, 0, len(text) - len(self._pending)):
            if token["text"] is not None:
                self._write(token["text"])
            elif token["control"] is not None:
                self._control(token["control"])
            elif token["erase"] is not None:
                self._erase(token["erase"])
        self._drop_old()

    def take_changes(self) -> list[tuple[int, str]]:
        """Return the number and text of each block that has changed since the last call."""
        start = max(self._changed_from, self.first)
        last = self.first + len(self._blocks) - 1
        self._changed_from = last
        blocks = [(number, self._blocks[number - self.first]) for number in range(start, last)]
        return [*blocks, (last, self._blocks[-1] + self._line)]

    def _write(self, text: str) -> None:
        self._line = self._line[: self._cursor] + text + self._line[self._cursor + len(text) :]
        self._cursor += len(text)
        while len(self._line) > self._block:
            self._append(self._line[: self._block])
            self._line = self._line[self._block :]
            self._cursor = max(0, self._cursor - self._block)

    def _control(self, control: str) -> None:
        if control == "\n":
            self._append(self._line + "\n")
            self._line, self._cursor = "", 0
        elif control == "\r":
            self._cursor = 0
        else:
            self._cursor = max(0, self._cursor - 1)

    def _erase(self, what: str) -> None:
        if what in ("", "0"):
            self._line = self._line[: self._cursor]
        elif what == "1":
            self._line = " " * self._cursor + self._line[self._cursor :]
        else:
            self._line = " " * self._cursor

    def _append(self, text: str) -> None:
        if self._blocks[-1] and len(self._blocks[-1]) + len(text) > self._block:
            self._blocks.append("")
        self._blocks[-1] += text
        self._size += len(text)

    def _drop_old(self) -> None:
        while self._size > self._kept and len(self._blocks) > 1:
            self._size -= len(self._blocks.popleft())
            self.first += 1
