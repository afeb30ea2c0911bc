"""The rows of a job's environment variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets

from pai_scheduler.i18n import Message

from .background import at_home
from .fields import Field
from .labels import job_label
from .language import Language, msg
from .look import button

#: Has a switch of its own in the form.
DEBUG = "isDebug"


class EnvRow(widgets.HBox):
    """One variable. `value` is what the job has; it keeps its type as long as the text says the same."""

    def __init__(
        self,
        say: Language,
        name: str,
        value: Any,
        changed: Callable[[], None],
        removed: Callable[[EnvRow], None],
    ) -> None:
        self.name = widgets.Text(value=name, placeholder=say("Name"), tooltip=say("Name of the variable"))
        self.text = widgets.Text(
            value=_text(value), placeholder=say("Value"), tooltip=say("Value of the variable")
        )
        self._value = value
        self.name.layout = widgets.Layout(flex="1 1 120px", width="auto")
        self.text.layout = widgets.Layout(flex="2 1 160px", width="auto")
        self.remove = button(
            icon="trash", tooltip=say("Remove this variable"), on_click=lambda: removed(self)
        )
        for entry in (self.name, self.text):
            entry.observe(at_home(lambda _change: changed()), "value")
        super().__init__([self.name, self.text, self.remove])

    @property
    def value(self) -> Any:
        """Return the value in the type it had, else as text."""
        text = str(self.text.value)
        if text == _text(self._value):
            return self._value
        if type(self._value) is int and text.removeprefix("-").isdecimal() and str(int(text)) == text:
            return int(text)
        return text


class EnvList(Field):
    """All variables. `on_edit` gets the object; what cannot be one (a name twice) goes to `on_problem`."""

    def __init__(
        self,
        say: Language,
        on_edit: Callable[[Mapping[str, Any]], None],
        on_problem: Callable[[Message | None], None],
    ) -> None:
        self._say, self._on_edit, self._on_problem = say, on_edit, on_problem
        self._others: dict[str, Any] = {}
        self.rows: list[EnvRow] = []
        label = job_label(say, "jobEnvs")
        self._box = widgets.VBox()
        super().__init__(self._box)
        self.add = button(say("Add a variable"), icon="plus", tooltip=label.help, on_click=self._append)
        self.children = (self._box, self._problem, self.add)

    def load(self, value: Any) -> None:
        """Show the variables of the job, unless the rows say the same already."""
        variables = value if isinstance(value, dict) else {}
        self._others = {k: v for k, v in variables.items() if k == DEBUG and isinstance(v, bool)}
        shown = {k: v for k, v in variables.items() if k not in self._others}
        written, _problem = self._written()
        if list(written.items()) == list(shown.items()):
            return
        # an unfinished row (no name yet, or a name twice) stays when something else changed the job
        unfinished = [row for row in self.rows if row not in self._finished()]
        self._show([*(self._row(name, item) for name, item in shown.items()), *unfinished])
        self._on_problem(self._written()[1])

    def _row(self, name: str, value: Any) -> EnvRow:
        return EnvRow(self._say, name, value, self._changed, self._remove)

    def _append(self) -> None:
        self._show([*self.rows, self._row("", "")])

    def _show(self, rows: list[EnvRow]) -> None:
        self.rows = rows
        self._box.children = tuple(rows)

    def _remove(self, row: EnvRow) -> None:
        self._show([other for other in self.rows if other is not row])
        self._changed()

    def _finished(self) -> list[EnvRow]:
        first: dict[str, EnvRow] = {}
        for row in self.rows:
            if row.name.value and row.name.value not in self._others:
                first.setdefault(row.name.value, row)
        return list(first.values())

    def _written(self) -> tuple[dict[str, Any], Message | None]:
        finished = self._finished()
        problem = None
        for row in self.rows:
            if row not in finished and row.name.value:
                problem = msg(
                    "The variable {name} stands here twice; only the first one counts.", name=row.name.value
                )
            elif row not in finished and row.text.value:
                problem = msg("Give the variable with the value “{value}” a name.", value=row.text.value)
        return {row.name.value: row.value for row in finished}, problem

    def _changed(self) -> None:
        written, problem = self._written()
        self._on_edit({**self._others, **written})
        self._on_problem(problem)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
