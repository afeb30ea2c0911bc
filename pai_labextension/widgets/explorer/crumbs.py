"""The way to a folder, each step of which can be gone back to."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from ..language import Language
from ..look import button
from .paths import crumbs


class Crumbs(widgets.HBox):
    """The folders on the way, as buttons; `on_go` gets the path of the one that is pressed."""

    def __init__(self, say: Language, on_go: Callable[[str], None]) -> None:
        self._on_go = on_go
        self._steps: list[widgets.Button] = []
        self._root = button(icon="hdd-o", tooltip=say("All of the storage"), on_click=lambda: on_go("/"))
        super().__init__([self._root])
        self.add_class("pai-crumbs")

    def show(self, path: str) -> None:
        """Show the way to a folder."""
        old = self._steps
        self._steps = [self._step(name, way) for name, way in crumbs(path)]
        self.children = (self._root, *self._steps)
        for step in old:
            step.close()

    def _step(self, name: str, way: str) -> widgets.Button:
        return button(f"/ {name}", tooltip=way, on_click=lambda: self._on_go(way))
