"""FileExplorer: a small list of the cluster's files in a notebook."""

from __future__ import annotations

from pai_scheduler.client.rest import Client

from ..top import TopWidget
from .view import ExplorerView


class FileExplorer(TopWidget):
    """Lists the storage, copies from and to this machine, and leads to JupyterLab's browser of it.

    `path`: the folder to begin with (None: one's own).
    `client`: how to reach the scheduler; None: as the notebook's environment says.
    `locale`: "en", "zh_CN" or None for the person's own (see `language.default_locale`).
    Needs a running asyncio loop, as every notebook has (`NoEventLoopError`).
    """

    def __init__(
        self, path: str | None = None, client: Client | None = None, locale: str | None = None
    ) -> None:
        super().__init__(client, locale)
        self.view = ExplorerView(self.storage, self.say, self._background, path or "")
        self._fill([self.outcome, self.view])

    def __repr__(self) -> str:
        return f"FileExplorer({self.view.path!r})"

    def as_text(self) -> str:
        """Return the folder that is shown, and what is in it."""
        return "\n".join([self.view.path or repr(self), *(f"  {name}" for name in self.view.names)])
