"""The form's task roles: one box for each kind of task."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ipywidgets as widgets

from .fields import Field, IntegerField, LimitField, TextField
from .json_edit import ABSENT, Path
from .labels import role_label
from .language import Language
from .look import button
from .ports import Edit, PortList

_NUMBERS = ("taskNumber", "cpuNumber", "memoryMB", "shmMB", "gpuNumber", "storageGB")


class RoleBox(widgets.VBox):
    """One task role."""

    def __init__(
        self, say: Language, edit: Edit, duplicate: Callable[[], None], remove: Callable[[], None]
    ) -> None:
        def editing(name: str) -> Callable[[Any], None]:
            return lambda value: edit((name,), value)

        name = role_label(say, "name")
        self._fields: dict[str, Field] = {
            "name": TextField(name.title, editing("name"), help_text=name.help, placeholder=say("required"))
        }
        for key in _NUMBERS:
            label = role_label(say, key)
            self._fields[key] = IntegerField(
                label.title, editing(key), help_text=label.help, placeholder=label.default
            )
        command = role_label(say, "command")
        self._fields["command"] = TextField(
            command.title,
            editing("command"),
            help_text=command.help,
            placeholder=say("required, for example: {example}", example="python3 train.py"),
            lines=4,
        )
        for key, absent, null in (
            ("minFailedTaskCount", say("1 (not given)"), say("never by count (null)")),
            ("minSucceededTaskCount", say("all (not given)"), say("all (null)")),
        ):
            label = role_label(say, key)
            self._fields[key] = LimitField(
                label.title,
                editing(key),
                absent=absent,
                null=null,
                number=say("this many:"),
                help_text=label.help,
            )
            self._fields[key].add_class("pai-long-label")
        self.ports = PortList(say, lambda path, value: edit(("portList", *path), value))
        self._title = widgets.Label()
        self._title.add_class("pai-subtitle")
        self.duplicate = button(icon="copy", tooltip=say("Duplicate this task role"), on_click=duplicate)
        self.remove = button(icon="trash", tooltip=say("Remove this task role"), on_click=remove)
        head = widgets.HBox(
            [self._title, widgets.HBox([self.duplicate, self.remove])],
            layout=widgets.Layout(justify_content="space-between"),
        )
        self._say = say
        numbers = widgets.GridBox([self._fields[key] for key in _NUMBERS])
        numbers.add_class("pai-grid")
        limits = [self._fields["minFailedTaskCount"], self._fields["minSucceededTaskCount"]]
        super().__init__([head, self._fields["name"], numbers, self._fields["command"], self.ports, *limits])
        self.add_class("pai-box")

    def field(self, name: str) -> Field:
        """Return the input of a field of the role."""
        return self._fields[name]

    def load(self, role: dict[str, Any], title: str, is_only_one: bool) -> None:
        """Show a task role of the job."""
        self._title.value = title
        self.remove.disabled = is_only_one
        for name, field in self._fields.items():
            field.load(role.get(name, ABSENT))
        self.ports.load(role.get("portList", []))

    def fields(self) -> Iterator[tuple[Path, Field]]:
        """Return each input with its path below the role."""
        for name, field in self._fields.items():
            yield (name,), field
        for path, field in self.ports.fields():
            yield ("portList", *path), field


class RoleList(widgets.VBox):
    """All task roles. `edit` is given paths below the list."""

    def __init__(self, say: Language, edit: Edit) -> None:
        self._say, self._edit = say, edit
        self._roles: Sequence[dict[str, Any]] = ()
        self.boxes: list[RoleBox] = []
        self._inner = widgets.VBox()
        new = {"name": "", "taskNumber": 1, "command": ""}
        self.add = button(say("Add a task role"), icon="plus", on_click=lambda: self._append(new))
        super().__init__([self._inner, self.add])

    def load(self, roles: Sequence[dict[str, Any]]) -> None:
        """Show the task roles of the job."""
        self._roles = roles
        if len(roles) != len(self.boxes):
            del self.boxes[len(roles) :]
            self.boxes += [self._box(index) for index in range(len(self.boxes), len(roles))]
            self._inner.children = tuple(self.boxes)
        for index, (box, role) in enumerate(zip(self.boxes, roles, strict=True)):
            title = self._say("Task role {number}", number=index + 1)
            box.load(role, title, is_only_one=len(roles) == 1)

    def fields(self) -> Iterator[tuple[Path, Field]]:
        """Return each input with its path below the list."""
        for index, box in enumerate(self.boxes):
            for path, field in box.fields():
                yield (index, *path), field

    def _box(self, index: int) -> RoleBox:
        return RoleBox(
            self._say,
            edit=lambda path, value: self._edit((index, *path), value),
            duplicate=lambda: self._append(self._roles[index]),
            remove=lambda: self._edit((index,), ABSENT),
        )

    def _append(self, role: dict[str, Any]) -> None:
        taken = {str(other.get("name")) for other in self._roles}
        stem = str(role.get("name", "")).rstrip("0123456789").rstrip("_") or "task"
        number = next(
            n for n in range(len(self._roles) + 1, 2 * len(self._roles) + 2) if f"{stem}_{n}" not in taken
        )
        self._edit((len(self._roles),), {**copy.deepcopy(role), "name": f"{stem}_{number}"})
