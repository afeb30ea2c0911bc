"""The job as text: a view of the one model that the form shows too."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets as widgets

from .background import at_home
from .language import Language
from .look import notice, show
from .model import JobModel


class TextView(widgets.VBox):
    """The job's JSON with comments, and where it is wrong."""

    def __init__(self, model: JobModel, say: Language) -> None:
        self._model, self._say = model, say
        self.entry = widgets.Textarea(
            value=model.text,
            rows=24,
            placeholder=say("Paste a job here: JSON, // and /* */ comments allowed"),
            tooltip=say("The job as JSON"),
            layout=widgets.Layout(width="auto"),
        )
        self.entry.add_class("pai-code")
        self.problem = widgets.HTML()
        super().__init__([self.entry, self.problem], layout=widgets.Layout(overflow="visible"))
        self.entry.observe(at_home(lambda _change: model.set_text(self.entry.value, self)), "value")
        model.listen(self._load)

    def show_errors(self, errors: Sequence[tuple[str, str]]) -> None:
        """Return what is wrong with the text, or with the job that it means."""
        error = self._model.text_error
        if error is not None:
            place = self._say("Line {line}, column {column}:", line=error.line, column=error.column)
            lines = [f"{place} {self._say.of(error.message)}"]
        else:
            lines = [f"{path}: {sentence}" for path, sentence in errors]
        self.problem.value = notice("\n".join(lines), "error") if lines else ""
        show(self.problem, bool(lines))

    def _load(self, source: object) -> None:
        if source is not self:
            self.entry.value = self._model.text
