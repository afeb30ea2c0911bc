"""Base of the widgets: a component of the console in the browser, its server in the kernel, a static view."""

from __future__ import annotations

import os
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from html import escape
from typing import Any, TypeVar

import anywidget
import ipywidgets
import traitlets

from pai_labextension.job_editor.editor_info import editor_info
from pai_labextension.locales import default_locale
from pai_labextension.messages import msg
from pai_scheduler.client.blocking import background_loop, run_blocking, start
from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.client.storage.client import FilesClient, FilesError
from pai_scheduler.i18n import choose_locale

from .channel import CommServer, LocalRoute, answered_json, read_asset

Answer = TypeVar("Answer")
Buffers = Sequence[bytes | memoryview]

#: What a scheduler's or a storage's answer can fail with.
TROUBLE = (ApiError, FilesError, UnreachableError)

_LOADER = (read_asset("loader") or b"").decode() or (
    "export default { render({ el }) { el.textContent = 'PAI: the front end is not built; run `make`.'; } };"
)


class ConsoleWidget(anywidget.AnyWidget):
    """The common part of `JobForm`, `JobMonitor`, `JobTable`, `ClusterView` and `FileExplorer`.

    `client`: how to reach the scheduler; None: as the notebook's environment says.
    `locale`: "en", "zh_CN" or None for the person's own (see `locales.default_locale`).
    """

    _esm = _LOADER
    #: Tells this model from others of the page.
    _key = traitlets.Unicode().tag(sync=True)
    #: Which component is shown, what of, and what it has to know.
    _component = traitlets.Unicode().tag(sync=True)
    _options = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        component: str,
        client: Client | None,
        locale: str | None,
        options: Mapping[str, Any],
        **traits: Any,
    ) -> None:
        known = client or Client()
        self._url, self._token = known.url, known.token
        self.locale = choose_locale(locale) if locale else default_locale()
        self._server: CommServer | None = None
        facts = {
            "language": self.locale.replace("_", "-"),
            "ownServer": os.environ.get("PAI_JOB_NAME", ""),
            # where the console is on the web, for what only that has
            "console": os.environ.get("PAI_CONSOLE_URL", ""),
            "loading": self._say(msg("Asking the kernel for the console …")),
            "silent": self._say(msg("The kernel does not answer. Run the cell again.")),
        }
        super().__init__(
            _key=uuid.uuid4().hex,
            _component=component,
            _options={**facts, **options},
            layout=ipywidgets.Layout(width="100%"),
            **traits,
        )
        self.on_msg(self._hear)

    def close(self) -> None:
        """Stop answering the browser, and remove the widget; jobs run on."""
        if (server := getattr(self, "_server", None)) is not None:
            self._server = None
            start(server.close())
        super().close()

    def as_text(self) -> str:
        """Return what a plain terminal shows in the widget's place."""
        return repr(self)

    def as_html(self) -> str:
        """Return what is shown where no JavaScript runs: on a page that was made of the notebook, say."""
        return f"<pre>{escape(self.as_text())}</pre>"

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        data, metadata = bundle
        try:
            seen = {"text/plain": self.as_text(), "text/html": self.as_html()}
        except TROUBLE as error:
            said = error.in_locale(self.locale) if isinstance(error, FilesError) else str(error)
            seen = {"text/plain": f"{self!r}: {said}", "text/html": f"<p>{escape(said)}</p>"}
        return {**data, **seen}, metadata

    def _routes(self) -> dict[tuple[str, str], LocalRoute]:
        """Return what the kernel answers by itself."""

        return {
            ("GET", "job-editor"): lambda _, locale: answered_json(
                self._ask(lambda client: editor_info(client, locale))
            )
        }

    def _hear(self, _widget: ConsoleWidget, frame: Mapping[str, Any], buffers: Buffers) -> None:
        # on whichever thread the kernel hears comms: its main one, or one of a subshell
        pieces = [bytes(buffer) for buffer in buffers or ()]
        background_loop().call_soon_threadsafe(self._take, dict(frame), pieces)

    def _take(self, frame: Mapping[str, Any], buffers: Sequence[bytes]) -> None:
        if self.comm is None:  # closed meanwhile
            return
        if self._server is None:
            self._server = CommServer(self.send, self._url, self._token, self._routes())
        self._server.take(frame, buffers)

    async def _ask(self, ask: Callable[[Client], Awaitable[Answer]]) -> Answer:
        """Ask the scheduler, with connections of its own: to be awaited on the background's loop."""
        async with Client(self._url, self._token, locale=self.locale) as client:
            return await ask(client)

    async def _ask_storage(self, ask: Callable[[FilesClient], Awaitable[Answer]]) -> Answer:
        async with FilesClient(self._url, self._token, locale=self.locale) as files:
            return await ask(files)

    def _ask_now(self, ask: Callable[[Client], Awaitable[Answer]]) -> Answer:
        """Ask the scheduler, and wait in the cell that wants the answer; ApiError, UnreachableError."""
        return run_blocking(self._ask(ask))

    def _say(self, message: Any) -> str:
        return str(message.in_locale(self.locale))


async def name_of(client: Client, user: str | None) -> str:
    """Return a user's name; None: of whoever asks."""
    return user or (await client.whoami())["username"]


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows under their header; every cell is text."""
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
