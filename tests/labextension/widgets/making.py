"""Makes the parts of a form that a test wants to look at alone."""

from __future__ import annotations

from collections.abc import Callable

from pai_labextension.widgets.explorer.picker import Picker
from pai_labextension.widgets.explorer.view import ExplorerView
from pai_labextension.widgets.form import FormView
from pai_labextension.widgets.language import Language
from pai_labextension.widgets.model import JobModel


def form_view(model: JobModel, locale: str = "en") -> FormView:
    """Make the inputs of a job, with no storage behind them."""
    say = Language(locale)
    return FormView(model, say, Picker(say, _no_storage))


def _no_storage(_looked: Callable[[], None]) -> ExplorerView:
    raise AssertionError("this test asks for no storage")
