"""Two small questions: for a name, and whether something is really meant."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from ..language import Language
from ..look import button, notice, show


class NamePrompt(widgets.VBox):
    """Asks for a name; hidden until it does."""

    def __init__(self, say: Language) -> None:
        self._on_name: Callable[[str], str | None] | None = None
        self.title = widgets.Label()
        self.entry = widgets.Text(layout=widgets.Layout(width="320px"))
        self.accept = button(say("OK"), style="primary", on_click=self._accept)
        self.cancel = button(say("Cancel"), on_click=self.hide)
        self.problem = widgets.HTML()
        row = widgets.HBox(
            [self.title, self.entry, self.accept, self.cancel],
            layout=widgets.Layout(flex_flow="row wrap", align_items="center", overflow="visible"),
        )
        super().__init__([row, self.problem])
        self.hide()

    def ask(self, title: str, value: str, on_name: Callable[[str], str | None]) -> None:
        """Ask; `on_name` gets the answer, and gives what is wrong with it or None."""
        self.title.value = self.entry.tooltip = title
        self.entry.value, self.problem.value = value, ""
        self._on_name = on_name
        show(self, True)

    def hide(self) -> None:
        """Ask no more."""
        self._on_name = None
        show(self, False)

    def _accept(self) -> None:
        if self._on_name is None:
            return
        problem = self._on_name(self.entry.value.strip())
        if problem:
            self.problem.value = notice(problem, "error")
        else:
            self.hide()


class Confirm(widgets.VBox):
    """Asks whether something is really meant; hidden until it does."""

    def __init__(self, say: Language, yes: str) -> None:
        self._on_yes: Callable[[], None] | None = None
        self.question = widgets.HTML()
        self.yes = button(yes, style="danger", on_click=self._accept)
        self.no = button(say("Cancel"), on_click=self.hide)
        super().__init__([self.question, widgets.HBox([self.yes, self.no])])
        self.hide()

    def ask(self, question: str, on_yes: Callable[[], None]) -> None:
        """Ask."""
        self.question.value = notice(question, "warning")
        self._on_yes = on_yes
        show(self, True)

    def hide(self) -> None:
        """Ask no more."""
        self._on_yes = None
        show(self, False)

    def _accept(self) -> None:
        action = self._on_yes
        self.hide()
        if action is not None:
            action()
