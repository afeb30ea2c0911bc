"""The one job that form and text both show: its text, what the text means, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pai_scheduler.i18n import Message
from pai_scheduler.job.json_path import path_text
from pai_scheduler.job.json_text import JsonTextError, loads_jsonc
from pai_scheduler.job.validation import SpecError, validate

from . import json_edit
from .language import msg
from .untouched import after_edit, blank_fields

Listener = Callable[[object], None]


class JobModel:
    """A job that is being written.

    `text` is always exactly what the person wrote; `config` is what the text meant when it last parsed, and
    `text_error` says why it does not parse now. Listeners are called with the source of each change.
    `is_new`: the person has yet to begin, so that what is blank is `needed` and not yet an error.
    """

    def __init__(self, text: str, *, is_new: bool = False) -> None:
        self.text = text.removeprefix("\ufeff")
        self.text_error: JsonTextError | None = None
        self.config: Any = {}
        self.errors: list[SpecError] = []
        #: What is wrong in the form only, by path: no job can say it (two variables of one name).
        self.form_errors: dict[str, Message] = {}
        #: Grows with each change of the job.
        self.version = 0
        self._good_text = "{}"
        self._listeners: list[Listener] = []
        self._untouched: frozenset[json_edit.Path] = frozenset()
        self._read()
        if is_new:
            self._untouched = frozenset(blank_fields(self.config))

    def listen(self, listener: Listener) -> None:
        """Have `listener` called after each change, with its source."""
        self._listeners.append(listener)

    @property
    def mistakes(self) -> list[SpecError]:
        """Return the errors of the job and those of the form, but for what is only still needed."""
        needed = set(map(path_text, self.needed))
        found = [error for error in self.errors if error.path not in needed]
        return found + [SpecError(path, message) for path, message in self.form_errors.items()]

    @property
    def needed(self) -> list[json_edit.Path]:
        """Return the required fields that are blank because nobody has touched them yet."""
        if self.obstacle is not None:
            return []
        return [path for path in blank_fields(self.config) if path in self._untouched]

    @property
    def sound(self) -> bool:
        """Return whether nothing is known to be wrong."""
        return self.text_error is None and not self.errors and not self.form_errors

    @property
    def obstacle(self) -> Message | None:
        """Return why the form cannot show this job, or None where it can."""
        if self.text_error is not None:
            error = self.text_error
            return msg(
                "The text does not parse at present (line {line}, column {column}): {error}",
                line=error.line,
                column=error.column,
                error=error.message,
            )
        return _obstacle(self.config)

    def set_text(self, text: str, source: object) -> None:
        """Take the text as it is, whether it parses or not."""
        text = text.removeprefix("\ufeff")
        if text == self.text:
            return
        self.text = text
        self._untouched = frozenset()
        self._read()
        self._changed(source)

    def edit(self, path: json_edit.Path, value: Any, source: object) -> None:
        """Set (with `json_edit.ABSENT`: remove) one value; the rest of the text stays as it was written."""
        text = json_edit.edit(self.text, path, value)
        self._untouched = after_edit(self._untouched, path, value)
        if text != self.text:
            self.text = text
            self._read()
        if isinstance(value, dict) and isinstance(path[-1], int):
            # an item that was just added: its blank inputs have yet to be seen
            self._untouched |= {blank for blank in blank_fields(self.config) if blank[: len(path)] == path}
        self._changed(source)

    def go_back(self, source: object) -> None:
        """Return to the text that parsed last."""
        self.set_text(self._good_text, source)

    def set_form_errors(self, errors: Mapping[str, Message], source: object) -> None:
        """Note what cannot be written down as a job."""
        if dict(errors) != self.form_errors:
            self.form_errors = dict(errors)
            self._changed(source)

    def _read(self) -> None:
        try:
            self.config = loads_jsonc(self.text)
        except JsonTextError as error:
            self.text_error = error
            return
        self.text_error = None
        self._good_text = self.text
        self.errors = list(validate(self.config))

    def _changed(self, source: object) -> None:
        self.version += 1
        for listener in tuple(self._listeners):
            listener(source)


def text_of(config: Mapping[str, Any]) -> str:
    """Write a job as a person would."""
    return json.dumps(config, indent=2, ensure_ascii=False)


def _obstacle(config: Any) -> Message | None:
    """Find what has a shape that the form has no fields for; the text shows it all the same."""
    if not isinstance(config, dict):
        return msg("A job is a JSON object: the text has to begin with {brace}.", brace="{")
    for name in ("jobEnvs", "extras"):
        if not isinstance(config.get(name, {}), dict):
            return msg("{field} has to be an object; put it right in the text.", field=name)
    roles = config.get("taskRoles", [])
    if not isinstance(roles, list) or not all(isinstance(role, dict) for role in roles):
        return msg("{field} has to be a list of objects; put it right in the text.", field="taskRoles")
    for role in roles:
        ports = role.get("portList", [])
        if not isinstance(ports, list) or not all(isinstance(port, dict) for port in ports):
            return msg("{field} has to be a list of objects; put it right in the text.", field="portList")
    return None
