"""Shows a log that is being written: it stays at the end while new lines come, unless one scrolls up."""

from __future__ import annotations

import asyncio
import html

import ipywidgets as widgets

from .log_text import LogText

#: s between two paintings: a line is seen at once, a flood of lines a few times a second.
PAINT_INTERVAL = 0.1


class LogView(widgets.VBox):
    """The log's text. Only the blocks that changed are sent to the browser."""

    def __init__(self, when_blank: str) -> None:
        self._text = LogText()
        self._when_blank = widgets.HTML(f'<pre class="pai-muted">{html.escape(when_blank)}</pre>')
        self._shown: dict[int, widgets.HTML] = {}
        self._dirty = asyncio.Event()
        # the margin pushes a short log to the top; a long one leaves it nothing
        self.inside = widgets.VBox(
            layout=widgets.Layout(width="100%", flex="0 0 auto", margin="0 0 auto", overflow="visible")
        )
        self.inside.children = (self._when_blank,)
        super().__init__(
            [self.inside],
            layout=widgets.Layout(
                flex="0 0 auto",
                min_height="64px",
                max_height="320px",
                # a reversed column keeps to its end by itself: the browser follows without a script
                flex_flow="column-reverse",
                overflow="hidden auto",
            ),
        )
        self.add_class("pai-log")

    @property
    def text(self) -> str:
        """Return what is shown as plain text."""
        return "".join(html.unescape(_inside(block.value)) for _, block in sorted(self._shown.items()))

    @property
    def blank(self) -> bool:
        """Return whether nothing has been written yet."""
        return self._text.blank

    def clear(self) -> None:
        """Begin with an empty log."""
        self._text = LogText()
        self._shown = {}
        self.inside.children = (self._when_blank,)
        self._dirty.clear()

    def feed(self, data: bytes) -> None:
        """Add what was written; it is seen with the next painting."""
        self._text.feed(data)
        self._dirty.set()

    def paint(self) -> None:
        """Show what has changed."""
        self._dirty.clear()
        numbers = set(self._shown)
        for number, text in self._text.take_changes():
            block = self._shown.setdefault(number, widgets.HTML())
            block.value = f"<pre>{html.escape(text)}</pre>"
        for number in [number for number in self._shown if number < self._text.first]:
            self._shown.pop(number).close()
        if set(self._shown) != numbers:
            self.inside.children = tuple(block for _, block in sorted(self._shown.items()))

    async def run(self) -> None:
        """Paint for ever, as often as there is something new."""
        while True:
            await self._dirty.wait()
            self.paint()
            await asyncio.sleep(PAINT_INTERVAL)


def _inside(markup: str) -> str:
    return markup.removeprefix("<pre>").removesuffix("</pre>")
