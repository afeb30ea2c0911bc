"""In which language a remote function tells what happens, unless it is told one."""

from __future__ import annotations

import os
from collections.abc import Callable

from pai_scheduler.i18n import choose_locale


def environment_locale() -> str:
    """Choose the language by the environment: PAI_LOCALE, then as POSIX has it."""
    names = ("PAI_LOCALE", "LC_ALL", "LC_MESSAGES", "LANG")
    return choose_locale(next(filter(None, (os.environ.get(name) for name in names)), ""))


_source: Callable[[], str] = environment_locale


def default_locale() -> str:
    """Return the reader's language: "en" or "zh_CN"."""
    return _source()


def use_locale_of(source: Callable[[], str]) -> None:
    """Have `source` say the language from now on: JupyterLab knows more about its reader than we do."""
    global _source
    _source = source
