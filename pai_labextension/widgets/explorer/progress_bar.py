"""Progress of a transfer: a bar, numbers, and a way to break it off."""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape

import ipywidgets as widgets

from pai_scheduler.client.storage.transfer import TransferProgress, amount

from ..language import Language
from ..look import button, show

#: Seconds between two pictures of the bar; a browser does not see more.
_GAP = 0.2


class ProgressBar(widgets.VBox):
    """Shows a transfer while it runs; `on_cancel` is called when a person breaks it off."""

    def __init__(
        self, say: Language, on_cancel: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._began = self._shown = 0.0
        self._first: int | None = None
        self.bar = widgets.FloatProgress(max=1, layout=widgets.Layout(flex="1 1 160px", width="auto"))
        self.cancel = button(say("Cancel"), on_click=on_cancel)
        self.text = widgets.HTML()
        self.text.add_class("pai-muted")
        row = widgets.HBox(
            [self.bar, self.cancel], layout=widgets.Layout(align_items="center", overflow="visible")
        )
        super().__init__([row, self.text])
        show(self, False)

    def begin(self, text: str) -> None:
        """Show that something begins whose length is not known yet."""
        self._began, self._shown, self._first = self._clock(), 0.0, None
        self.bar.value = 0
        self.text.value = escape(text)
        show(self, True)

    def tell(self, progress: TransferProgress) -> None:
        """Show how far it is, but not more often than can be seen."""
        now = self._clock()
        if self._first is None:
            # what was there from an earlier try says nothing about the speed
            self._first, self._began = progress.bytes_done, now
        done = progress.files_done == progress.files_total
        if now - self._shown < _GAP and not done:
            return
        self._shown = now
        whole = progress.bytes_total or progress.files_total or 1
        part = progress.bytes_done if progress.bytes_total else progress.files_done
        self.bar.value = min(1.0, part / whole)
        self.text.value = escape(self._words(progress, now))

    def end(self) -> None:
        """Hide it: the transfer is over."""
        show(self, False)

    def _words(self, progress: TransferProgress, now: float) -> str:
        say = self._say
        parts = [
            say(
                "{done} of {total}, files: {files} of {count}",
                done=amount(progress.bytes_done),
                total=amount(progress.bytes_total),
                files=progress.files_done,
                count=progress.files_total,
            )
        ]
        seconds = now - self._began
        if seconds >= 1 and self._first is not None:
            parts.append(
                say("{size} per second", size=amount(max(0, progress.bytes_done - self._first) / seconds))
            )
        return " · ".join([*parts, progress.current])
