"""Shows what a file begins with."""

from __future__ import annotations

from html import escape

import ipywidgets as widgets

from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.client.storage.models import FileInfo

from ..language import Language
from ..look import button, notice, show
from .preview import PICTURE_BYTES, Picture, Text, bytes_wanted, preview
from .words import TROUBLE, reason, size


class PreviewPanel(widgets.VBox):
    """The preview of one file at a time; hidden where there is none."""

    def __init__(self, files: FilesClient, say: Language) -> None:
        self._files, self._say = files, say
        self.title = widgets.HTML(layout=widgets.Layout(flex="1 1 auto", width="auto"))
        self.title.add_class("pai-subtitle")
        self.close_button = button(icon="times", tooltip=say("Close the preview"), on_click=self.hide)
        self.text = widgets.HTML()
        self.text.add_class("pai-preview-box")
        self.picture = widgets.Image(layout=widgets.Layout(max_width="100%", max_height="480px"))
        super().__init__([widgets.HBox([self.title, self.close_button]), self.text, self.picture])
        self.add_class("pai-box")
        self.hide()

    def hide(self) -> None:
        """Show nothing any more."""
        show(self, False)
        self.text.value, self.picture.value = "", b""

    async def load(self, entry: FileInfo) -> None:
        """Show what a file begins with, or why that cannot be."""
        say = self._say
        self.title.value = escape(f"{entry.name} · {size(entry.length)}")
        self._show(notice(say("Reading …")))
        wanted = bytes_wanted(entry.name)
        if wanted == PICTURE_BYTES and entry.length > PICTURE_BYTES:
            limit = size(PICTURE_BYTES)
            self._show(notice(say("Larger than {limit}: download it to look at it.", limit=limit)))
            return
        try:
            head = await self._head(entry, wanted)
        except TROUBLE as error:
            self._show(notice(reason(say, error), "error"))
            return
        shown = preview(say, entry.name, head, entry.length)
        if isinstance(shown, Picture):
            self.picture.format, self.picture.value = shown.format, shown.content
            show(self.text, False)
            show(self.picture, True)
        elif isinstance(shown, Text):
            more = notice(say("This is only the beginning.")) if shown.cut else ""
            self._show((shown.markup if head else notice(say("This file is empty."))) + more)
        else:
            self._show(notice(say("This is no text and no picture: download it to look at it.")))

    async def _head(self, entry: FileInfo, wanted: int) -> bytes:
        head = bytearray()
        if entry.length:
            async with self._files.read(entry.path, 0, wanted) as pieces:
                async for piece in pieces:
                    head += piece
        return bytes(head)

    def _show(self, markup: str) -> None:
        self.text.value = markup
        show(self.text, True)
        show(self.picture, False)
        show(self, True)
