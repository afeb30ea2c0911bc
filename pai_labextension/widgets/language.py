"""In which language the widgets speak, and the sentences they say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_config_dir

from pai_scheduler.job.messages import Message, choose_locale, translate
from pai_scheduler.job.parse import JsonTextError, loads_jsonc

from ..messages import counted
from ..messages import msg as msg

_LAB_SETTING = Path("@jupyterlab") / "translation-extension" / "plugin.jupyterlab-settings"


class Language:
    """Translates sentences into one locale ("en", "zh_CN"): `say("Submit")`."""

    def __init__(self, locale: str | None = None) -> None:
        self.locale = choose_locale(locale) if locale else default_locale()

    def __call__(self, template: str, /, **values: Any) -> str:
        """Return a sentence of this package, translated; the call marks `template` for translation."""
        return msg(template, **values).in_locale(self.locale)

    def counted(self, one: str, many: str, /, **values: Any) -> str:
        """Return a sentence of this package whose form depends on the value `count`."""
        return counted(one, many, **values).in_locale(self.locale)

    def of(self, message: Message) -> str:
        """Return the text of a message that somebody else made."""
        return message.in_locale(self.locale)

    def term(self, text: str) -> str:
        """Return a title or description of the job's JSON Schema, translated."""
        return translate(text, self.locale)


def default_locale(environment: Mapping[str, str] = os.environ) -> str:
    """Find the person's language.

    In this order: `PAI_LOCALE`, the language chosen in JupyterLab's settings, then as POSIX has it
    `LC_ALL`, `LC_MESSAGES` and `LANG`; English where none of them says anything else.
    """
    lab = _lab_locale(environment)
    candidates = (
        environment.get("PAI_LOCALE"),
        lab,
        *(environment.get(n) for n in ("LC_ALL", "LC_MESSAGES", "LANG")),
    )
    return next((choose_locale(value) for value in candidates if value), "en")


def _lab_locale(environment: Mapping[str, str]) -> str | None:
    """Read JupyterLab's language setting; None where the person has chosen none ("default")."""
    folder = environment.get("JUPYTERLAB_SETTINGS_DIR")
    settings = Path(folder) if folder else Path(jupyter_config_dir()) / "lab" / "user-settings"
    try:
        setting = loads_jsonc((settings / _LAB_SETTING).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, JsonTextError):
        return None
    chosen = setting.get("locale") if isinstance(setting, dict) else None
    return chosen if isinstance(chosen, str) and chosen != "default" else None
