"""The storage as a person sees it: the way to a folder, what is in it, and what can be done with that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from html import escape
from typing import Any

import ipywidgets as widgets

from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.client.storage.models import FileInfo

from ..background import Background
from ..language import Language
from ..links import server_prefix
from ..look import button, notice, show
from .crumbs import Crumbs
from .downloads import download_link
from .paths import child, in_a_job, is_plain_name, parent
from .preview_panel import PreviewPanel
from .prompts import Confirm, NamePrompt
from .table import FileTable
from .transfer_panel import TransferPanel
from .words import TROUBLE, reason, size

#: Entries of one folder that are read at most: with more, a person finds nothing by looking.
MOST = 50_000
#: Names that are written out in a question.
_MOST_NAMES = 5


class ExplorerView(widgets.VBox):
    """Looks at the storage with `files`; what it does runs in `background`.

    `path`: the folder to begin with; empty: the person's own. `on_look` is called when another folder is
    shown, or other entries are chosen.
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
        self._reading: asyncio.Task[Any] | None = None
        self.crumbs = Crumbs(say, self.go)
        self.home = button(icon="home", tooltip=say("My own files"), on_click=lambda: self.go(self._home))
        self.again = button(icon="refresh", tooltip=say("Look again"), on_click=self.look_again)
        way = widgets.HBox([self.home, self.again, self.crumbs], layout=widgets.Layout(overflow="visible"))
        self.upload = button(say("Upload"), icon="upload", on_click=lambda: self._offer("upload"))
        self.download = button(say("Download"), icon="download", on_click=lambda: self._offer("download"))
        self.new = button(say("New folder"), icon="folder", on_click=self._ask_new)
        self.rename = button(say("Rename"), icon="pencil", on_click=self._ask_rename)
        self.delete = button(say("Delete"), icon="trash", on_click=self._start_delete)
        tools = widgets.HBox(
            [self.upload, self.download, self.new, self.rename, self.delete],
            layout=widgets.Layout(flex_flow="row wrap", overflow="visible"),
        )
        self.name = NamePrompt(say)
        self.confirm = Confirm(say, say("Delete"))
        self.facts = widgets.HTML()
        #: Why a change was not made; why the folder cannot be read, or not all of it.
        self.refusal, self.unread = widgets.HTML(), widgets.HTML()
        self.table = FileTable(say, self._open, self._chosen_changed)
        self.preview = PreviewPanel(files, say)
        self.transfers = TransferPanel(
            files,
            say,
            background,
            where=lambda: self.path,
            chosen=lambda: self.table.chosen,
            on_uploaded=self.look_again,
        )
        super().__init__(
            [
                way,
                tools,
                self.name,
                self.confirm,
                self.transfers,
                self.refusal,
                self.unread,
                self.table,
                self.facts,
                self.preview,
            ]
        )
        self.add_class("pai-explorer")
        self._tell("")
        self._tell_unread("")
        self._chosen_changed()
        background.spawn(self._begin(path), "pai-explorer")

    def go(self, path: str) -> None:
        """Show another folder."""
        self._tell("")
        self.path = path or self._home or "/"
        self.crumbs.show(self.path)
        self.table.begin()
        self.preview.hide()
        self.name.hide()
        self.confirm.hide()
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
            self._tell_unread(reason(self._say, error))
            if not path:
                self.table.give_up()
                return
        if not self.path:
            self.go(path)

    def _read(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._reading = self._background.spawn(self._list(self.path), "pai-list")

    async def _list(self, path: str) -> None:
        self._tell_unread("")
        entries: list[FileInfo] = []
        try:
            while True:
                page = await self._files.list_page(path, entries[-1].name if entries else "")
                entries += page.entries
                complete = not page.remaining or not page.entries
                if not complete and len(entries) >= MOST:
                    self._tell_unread(
                        self._say("There is more in this folder: the first {count} are shown.", count=MOST)
                    )
                    complete = True
                # the list goes on growing: what is shown is how it is now
                self.table.load(tuple(entries), complete=complete)
                if complete:
                    return
        except TROUBLE as error:
            self.table.give_up()
            self._tell_unread(reason(self._say, error))

    def _open(self, entry: FileInfo) -> None:
        if entry.is_folder:
            self.go(entry.path)
        else:
            self._background.spawn(self.preview.load(entry), "pai-preview")

    def _offer(self, what: str) -> None:
        self.name.hide()
        self.confirm.hide()
        self.transfers.offer(what)

    def _chosen_changed(self) -> None:
        """Offer what can be done with what is chosen; say how a job names it."""
        chosen = self.table.chosen
        self.rename.disabled = len(chosen) != 1
        self.delete.disabled = self.download.disabled = not chosen
        if not chosen:
            self.transfers.withdraw_download()
        lines = []
        shown = chosen[0].path if len(chosen) == 1 else self.path
        if shown and len(chosen) < 2:
            label = escape(self._say("In a job:"))
            lines.append(f'<span class="pai-muted">{label}</span> {_copyable(self._say, in_a_job(shown))}')
        if len(chosen) == 1 and (prefix := server_prefix()) is not None:
            lines.append(download_link(self._say, prefix, chosen[0]))
        if len(chosen) > 1:
            lines.append(escape(self._say("Chosen: {count}", count=len(chosen))))
        self.facts.value = "<br>".join(lines)
        self._on_look()

    def _ask_new(self) -> None:
        folder = self.path
        self._offer("")
        self.name.ask(self._say("Name of the new folder:"), "", lambda name: self._new(folder, name))

    def _new(self, folder: str, name: str) -> str | None:
        if not is_plain_name(name):
            return self._bad_name()
        self._start(self._files.mkdirs(child(folder, name)))
        return None

    def _ask_rename(self) -> None:
        [entry] = self.table.chosen
        self._offer("")
        self.name.ask(self._say("New name:"), entry.name, lambda name: self._move(entry, name))

    def _move(self, entry: FileInfo, name: str) -> str | None:
        if not is_plain_name(name):
            return self._bad_name()
        if name != entry.name:
            self._start(self._rename(entry.path, child(parent(entry.path), name)))
        return None

    async def _rename(self, source: str, target: str) -> None:
        # a target that is a folder would be moved into
        if await self._files.find(target) is not None:
            self._tell(self._say("{path} is there already: choose another name.", path=target))
            return
        await self._files.rename(source, target)

    def _start_delete(self) -> None:
        self._offer("")
        self._background.spawn(self._ask_delete(self.table.chosen), "pai-delete")

    async def _ask_delete(self, chosen: list[FileInfo]) -> None:
        """Ask, telling how much it is: what is in a folder cannot be seen from outside."""
        say = self._say
        files, length = 0, 0
        try:
            for entry in chosen:
                summary = await self._files.summary(entry.path) if entry.is_folder else None
                files += 1 if summary is None else summary.files
                length += entry.length if summary is None else summary.length
        except TROUBLE as error:
            self._tell(reason(say, error))
            return
        names = say(", ").join(entry.name for entry in chosen[:_MOST_NAMES])
        if (more := len(chosen) - _MOST_NAMES) > 0:
            names = say("{names} and {count} more", names=names, count=more)
        question = say(
            "Delete {names} for good? Files: {files}, {size}.", names=names, files=files, size=size(length)
        )
        self.confirm.ask(question, lambda: self._start(self._delete(chosen)))

    async def _delete(self, chosen: list[FileInfo]) -> None:
        for entry in chosen:
            await self._files.delete(entry.path, recursive=entry.is_folder)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.spawn(self._change(work), "pai-change")

    async def _change(self, work: Coroutine[Any, Any, None]) -> None:
        """Change something, and show how it is then."""
        self._tell("")
        try:
            await work
        except TROUBLE as error:
            self._tell(reason(self._say, error))
        self.look_again()

    def _bad_name(self) -> str:
        return self._say("A name cannot be empty, . or .., or have a slash in it.")

    def _tell(self, sentence: str) -> None:
        self.refusal.value = notice(sentence, "error") if sentence else ""
        show(self.refusal, bool(sentence))

    def _tell_unread(self, sentence: str) -> None:
        self.unread.value = notice(sentence, "warning") if sentence else ""
        show(self.unread, bool(sentence))


def _copyable(say: Language, text: str) -> str:
    """Show a text with a button that copies it; a browser lets a page do that only while it is pressed."""
    copy = (
        "const r=document.createRange();r.selectNodeContents(this.previousElementSibling);"
        "const s=getSelection();s.removeAllRanges();s.addRange(r);document.execCommand('copy')"
    )
    tooltip = escape(say("Copy"), quote=True)
    return (
        f'<code class="pai-copyable">{escape(text)}</code> '
        f'<button type="button" class="pai-copy" title="{tooltip}" aria-label="{tooltip}" onclick="{copy}">'
        '<i class="fa fa-copy"></i></button>'
    )
