"""An input for a file or folder on the notebook server's disk, which suggests what is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from ..background import at_home

#: What is suggested at most; more is no help.
_MOST = 100


class LocalPath(widgets.Combobox):
    """A path of this machine; `~` is the person's home, what is relative begins at the present folder."""

    def __init__(self, label: str, value: str = "", *, folders_only: bool = False, **options: Any) -> None:
        self._folders_only = folders_only
        super().__init__(
            value=value,
            placeholder=label,
            tooltip=label,
            continuous_update=True,
            **{"layout": widgets.Layout(flex="1 1 240px", width="auto"), **options},
        )
        self.observe(at_home(lambda _change: self._suggest()), "value")
        self._suggest()

    @property
    def path(self) -> Path | None:
        """Return the path as a whole; None where nothing stands there."""
        text = str(self.value).strip()
        return Path(text).expanduser().absolute() if text else None

    def _suggest(self) -> None:
        self.options = tuple(suggestions(str(self.value), folders_only=self._folders_only))


def suggestions(typed: str, *, folders_only: bool) -> list[str]:
    """Return what may be meant by the beginning of a path: folders end with a slash."""
    folder, slash, begun = typed.rpartition("/")
    try:
        place = Path(folder + slash).expanduser() if slash else Path()
        with os.scandir(place) as listed:
            entries = [
                (entry.name, entry.is_dir())
                for entry in listed
                if entry.name.startswith(begun) and (begun or not entry.name.startswith("."))
            ]
    except (OSError, ValueError, RuntimeError):
        return []
    chosen = sorted(name + "/" * is_folder for name, is_folder in entries if is_folder or not folders_only)
    return [f"{folder}{slash}{name}" for name in chosen[:_MOST]]
