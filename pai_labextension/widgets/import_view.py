"""A job from a file of the person's own machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from .background import at_home
from .language import Language
from .look import button, notice, show
from .model import JobModel

#: What the scheduler takes at most, in bytes.
LARGEST = 8 * 1024 * 1024


class ImportView(widgets.VBox):
    """Reads a file into the model; what stood there before can be had back."""

    def __init__(self, model: JobModel, say: Language, on_import: Callable[[], None]) -> None:
        self._model, self._say, self._on_import = model, say, on_import
        self._before: str | None = None
        self.upload = widgets.FileUpload(
            accept=".json,.jsonc,.txt",
            description=say("Choose a job file"),
            tooltip=say("A job file (JSON, // and /* */ comments allowed)"),
            layout=widgets.Layout(width="auto"),
        )
        self.undo = button(say("Undo the import"), icon="undo", on_click=self._undo)
        self.outcome = widgets.HTML()
        explanation = widgets.HTML(
            say("The file is shown in the form and as text; nothing is submitted yet.")
        )
        super().__init__([explanation, widgets.HBox([self.upload, self.undo]), self.outcome])
        show(self.undo, False)
        self.upload.observe(at_home(lambda change: self._take(change["new"])), "value")

    def _take(self, files: Any) -> None:
        if not files:
            return
        file = files[0]
        name, content = str(file["name"]), bytes(file["content"])
        # the same file can be chosen again only when the widget has let go of it
        self.upload.value = ()
        try:
            text = self._text(content)
        except ValueError as error:
            self.outcome.value = notice(f"{name}: {error}", "error")
            return
        self._before = self._model.text
        self._model.set_text(text, self)
        self.outcome.value = notice(self._say("Imported: {name}", name=name), "success")
        show(self.undo, True)
        self._on_import()

    def _text(self, content: bytes) -> str:
        if len(content) > LARGEST:
            raise ValueError(self._say("This file is larger than 8 MiB, which no job is."))
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(
                self._say("This file is no text in UTF-8; save it as UTF-8 and choose it again.")
            ) from None

    def _undo(self) -> None:
        if self._before is not None:
            self._model.set_text(self._before, self)
            self._before = None
        self.outcome.value = ""
        show(self.undo, False)
