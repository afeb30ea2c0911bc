"""Base of widgets that a person makes: a language, a way to the scheduler, tasks of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import ipywidgets as widgets

from pai_scheduler.client.blocking import run_blocking
from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient

from .background import Background
from .language import Language
from .look import notice, show, style_sheet

Answer = TypeVar("Answer")


class TopWidget(widgets.VBox):
    """The common part of `JobForm`, `JobMonitor`, `JobTable`, `ClusterView` and `FileExplorer`.

    `client`: how to reach the scheduler; None: as the notebook's environment says, closed with the widget.
    Raises `NoEventLoopError` where no asyncio loop runs.
    """

    #: ipywidgets closes what is thrown away, also what was never made because of an error.
    _made = False

    def __init__(self, client: Client | None, locale: str | None) -> None:
        self.say = Language(locale)
        self._background = Background(self._show_crash)
        self._owns_client = client is None
        self.client = client or Client(locale=self.say.locale)
        self._storage: FilesClient | None = None
        #: What became of the last thing a person asked for; and faults of ours.
        self.outcome = widgets.HTML()
        self._tell("")
        self._made = True
        super().__init__()
        self.add_class("pai-widget")

    @property
    def storage(self) -> FilesClient:
        """Return the way to the storage behind the same scheduler, in the name of the same user."""
        if self._storage is None:
            self._storage = FilesClient(self.client.url, self.client.token, locale=self.say.locale)
        return self._storage

    def close(self) -> None:
        """Stop everything this widget does in the background, and remove it; jobs run on."""
        if self._made:
            last_work = [self.client.close()] if self._owns_client else []
            if self._storage is not None:
                last_work.append(self._storage.close())
            self._background.close(*last_work)
        super().close()

    def as_text(self) -> str:
        """Return what a plain terminal shows in the widget's place."""
        return repr(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        # ipywidgets has the state of all children there, cut off: it begins with our style sheet
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options) or {}
        return {**bundle, "text/plain": self.as_text()}

    def _ask_now(self, ask: Callable[[Client], Awaitable[Answer]]) -> Answer:
        """Ask the scheduler, and wait for the answer in the cell that wants it.

        Raises ApiError, UnreachableError.
        """

        async def work() -> Answer:
            # on another loop than the widget's own, which waits for it
            async with Client(self.client.url, self.client.token, locale=self.say.locale) as client:
                return await ask(client)

        return run_blocking(work())

    def _fill(self, children: Sequence[widgets.Widget]) -> None:
        self.children = (style_sheet(), *children)

    def _tell(self, markup: str) -> None:
        self.outcome.value = markup
        show(self.outcome, bool(markup))

    def _show_crash(self, trace: str) -> None:
        self._tell(notice(self.say("Something went wrong in this widget:") + "\n" + trace, "error"))
