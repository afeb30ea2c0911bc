"""Brings a file or folder of the notebook server's disk into the storage, and fetches what was chosen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from pai_scheduler.client.storage.client import FileInfo, FilesClient
from pai_scheduler.client.storage.download import download
from pai_scheduler.client.storage.transfer import LocalFileError, Tell, TransferResult, amount
from pai_scheduler.client.storage.upload import upload

from ..background import Background
from ..language import Language
from ..look import Kind, button, notice, show
from .local_path import LocalPath
from .paths import child
from .progress_bar import ProgressBar
from .words import TROUBLE, reason

#: Reasons that are told one by one.
_MOST_REASONS = 5


class TransferPanel(widgets.VBox):
    """Uploads into `where()`, downloads `chosen()`; one transfer at a time. `on_uploaded`: look again."""

    def __init__(
        self,
        files: FilesClient,
        say: Language,
        background: Background,
        *,
        where: Callable[[], str],
        chosen: Callable[[], FileInfo | None],
        on_uploaded: Callable[[], None],
    ) -> None:
        self._files, self._say, self._background = files, say, background
        self._where, self._chosen, self._on_uploaded = where, chosen, on_uploaded
        self._running: asyncio.Task[Any] | None = None
        self._on_yes: Callable[[], None] = lambda: None
        self.local = LocalPath(say("File or folder on this notebook server"))
        self.put = button(say("Upload"), icon="upload", on_click=self._start_upload)
        self.fetch = button(say("Download"), icon="download", on_click=self._start_download)
        self.question = widgets.HTML()
        self.yes = button(say("Replace"), style="danger", on_click=lambda: self._answered(True))
        self.no = button(say("Cancel"), on_click=lambda: self._answered(False))
        self.confirm = widgets.VBox([self.question, widgets.HBox([self.yes, self.no])])
        self.bar = ProgressBar(say, self._cancel)
        self.outcome = widgets.HTML()
        row = widgets.HBox(
            [self.local, self.put, self.fetch],
            layout=widgets.Layout(flex_flow="row wrap", align_items="center", overflow="visible"),
        )
        super().__init__([row, self.confirm, self.bar, self.outcome])
        show(self.confirm, False)
        self._tell("")

    async def upload(self, source: Path, folder: str) -> None:
        """Upload a file or folder of this machine into a folder of the storage."""
        remote = child(folder, source.name)
        await self._guarded(
            self._say("Uploading {name} …", name=source.name),
            lambda tell: upload(self._files, source, remote, tell),
            self._say("Uploaded to {place}", place=remote),
        )
        self._on_uploaded()

    async def download(self, entry: FileInfo, target: Path) -> None:
        """Download a file or folder of the storage to a path of this machine."""

        async def fetch(tell: Tell) -> TransferResult:
            await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
            return await download(self._files, entry.path, target, tell)

        text = self._say("Downloading …")
        await self._guarded(text, fetch, self._say("Downloaded to {place}", place=str(target)))

    def _start_upload(self) -> None:
        source, folder = self.local.path, self._where()
        if source is None or not source.name:
            self._tell(self._say("Say which file or folder to upload."), "error")
            return
        self._start(self._upload_asking(source, folder))

    def _start_download(self) -> None:
        entry = self._chosen()
        if entry is not None:
            self._start(self._download_asking(entry, (self.local.path or Path.cwd()) / entry.name))

    async def _upload_asking(self, source: Path, folder: str) -> None:
        try:
            there = await self._files.find(child(folder, source.name))
        except TROUBLE as error:
            self._tell(reason(self._say, error), "error")
            return
        if there is None:
            await self.upload(source, folder)
        else:
            self._ask(there.path, lambda: self._start(self.upload(source, folder)))

    async def _download_asking(self, entry: FileInfo, target: Path) -> None:
        if await asyncio.to_thread(target.exists):
            self._ask(str(target), lambda: self._start(self.download(entry, target)))
        else:
            await self.download(entry, target)

    def _ask(self, place: str, on_yes: Callable[[], None]) -> None:
        text = self._say("{place} is there already. Replace what differs in it?", place=place)
        self.question.value = notice(text, "warning")
        self._on_yes = on_yes
        # who asks is over, and the answer may begin a transfer at once
        self._running = None
        show(self.confirm, True)

    def _answered(self, yes: bool) -> None:
        show(self.confirm, False)
        if yes:
            self._on_yes()

    async def _guarded(
        self, begun: str, work: Callable[[Tell], Awaitable[TransferResult]], done: str
    ) -> None:
        """Run a transfer with its bar; tell what came of it."""
        self._tell("")
        self.bar.begin(begun)
        try:
            outcome = await work(self.bar.tell)
        except (*TROUBLE, LocalFileError) as error:
            self._tell(reason(self._say, error), "error")
        except asyncio.CancelledError:
            self._tell(self._say("Broken off. Begin it again, and it goes on where it was."), "warning")
            raise
        else:
            self._tell(self._told(done, outcome), "success" if outcome.complete else "warning")
        finally:
            self.bar.end()

    def _told(self, done: str, outcome: TransferResult) -> str:
        say = self._say
        counted = say("files: {count}, {size}", count=outcome.files, size=amount(outcome.length))
        if outcome.same:
            counted += say("; the same already: {count}", count=outcome.same)
        lines = [say("{done} ({counted})", done=done, counted=counted)]
        lines += [f"{left.path}: {left.in_locale(say.locale)}" for left in outcome.left_out[:_MOST_REASONS]]
        if (more := len(outcome.left_out) - _MOST_REASONS) > 0:
            lines.append(say("… and {count} more", count=more))
        return "\n".join(lines)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        if self._running is not None:
            work.close()
            return
        show(self.confirm, False)
        self._running = self._background.spawn(work, "pai-transfer")
        if self._running is not None:
            self._running.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[Any]) -> None:
        if self._running is task:
            self._running = None

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _tell(self, sentence: str, kind: Kind = "plain") -> None:
        self.outcome.value = notice(sentence, kind) if sentence else ""
        show(self.outcome, bool(sentence))
