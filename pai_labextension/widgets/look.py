"""Look of the widgets: their style sheet, notices, and what is shown or hidden."""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Literal

import ipywidgets as widgets

from .background import at_home

Kind = Literal["success", "warning", "error", "plain"]


def style_sheet() -> widgets.HTML:
    """Make the (invisible) widget that brings the style sheet; every top-level widget has one."""
    return widgets.HTML(f"<style>{_css()}</style>", layout=widgets.Layout(display="none"))


def notice(text: str, kind: Kind = "plain") -> str:
    """Put a text, which is escaped, into a box of the kind's colour."""
    role = "alert" if kind == "error" else "status"
    return f'<div class="pai-notice pai-{kind}" role="{role}">{html.escape(text)}</div>'


def show(widget: widgets.Widget, visible: bool) -> None:
    """Show or hide a widget."""
    widget.layout.display = None if visible else "none"


def button(
    text: str = "", *, on_click: Callable[[], None], icon: str = "", tooltip: str = "", style: str = ""
) -> widgets.Button:
    """Make a button as wide as its text, or square for an icon alone."""
    size = widgets.Layout(width="auto" if text else "36px", flex="0 0 auto", align_self="flex-start")
    made = widgets.Button(
        description=text, icon=icon, tooltip=tooltip or text, button_style=style, layout=size
    )
    made.on_click(at_home(lambda _made: on_click()))
    return made


@cache
def _css() -> str:
    return (resources.files(__package__) / "style.css").read_text(encoding="utf-8")
