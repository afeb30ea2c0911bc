"""What the Hub needs beside its spawner class: `prepare_hub(c)`, the last line of `jupyterhub_config.py`."""

from __future__ import annotations

from typing import Any

from traitlets import TraitError
from traitlets.config import Config

from .changes_handler import CHANGES_PATTERN, ChangesHandler
from .choosing_handler import PATTERN, ChoosingHandler
from .profiles import InvalidProfiles, read_profiles
from .settings import SpawnerSettings


def prepare_hub(c: Any) -> None:
    """Add the addresses that the form asks, and check the profiles: wrong ones end the Hub's start."""
    own_handlers = [(PATTERN, ChoosingHandler), (CHANGES_PATTERN, ChangesHandler)]
    c.JupyterHub.extra_handlers = [*_given(c.JupyterHub, "extra_handlers"), *own_handlers]
    own = {name: c.PAISpawner[name] for name in SpawnerSettings.class_trait_names() if name in c.PAISpawner}
    try:
        settings = SpawnerSettings(config=Config(SpawnerSettings=own))
        read_profiles(settings.profiles, settings.policy)
    except (InvalidProfiles, TraitError) as error:
        raise SystemExit(str(error)) from None


def _given(section: Config, name: str) -> list[Any]:
    return list(section[name]) if name in section else []
