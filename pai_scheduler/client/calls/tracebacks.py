"""Takes the traceback of an exception that will be raised here out of what its task writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

#: With which lines a traceback begins.
_BEGINNINGS = ("Traceback (most recent call last)", "  + Exception Group Traceback (most recent call last)")


class TracebackTaker:
    """Passes on what a task writes, but for the traceback that it sent back before it wrote it.

    `sent`: returns that traceback, empty where none has come yet. It is asked only when one may begin.
    """

    def __init__(self, sent: Callable[[], Awaitable[str]]) -> None:
        self._sent = sent
        self._expected = self._held = ""
        #: The traceback, once all of it has been written.
        self.taken = ""

    async def pass_on(self, text: str) -> str:
        """Return what of the text so far is no part of the traceback."""
        if self.taken:
            return text
        self._held += text
        if not self._expected and _may_begin(self._held):
            self._expected = await self._sent()
        if not self._expected:
            return self._release(len(self._held))
        before, found, after = self._held.partition(self._expected)
        if found:
            self.taken, self._held = found, ""
            return before + after
        return self._release(_overlap(self._held, self._expected))

    def rest(self) -> str:
        """Return what is still held when the task writes no more."""
        return self._release(len(self._held))

    def _release(self, length: int) -> str:
        released, self._held = self._held[:length], self._held[length:]
        return released


def _may_begin(text: str) -> bool:
    last = text.rpartition("\n")[2]
    return any(beginning in text or (last and beginning.startswith(last)) for beginning in _BEGINNINGS)


def _overlap(text: str, expected: str) -> int:
    """Return where in the text the expected one may have begun; its length where it has not."""
    at = max(0, len(text) - len(expected))
    while not expected.startswith(text[at:]):
        at += 1
    return at
