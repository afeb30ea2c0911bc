"""The form's inputs for what the scheduler reads of a job's `extras`: its priority, time limit and rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ipywidgets as widgets

from pai_scheduler.job.dependencies import entry_text, read_entry

from .duration import DurationField
from .fields import CheckField, Field, IntegerField, OnEdit, TextField, shown
from .json_edit import ABSENT
from .labels import extras_label
from .language import Language

_EXAMPLE = "prepare, fetch:ended"


class AfterField(TextField):
    """The jobs that a job waits for: names with commas between, each with `:on` where it need not succeed."""

    def __init__(self, label: str, on_edit: OnEdit, *, help_text: str, placeholder: str) -> None:
        super().__init__(
            label, lambda text: on_edit(_entries(text)), help_text=help_text, placeholder=placeholder
        )

    def load(self, value: Any) -> None:
        """Show the jobs; what is no list as JSON. What a person typed stays where it means the same."""
        if _entries(self.entry.value) == value:
            return
        texts = map(_text_of, value) if isinstance(value, list) else [shown(value)]
        super().load(", ".join(texts))


def _entries(text: str) -> Any:
    return [read_entry(one) for one in text.split(",") if one.strip()] or ABSENT


def _text_of(entry: object) -> str:
    text = entry_text(entry)
    return shown(entry) if text is None else text


class ExtrasFields(widgets.VBox):
    """Priority, time limit, jobs to wait for, and whether the job may be stopped for others.

    `edit` gets a name and a value.
    """

    def __init__(self, say: Language, edit: Callable[[str, Any], None]) -> None:
        def editing(name: str) -> Callable[[Any], None]:
            return lambda value: edit(name, value)

        priority = extras_label(say, "priority")
        self._fields: dict[str, Field] = {
            "priority": IntegerField(
                priority.title,
                editing("priority"),
                help_text=priority.help,
                placeholder=say("50 (not given); 0 to 100, higher comes first"),
            ),
            "maxRunSeconds": DurationField(
                say,
                say("Time limit"),
                editing("maxRunSeconds"),
                help_text=extras_label(say, "maxRunSeconds").help,
                placeholder=say("that of the virtual cluster (not given)"),
            ),
            "after": AfterField(
                extras_label(say, "after").title,
                editing("after"),
                help_text=extras_label(say, "after").help,
                placeholder=say("no other job (not given); for example: {example}", example=_EXAMPLE),
            ),
            "terminationGraceSeconds": IntegerField(
                say("Time to end (s)"),
                editing("terminationGraceSeconds"),
                help_text=extras_label(say, "terminationGraceSeconds").help,
                placeholder=say("that of the cluster, mostly 10 (not given)"),
            ),
            "preemptible": CheckField(
                say("May be stopped for others and queued again; only such a job borrows what is idle"),
                # yes is what a job without a word about it means
                lambda value: edit("preemptible", ABSENT if value else False),
                help_text=extras_label(say, "preemptible").help,
                when_absent=True,
            ),
        }
        self._fields["preemptible"].add_class("pai-switch")
        super().__init__([*self._fields.values()])

    def field(self, name: str) -> Field:
        """Return an input."""
        return self._fields[name]

    def load(self, extras: Mapping[str, Any]) -> None:
        """Show the extras of the job."""
        for name, field in self._fields.items():
            field.load(extras.get(name, ABSENT))

    def fields(self) -> Iterator[tuple[str, Field]]:
        """Return each input with its name."""
        yield from self._fields.items()
