"""The inputs of the form: each has its label, its help, and what is wrong with it right beneath."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ipywidgets as widgets

from .background import at_home
from .json_edit import ABSENT

OnEdit = Callable[[Any], None]
_INTEGER = re.compile(r"\s*[-+]?[0-9]{1,18}\s*")


class Field(widgets.VBox):
    """A labelled input. `on_edit` gets the value a person gave (`ABSENT`: none), never that of `load`."""

    def __init__(self, entry: widgets.Widget, *others: widgets.Widget, help_text: str = "") -> None:
        self.entry = entry
        self._quiet = False
        self._problem = widgets.HTML(layout=widgets.Layout(display="none"))
        self._problem.add_class("pai-problem")
        if help_text:
            entry.tooltip = help_text
        row = [widgets.HBox([entry, *others])] if others else [entry]
        if others:
            entry.layout.flex = "1 1 auto"
        self._hint: widgets.HTML | None = None
        super().__init__([*row, self._problem], layout=widgets.Layout(width="auto", overflow="visible"))
        self.add_class("pai-field")

    def load(self, value: Any) -> None:
        """Show a value of the job."""
        raise NotImplementedError

    def show_errors(self, errors: Sequence[str]) -> None:
        """Show what is wrong; an empty sequence: nothing is."""
        text = "<br>".join(html.escape(error) for error in errors)
        self._problem.value = f'<span role="alert">{text}</span>' if text else ""
        self._problem.layout.display = None if text else "none"
        (self.add_class if text else self.remove_class)("pai-wrong")

    def show_hint(self, text: str) -> None:
        """Show beneath the input what a person should know before filling it in."""
        if self._hint is None:
            self._hint = widgets.HTML()
            self._hint.add_class("pai-hint")
            self.children += (self._hint,)
        self._hint.value = html.escape(text)

    @property
    def hint(self) -> str:
        """Return the HTML of what is said beforehand."""
        return "" if self._hint is None else str(self._hint.value)

    @property
    def problem(self) -> str:
        """Return the HTML of what is said to be wrong."""
        return str(self._problem.value)

    @contextmanager
    def _loading(self) -> Iterator[None]:
        """Set values without taking that for an edit."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def _edited_by(self, entry: widgets.Widget, report: Callable[[], None]) -> None:
        def observed(_change: Any) -> None:
            if not self._quiet:
                report()

        entry.observe(at_home(observed), "value")


class TextField(Field):
    """A line of text, or several. A blank one is `when_blank` in the job."""

    one_line: Callable[..., widgets.Widget] = widgets.Text

    def __init__(
        self,
        label: str,
        on_edit: OnEdit,
        *,
        help_text: str = "",
        placeholder: str = "",
        lines: int = 1,
        when_blank: Any = "",
        beside: Sequence[widgets.Widget] = (),
    ) -> None:
        make = self.one_line if lines == 1 else widgets.Textarea
        entry = make(description=label, placeholder=placeholder, **wide())
        if lines > 1:
            entry.rows = lines
            entry.add_class("pai-code")
        super().__init__(entry, *beside, help_text=help_text)
        self._edited_by(entry, lambda: on_edit(entry.value or when_blank))

    def load(self, value: Any) -> None:
        """Show the text; what is no text as JSON."""
        with self._loading():
            self.entry.value = shown(value)


class SuggestField(TextField):
    """A line of text for which some values can be chosen, and every other one typed."""

    one_line = widgets.Combobox

    def suggest(self, values: Sequence[str]) -> None:
        """Replace the values that are suggested."""
        self.entry.options = tuple(values)


class IntegerField(Field):
    """A whole number. What is none stays as it was typed, for the validation to name."""

    def __init__(self, label: str, on_edit: OnEdit, *, help_text: str = "", placeholder: str = "") -> None:
        entry = widgets.Text(description=label, placeholder=placeholder, **wide())
        super().__init__(entry, help_text=help_text)
        self._edited_by(entry, lambda: on_edit(integer(entry.value)))

    def load(self, value: Any) -> None:
        """Show the number."""
        with self._loading():
            _show_number(self.entry, value)


class CheckField(Field):
    """Yes or no. `when_absent`: which of them it is where the job does not say."""

    def __init__(
        self, label: str, on_edit: OnEdit, *, help_text: str = "", when_absent: bool = False
    ) -> None:
        self._when_absent = when_absent
        entry = widgets.Checkbox(description=label, indent=True, **wide())
        super().__init__(entry, help_text=help_text)
        self._edited_by(entry, lambda: on_edit(entry.value))

    def load(self, value: Any) -> None:
        """Show yes for true, no for everything else that the job says."""
        with self._loading():
            self.entry.value = self._when_absent if value is ABSENT else value is True


class ChoiceField(Field):
    """One of some values, which may change meanwhile; a value that is not among them is kept, and said so."""

    def __init__(
        self,
        label: str,
        on_edit: OnEdit,
        *,
        unknown: Callable[[str], str],
        help_text: str = "",
        blank: str = "",
    ) -> None:
        self._unknown = unknown
        self._blank = blank
        self._choices: list[tuple[str, str]] = []
        entry = widgets.Dropdown(description=label, **wide())
        super().__init__(entry, help_text=help_text)
        self._edited_by(entry, lambda: on_edit(entry.value if entry.value is not None else ABSENT))

    def offer(self, choices: Sequence[tuple[str, str]]) -> None:
        """Offer these (label, value)."""
        self._choices = list(choices)
        self._show(self.entry.value if self.entry.value is not None else self._blank)

    def load(self, value: Any) -> None:
        """Show the choice; an absent one is the blank one."""
        self._show(self._blank if value is ABSENT or value is None else shown(value))

    def _show(self, value: str) -> None:
        options = list(self._choices)
        if value not in [option for _, option in options]:
            options.append((self._unknown(value), value))
        with self._loading(), self.entry.hold_sync():
            if list(self.entry.options) != options:
                self.entry.options = options
            self.entry.value = value


class LimitField(Field):
    """A number, null or absent, told apart: the choice says which, the number stands beside it."""

    def __init__(
        self, label: str, on_edit: OnEdit, *, absent: str, null: str, number: str, help_text: str = ""
    ) -> None:
        entry = widgets.Dropdown(
            description=label, options=[(absent, "absent"), (null, "null"), (number, "number")], **wide()
        )
        self.number = widgets.Text(layout=widgets.Layout(width="80px", flex="0 0 80px", display="none"))
        self.number.tooltip = label
        self._on_edit = on_edit
        super().__init__(entry, self.number, help_text=help_text)
        self._edited_by(entry, self._report_kind)
        self._edited_by(self.number, self._report)

    def load(self, value: Any) -> None:
        """Show which of the three it is."""
        kind = "absent" if value is ABSENT else "null" if value is None else "number"
        with self._loading():
            self.entry.value = kind
            self._show_number()
            if kind == "number":
                _show_number(self.number, value)

    def _report_kind(self) -> None:
        with self._loading():
            if self.entry.value == "number" and not self.number.value:
                self.number.value = "1"
        self._show_number()
        self._report()

    def _report(self) -> None:
        value = {"absent": ABSENT, "null": None}.get(self.entry.value, self.number.value)
        if isinstance(value, str):
            number = integer(value)
            value = "" if number is ABSENT else number
        self._on_edit(value)

    def _show_number(self) -> None:
        self.number.layout.display = None if self.entry.value == "number" else "none"


def integer(text: str) -> Any:
    """Read a whole number; `ABSENT` for a blank text, the text itself where it is no number."""
    if _INTEGER.fullmatch(text):
        return int(text)
    return text if text.strip() else ABSENT


def _show_number(entry: widgets.Text, value: Any) -> None:
    """Show a number, but leave what a person typed (`08`) where it means the same."""
    typed = integer(entry.value)
    if type(typed) is not type(value) or typed != value:
        entry.value = shown(value)


def shown(value: Any) -> str:
    """Return a value of the job as an input shows it; what is no text as JSON."""
    if value is ABSENT:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def wide() -> dict[str, Any]:
    """Return the options of an input that is as wide as the form."""
    return {"layout": widgets.Layout(width="auto"), "style": {"description_width": "var(--pai-label-width)"}}
