"""In which language a person reads: what they chose in JupyterLab, or in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from jupyter_core.paths import jupyter_config_dir

from pai_scheduler.i18n import choose_locale
from pai_scheduler.job.json_text import JsonTextError, loads_jsonc

_LAB_SETTING = Path("@jupyterlab") / "translation-extension" / "plugin.jupyterlab-settings"


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
