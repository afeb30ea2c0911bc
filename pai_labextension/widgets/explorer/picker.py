"""Chooses a file or folder of the storage for a field of the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import ipywidgets as widgets

from ..language import Language
from ..look import button, show
from .paths import in_a_job, parent, path_of
from .view import ExplorerView

Kind = Literal["file", "folder"]


class Picker(widgets.VBox):
    """An explorer that comes when it is asked for. `make` makes it; it is given what to call at each step."""

    def __init__(self, say: Language, make: Callable[[Callable[[], None]], ExplorerView]) -> None:
        self._say, self._make = say, make
        self._kind: Kind = "folder"
        self._on_pick: Callable[[str], None] | None = None
        self.view: ExplorerView | None = None
        self.title = widgets.Label()
        self.title.add_class("pai-subtitle")
        self.use = button("-", icon="check", style="primary", on_click=self._use)
        self.cancel = button(say("Cancel"), on_click=self.hide)
        row = widgets.HBox([self.use, self.cancel], layout=widgets.Layout(flex_flow="row wrap"))
        self._row = row
        super().__init__([self.title, row])
        self.add_class("pai-box")
        self.hide()

    def ask(self, kind: Kind, label: str, uri: str, on_pick: Callable[[str], None]) -> None:
        """Show what to choose from; `on_pick` gets the URI. `uri`: what the field has now, where to begin."""
        self._kind, self._on_pick = kind, on_pick
        self.title.value = label
        begin = path_of(uri)
        if self.view is None:
            self.view = self._make(self._looked)
            self.children = (self.title, self.view, self._row)
        if begin is not None:
            self.view.go(parent(begin) if kind == "file" else begin)
        show(self, True)
        self._looked()

    def hide(self) -> None:
        """Close the list without a choice."""
        self._on_pick = None
        show(self, False)

    @property
    def choice(self) -> str | None:
        """Return the path that would be taken; None where there is none yet."""
        if self.view is None:
            return None
        chosen = self.view.chosen
        if chosen is not None:
            return chosen.path if chosen.is_folder == (self._kind == "folder") else None
        return self.view.path or None if self._kind == "folder" else None

    def _looked(self) -> None:
        choice = self.choice
        self.use.disabled = choice is None
        if choice is not None:
            self.use.description = self._say("Use {path}", path=choice)
        else:
            self.use.description = (
                self._say("Choose a file") if self._kind == "file" else self._say("Choose a folder")
            )
        self.use.tooltip = self.use.description

    def _use(self) -> None:
        choice, on_pick = self.choice, self._on_pick
        self.hide()
        if choice is not None and on_pick is not None:
            on_pick(in_a_job(choice))
