"""Brings files from the notebook server's disk or the browser into a folder, and fetches what was chosen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.client.storage.download import download
from pai_scheduler.client.storage.models import FileInfo
from pai_scheduler.client.storage.transfer import LocalFileError, TransferProgress, TransferResult
from pai_scheduler.client.storage.upload import upload

from ..background import Background, at_home
from ..language import Language
from ..look import button, notice, show
from .local_path import LocalPath
from .paths import child, is_plain_name
from .progress_bar import ProgressBar
from .prompts import Confirm
from .words import TROUBLE, reason, size

#: Reasons that are told one by one.
_MOST_REASONS = 5
_ROW = {"flex_flow": "row wrap", "align_items": "center", "overflow": "visible"}


class TransferPanel(widgets.VBox):
    """Uploads into `where()`, downloads `chosen()`; one transfer at a time. `on_uploaded`: look again."""

    def __init__(
        self,
        files: FilesClient,
        say: Language,
        background: Background,
        *,
        where: Callable[[], str],
        chosen: Callable[[], Sequence[FileInfo]],
        on_uploaded: Callable[[], None],
    ) -> None:
        self._files, self._say, self._background = files, say, background
        self._where, self._chosen, self._on_uploaded = where, chosen, on_uploaded
        self._offered = ""
        self._running: asyncio.Task[Any] | None = None
        self.source = LocalPath(say("File or folder on this notebook server"))
        self.put = button(say("Upload"), icon="upload", style="primary", on_click=self._start_upload)
        self.small = widgets.FileUpload(
            multiple=True,
            description=say("Small files from your computer"),
            tooltip=say("Up to about 8 MB at a time; for more, use PAI storage in the left side bar"),
            layout=widgets.Layout(width="auto"),
        )
        self.target = LocalPath(say("Folder on this notebook server"), str(Path.cwd()), folders_only=True)
        self.fetch = button(say("Download"), icon="download", style="primary", on_click=self._start_download)
        self.confirm = Confirm(say, say("Replace"))
        self.bar = ProgressBar(say, self._cancel)
        self.outcome = widgets.HTML()
        self.uploads = widgets.HBox([self.source, self.put, self.small], layout=widgets.Layout(**_ROW))
        self.downloads = widgets.HBox([self.target, self.fetch], layout=widgets.Layout(**_ROW))
        super().__init__([self.uploads, self.downloads, self.confirm, self.bar, self.outcome])
        for part in (self.uploads, self.downloads, self.outcome):
            show(part, False)
        self.small.observe(at_home(lambda change: self._take(change["new"])), "value")

    def offer(self, what: str) -> None:
        """Offer `"upload"`, `"download"` or nothing (`""`); what is offered already is hidden."""
        self._offered = what if what != self._offered else ""
        show(self.uploads, self._offered == "upload")
        show(self.downloads, self._offered == "download")
        if self._running is None:
            self.confirm.hide()
            self._tell("")

    def withdraw_download(self) -> None:
        """Offer no download any more: nothing is chosen."""
        if self._offered == "download":
            self.offer("")

    async def upload(self, source: Path, folder: str) -> None:
        """Upload a file or folder of this machine into a folder of the storage."""
        remote = child(folder, source.name)
        await self._guarded(
            self._say("Uploading {name} …", name=source.name),
            lambda tell: upload(self._files, source, remote, tell),
            self._say("Uploaded to {place}", place=remote),
        )
        self._on_uploaded()

    async def download(self, entries: Sequence[FileInfo], folder: Path) -> None:
        """Download files and folders of the storage into a folder of this machine."""

        async def fetch(tell: Callable[[TransferProgress], None]) -> TransferResult:
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
            total = TransferResult()
            for entry in entries:
                part = await download(self._files, entry.path, folder / entry.name, tell)
                total.files += part.files
                total.same += part.same
                total.length += part.length
                total.left_out += part.left_out
            return total

        text = self._say("Downloading …")
        await self._guarded(text, fetch, self._say("Downloaded to {place}", place=str(folder)))

    def _start_upload(self) -> None:
        source, folder = self.source.path, self._where()
        if source is None or not source.name:
            self._tell(notice(self._say("Say which file or folder to upload."), "error"))
            return
        self._start(self._upload_asking(source, folder))

    def _start_download(self) -> None:
        target, entries = self.target.path, list(self._chosen())
        if target is None:
            self._tell(notice(self._say("Say into which folder to download."), "error"))
            return
        self._start(self._download_asking(entries, target))

    def _take(self, uploaded: Sequence[Any]) -> None:
        if not uploaded:
            return
        files = [
            (str(file["name"]), bytes(file["content"]), _milliseconds(file["last_modified"]))
            for file in uploaded
            if is_plain_name(str(file["name"]))
        ]
        # the same file can be chosen again only when the widget has let go of it
        self.small.value = ()
        self._start(self._write_asking(files, self._where()))

    async def _upload_asking(self, source: Path, folder: str) -> None:
        if await self._there(folder, [source.name]):
            question = self._say(
                "{place} is there already. Replace what differs in it?", place=child(folder, source.name)
            )
            self.confirm.ask(question, lambda: self._start(self.upload(source, folder)))
            return
        await self.upload(source, folder)

    async def _write_asking(self, files: Sequence[tuple[str, bytes, int]], folder: str) -> None:
        there = await self._there(folder, [name for name, _, _ in files])
        if there:
            names = self._say(", ").join(there)
            self.confirm.ask(
                self._say("There already: {names}. Replace?", names=names),
                lambda: self._start(self._write(files, folder)),
            )
            return
        await self._write(files, folder)

    async def _download_asking(self, entries: Sequence[FileInfo], target: Path) -> None:
        there = [entry.name for entry in entries if await asyncio.to_thread((target / entry.name).exists)]
        if there:
            names = self._say(", ").join(there)
            self.confirm.ask(
                self._say("There already: {names}. Replace what differs?", names=names),
                lambda: self._start(self.download(entries, target)),
            )
            return
        await self.download(entries, target)

    async def _write(self, files: Sequence[tuple[str, bytes, int]], folder: str) -> None:
        """Write what came from the browser as a whole."""

        async def write(tell: Callable[[TransferProgress], None]) -> TransferResult:
            outcome = TransferResult()
            total = sum(len(content) for _, content, _ in files)
            for name, content, modified in files:
                path = child(folder, name)
                await self._files.write(path, content, overwrite=True)
                await self._files.set_times(path, modified)
                outcome.files += 1
                outcome.length += len(content)
                tell(TransferProgress(outcome.files, len(files), outcome.length, total, name))
            return outcome

        text = self._say("Uploading {name} …", name=self._say(", ").join(name for name, _, _ in files))
        await self._guarded(text, write, self._say("Uploaded to {place}", place=folder))
        self._on_uploaded()

    async def _there(self, folder: str, names: Sequence[str]) -> list[str]:
        try:
            return [name for name in names if await self._files.find(child(folder, name)) is not None]
        except TROUBLE as error:
            self._tell(notice(reason(self._say, error), "error"))
            raise asyncio.CancelledError from error

    async def _guarded(
        self,
        begun: str,
        work: Callable[[Callable[[TransferProgress], None]], Awaitable[TransferResult]],
        done: str,
    ) -> None:
        """Run a transfer with its bar; tell what came of it."""
        self._tell("")
        self.bar.begin(begun)
        try:
            outcome = await work(self.bar.tell)
        except (*TROUBLE, LocalFileError) as error:
            self._tell(notice(self._reason(error), "error"))
        except asyncio.CancelledError:
            text = self._say("Broken off. Begin it again, and it goes on where it was.")
            self._tell(notice(text, "warning"))
            raise
        else:
            self._tell(notice(self._told(done, outcome), "success" if outcome.complete else "warning"))
        finally:
            self.bar.end()

    def _told(self, done: str, outcome: TransferResult) -> str:
        say = self._say
        counted = say("files: {count}, {size}", count=outcome.files, size=size(outcome.length))
        if outcome.same:
            counted += say("; the same already: {count}", count=outcome.same)
        lines = [say("{done} ({counted})", done=done, counted=counted)]
        lines += [f"{left.path}: {left.in_locale(say.locale)}" for left in outcome.left_out[:_MOST_REASONS]]
        if (more := len(outcome.left_out) - _MOST_REASONS) > 0:
            lines.append(say("… and {count} more", count=more))
        return "\n".join(lines)

    def _reason(self, error: Exception) -> str:
        if isinstance(error, LocalFileError):
            return self._say.of(error.message)
        return reason(self._say, error)

    def _start(self, work: Any) -> None:
        if self._running is not None:
            work.close()
            return
        self._running = self._background.spawn(work, "pai-transfer")
        self._show_busy()
        if self._running is not None:
            self._running.add_done_callback(lambda _task: self._over())

    def _over(self) -> None:
        self._running = None
        self._show_busy()

    def _show_busy(self) -> None:
        busy = self._running is not None
        for part in (self.put, self.fetch, self.small):
            part.disabled = busy

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _tell(self, markup: str) -> None:
        self.outcome.value = markup
        show(self.outcome, bool(markup))


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
