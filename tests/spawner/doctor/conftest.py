"""Hubs that are configured and not started, to be judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pai_spawner.doctor.configuration import HubConfiguration, read_configuration

Configure = Callable[..., HubConfiguration]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Return how to configure a Hub, by the lines of its file and its environment."""

    def make(*lines: str, **environ: str) -> HubConfiguration:
        file = tmp_path / "configuration.py"
        file.write_text("\n".join(("c = get_config()", *lines)))
        return read_configuration(file, tmp_path, environ)

    return make
