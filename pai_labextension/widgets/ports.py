"""The rows of a task role's port ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ipywidgets as widgets

from .fields import Field, IntegerField, TextField
from .json_edit import ABSENT, Path
from .labels import Label, port_label, role_label
from .language import Language
from .look import button

#: Called with a path below the owner's and the new value.
Edit = Callable[[Path, Any], None]


class PortRow(widgets.HBox):
    """One port range."""

    def __init__(self, say: Language, index: int, edit: Edit) -> None:
        self.fields: dict[str, Field] = {}
        for name, kind in (("label", TextField), ("beginAt", IntegerField), ("portNumber", IntegerField)):
            label: Label = port_label(say, name)

            def on_edit(value: Any, name: str = name) -> None:
                edit((index, name), value)

            placeholder = say("required") if name == "label" else label.default
            self.fields[name] = kind(label.title, on_edit, help_text=label.help, placeholder=placeholder)
            self.fields[name].layout.flex = "1 1 170px"
        self.remove = button(
            icon="trash", tooltip=say("Remove this port range"), on_click=lambda: edit((index,), ABSENT)
        )
        fields = widgets.HBox(
            [*self.fields.values()],
            layout=widgets.Layout(flex_flow="row wrap", flex="1 1 auto", width="auto"),
        )
        super().__init__([fields, self.remove])
        self.add_class("pai-row")

    def load(self, port: dict[str, Any]) -> None:
        """Show a port range of the job."""
        for name, field in self.fields.items():
            field.load(port.get(name, ABSENT))


class PortList(widgets.VBox):
    """All port ranges of a task role."""

    def __init__(self, say: Language, edit: Edit) -> None:
        self._say, self._edit = say, edit
        self.rows: list[PortRow] = []
        label = role_label(say, "portList")
        self._box = widgets.VBox()
        self.add = button(say("Add a port range"), icon="plus", tooltip=label.help, on_click=self._append)
        title = widgets.Label(label.title)
        title.add_class("pai-subtitle")
        super().__init__([title, self._box, self.add])

    def load(self, ports: Sequence[dict[str, Any]]) -> None:
        """Show the port ranges of the job."""
        if len(ports) != len(self.rows):
            del self.rows[len(ports) :]
            self.rows += [PortRow(self._say, i, self._edit) for i in range(len(self.rows), len(ports))]
            self._box.children = tuple(self.rows)
        for row, port in zip(self.rows, ports, strict=True):
            row.load(port)

    def fields(self) -> Iterator[tuple[Path, Field]]:
        """Return each input with its path below the list."""
        for index, row in enumerate(self.rows):
            for name, field in row.fields.items():
                yield (index, name), field

    def _append(self) -> None:
        self._edit((len(self.rows),), {"label": "", "beginAt": 0, "portNumber": 1})
