"""The form's input for a length of time: a number and its unit; the job has seconds."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import ipywidgets as widgets

from .fields import Field, OnEdit, shown, wide
from .json_edit import ABSENT
from .language import Language

_NUMBER = re.compile(r"\s*[-+]?[0-9]{1,12}(?:[.,][0-9]{1,6})?\s*")
_SECONDS, _MINUTES, _HOURS = 1, 60, 3600


class DurationField(Field):
    """Seconds, minutes or hours. What is no number stays as it was typed, for the validation to name."""

    def __init__(
        self, say: Language, label: str, on_edit: OnEdit, *, help_text: str = "", placeholder: str = ""
    ) -> None:
        entry = widgets.Text(description=label, placeholder=placeholder, **wide())
        self.unit = widgets.Dropdown(
            options=[(say("seconds"), _SECONDS), (say("minutes"), _MINUTES), (say("hours"), _HOURS)],
            value=_HOURS,
            tooltip=say("Unit of the time limit"),
            layout=widgets.Layout(width="110px", flex="0 0 auto"),
        )
        super().__init__(entry, self.unit, help_text=help_text)
        self._edited_by(entry, lambda: on_edit(self._seconds()))
        self._edited_by(self.unit, lambda: on_edit(self._seconds()))

    def load(self, value: Any) -> None:
        """Show the seconds in the largest unit that has them whole, unless what stands there means them."""
        standing = self._seconds()
        if type(standing) is type(value) and standing == value:
            return
        with self._loading():
            if isinstance(value, int) and not isinstance(value, bool) and value:
                unit = next(unit for unit in (_HOURS, _MINUTES, _SECONDS) if value % unit == 0)
                self.unit.value, self.entry.value = unit, str(value // unit)
            else:
                self.entry.value = shown(value)

    def _seconds(self) -> Any:
        """Read what stands there: whole seconds, `ABSENT` for a blank, else what it is."""
        text = str(self.entry.value)
        if not _NUMBER.fullmatch(text):
            return text if text.strip() else ABSENT
        seconds = Decimal(text.strip().replace(",", ".")) * self.unit.value
        return int(seconds) if seconds == seconds.to_integral_value() else float(seconds)
