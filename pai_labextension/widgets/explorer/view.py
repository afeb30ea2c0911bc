"""A small list of one folder of the storage: go about, choose a file or folder, bring it here or there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets

from pai_scheduler.client.storage.client import FileInfo, FilesClient, plain
from pai_scheduler.client.storage.transfer import amount

from ..background import Background, at_home
from ..language import Language
from ..links import server_prefix
from ..look import button, notice, show
from .paths import in_a_job, parent
from .storage_links import browser_link, download_link
from .transfer_panel import TransferPanel
from .words import TROUBLE, reason

#: Entries of one folder that are read at most, and those of them that are listed at a time.
MOST, SHOWN = 50_000, 500


class ExplorerView(widgets.VBox):
    """Lists the storage with `files`; what it does runs in `background`.

    `path`: the folder to begin with; empty: the person's own. `on_look` is called when another folder is
    shown, or another entry is chosen.
    """

    def __init__(
        self,
        files: FilesClient,
        say: Language,
        background: Background,
        path: str = "",
        on_look: Callable[[], None] = lambda: None,
    ) -> None:
        self._files, self._say, self._background = files, say, background
        self._on_look = on_look
        #: The folder that is shown; empty until it is known.
        self.path = ""
        self._home = ""
        self._entries: Sequence[FileInfo] = ()
        self._listed: Sequence[FileInfo] = ()
        self._complete = False
        self._reading: asyncio.Task[Any] | None = None
        self.home = button(icon="home", tooltip=say("My own files"), on_click=lambda: self.go(self._home))
        self.up = button(
            icon="level-up", tooltip=say("The folder above"), on_click=lambda: self.go(parent(self.path))
        )
        self.again = button(icon="refresh", tooltip=say("Look again"), on_click=self.look_again)
        self.place = widgets.Text(
            tooltip=say("Folder of the storage"),
            continuous_update=False,
            layout=widgets.Layout(flex="1 1 200px", width="auto"),
        )
        self.find = widgets.Text(
            placeholder=say("find in names"),
            tooltip=say("Show only what has this in its name"),
            layout=widgets.Layout(width="160px"),
        )
        self.hint = widgets.Label()
        self.entries = widgets.Select(rows=12, layout=widgets.Layout(width="auto"))
        self.enter = button(say("Open the folder"), icon="folder-open", on_click=self._enter)
        self.facts = widgets.HTML()
        #: Why the folder cannot be read, or not all of it.
        self.unread = widgets.HTML()
        self.transfers = TransferPanel(
            files,
            say,
            background,
            where=lambda: self.path,
            chosen=lambda: self.chosen,
            on_uploaded=self.look_again,
        )
        row = widgets.Layout(flex_flow="row wrap", align_items="center", overflow="visible")
        way = widgets.HBox([self.home, self.up, self.again, self.place, self.find], layout=row)
        acts = widgets.HBox([self.enter, self.facts], layout=row)
        super().__init__([way, self.unread, self.hint, self.entries, acts, self.transfers])
        self.add_class("pai-explorer")
        self._tell("")
        self._list()
        self.place.observe(at_home(lambda _change: self._typed()), "value")
        self.find.observe(at_home(lambda _change: self._list()), "value")
        self.entries.observe(at_home(lambda _change: self._chosen_changed()), "index")
        background.spawn(self._begin(path), "pai-explorer")

    @property
    def chosen(self) -> FileInfo | None:
        """Return the entry that is chosen."""
        index = self.entries.index
        return None if index is None else self._listed[index]

    @property
    def names(self) -> list[str]:
        """Return what is listed."""
        return [entry.name for entry in self._listed]

    def choose(self, name: str) -> None:
        """Choose the entry of that name."""
        self.entries.index = self.names.index(name)

    def go(self, path: str) -> None:
        """Show another folder."""
        self.path = path or self._home or "/"
        self.place.value = self.path
        self.find.value = ""
        self._entries, self._complete = (), False
        self._list()
        self._read()

    def look_again(self) -> None:
        """Read the folder anew."""
        if self.path:
            self._read()
        else:
            self._background.spawn(self._begin(""), "pai-explorer")

    async def _begin(self, path: str) -> None:
        """Find out which folder is the person's own."""
        try:
            self._home = await self._files.home()
        except TROUBLE as error:
            self._tell(reason(self._say, error))
            show(self.hint, False)
            if not path:
                return
        if not self.path:
            self.go(path)

    def _typed(self) -> None:
        if self.place.value == self.path:
            return
        try:
            self.go(plain(self.place.value))
        except TROUBLE as error:
            self._tell(reason(self._say, error))

    def _enter(self) -> None:
        if self.chosen is not None and self.chosen.is_folder:
            self.go(self.chosen.path)

    def _read(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._reading = self._background.spawn(self._read_pages(self.path), "pai-list")

    async def _read_pages(self, path: str) -> None:
        entries: list[FileInfo] = []
        self._tell("")
        try:
            while True:
                page = await self._files.list_page(path, entries[-1].name if entries else "")
                entries += page.entries
                if not page.remaining or not page.entries or len(entries) >= MOST:
                    break
        except TROUBLE as error:
            self._tell(reason(self._say, error))
            show(self.hint, False)
            return
        if page.remaining:
            self._tell(self._say("There is more in this folder: the first {count} are shown.", count=MOST))
        entries.sort(key=lambda entry: (not entry.is_folder, entry.name.casefold(), entry.name))
        self._entries, self._complete = entries, True
        self._list()

    def _list(self) -> None:
        """List what was looked for; what is chosen stays chosen as long as it is there."""
        say, before = self._say, self.chosen
        wanted = self.find.value.strip().casefold()
        found = [entry for entry in self._entries if wanted in entry.name.casefold()]
        listed = found[:SHOWN]
        with self.entries.hold_sync():
            self.entries.index = None
            self._listed = listed
            self.entries.options = [_label(entry) for entry in listed]
            # ipywidgets chooses the first one by itself
            same = (index for index, entry in enumerate(listed) if before and entry.path == before.path)
            self.entries.index = next(same, None)
        if not self._complete:
            hint = say("Reading the folder …")
        elif len(found) > SHOWN:
            hint = say("{first} to {last} of {total}", first=1, last=SHOWN, total=f"{len(found):,}")
        elif found:
            hint = ""
        elif wanted:
            hint = say("Nothing here has “{text}” in its name.", text=self.find.value)
        else:
            hint = say("This folder is empty.")
        self.hint.value = hint
        show(self.hint, bool(hint))
        self._chosen_changed()

    def _chosen_changed(self) -> None:
        """Offer what can be done with what is chosen; say how a job names it."""
        say, chosen = self._say, self.chosen
        self.enter.disabled = chosen is None or not chosen.is_folder
        self.transfers.fetch.disabled = chosen is None
        shown = self.path if chosen is None else chosen.path
        lines = []
        if shown:
            name = f'<code class="pai-copyable">{escape(in_a_job(shown))}</code>'
            lines.append(f'<span class="pai-muted">{escape(say("In a job:"))}</span> {name}')
        if shown and (prefix := server_prefix()) is not None:
            links = [browser_link(say, prefix, shown)]
            links += [download_link(say, prefix, chosen)] if chosen is not None else []
            lines.append(" · ".join(links))
        self.facts.value = "<br>".join(lines)
        self._on_look()

    def _tell(self, sentence: str) -> None:
        self.unread.value = notice(sentence, "warning") if sentence else ""
        show(self.unread, bool(sentence))


def _label(entry: FileInfo) -> str:
    return f"{entry.name}/" if entry.is_folder else f"{entry.name} · {amount(entry.length)}"
